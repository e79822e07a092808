"""What follows no rule, modelled by its statistics: how many messages of how many bytes, and how much computation.

Each process sends as many messages as they send on average, to the next one by rank, and receives as many; so all
messages have both ends. Collective operations keep their names, and happen as often as on average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.transforms import PowerLaw
from metasched.signature.rules.application import Application, Role, Rule
from metasched.signature.rules.attributes import Attribute, shifted
from metasched.signature.traces.actions import AMONG_SOME, AMOUNTS, BYTE, PEERS, TURN, Shape
from metasched.signature.traces.exchanges import SENDS
from metasched.signature.traces.folding import Loop, Node
from metasched.signature.traces.matching import program_of
from metasched.signature.traces.trace import Trace

#: Represents the messages, and the computation before each.
MESSAGE, WORK = Shape("sendRecv", 6), Shape("compute", 1)


def statistical(traces: Sequence[Trace]) -> Application:
    """What processes do on average.

    Parameters
    ----------
    traces : of different counts; parts whose turns are marked, or whole runs.

    Examples
    --------
    >>> from metasched.signature.rules.expanding import expanded
    >>> from metasched.signature.traces.trace import trace_of
    >>> def each(r, n):
    ...     return [("compute", (8e6 / n,)), ("isend", ((r * r + 1) % n, 0, 64, -1)), ("turn", ())]
    >>> def run(n):
    ...     return trace_of({r: each(r, n) for r in range(n)})
    >>> made = expanded(statistical([run(n) for n in (4, 8, 16)]), 32)
    >>> [made.table.text(action) for action in made.processes[5]]
    ['compute 250000', 'sendRecv 64 6 64 4 6 6', 'turn']
    """
    counts = [len(trace.processes) for trace in traces]
    marked = any(shape.name == TURN for trace in traces for shape in trace.table.shapes)
    each = [_Means(trace, marked) for trace in traces]
    times = [one.messages for one in each]
    size = _law(counts, [one.bytes for one in each])
    shapes: list[Shape] = [MESSAGE]
    body: list[Node] = [Loop(1, (0,))]
    rules = [_message(size)]
    loops = [_law(counts, times)]
    if any(one.work for one in each):
        shapes.append(WORK)
        body.insert(0, 1)
        rules.insert(0, Rule((_law(counts, [one.work for one in each]),)))
    for name, numbers in sorted({key for one in each for key in one.collective}):
        mean = [one.collective.get((name, numbers), (0.0, (0.0,) * numbers)) for one in each]
        body.append(Loop(1, (len(shapes),)))
        shapes.append(Shape(name, numbers))
        # Roots, types and operations differ from call to call; the first is as good as any.
        rules.append(Rule(tuple(
            _law(counts, [one[1][place] for one in mean]) if place == 0 else _number(mean[-1][1][place])
            for place in range(numbers)
        )))  # fmt: skip
        loops.append(_law(counts, [one[0] for one in mean]))
    if marked:
        body.append(len(shapes))
        shapes.append(Shape(TURN, 0))
        rules.append(Rule(()))
        program = program_of([Loop(1, tuple(body))])
        loops.insert(0, _law(counts, [one.turns for one in each]))
    else:
        first = len(shapes)
        shapes += [Shape("init", 0), Shape("finalize", 0)]
        program = program_of([first, *body, first + 1])
        rules = [Rule(()), *rules, Rule(())]
    return Application("", "line", tuple(shapes), {(): Role((), program, tuple(rules), tuple(loops))}, tuple(counts))


def _message(size: Attribute) -> Rule:
    there, back = shifted("line", 1, 0, 1), shifted("line", 1, 0, -1)
    return Rule((size, there, size, back, _number(BYTE), _number(BYTE)))


def _number(value: float) -> Attribute:
    return Attribute(expression=Expression(value))


def _law(counts: Sequence[int], means: Sequence[float]) -> Attribute:
    """A power law through the means; the largest run's mean where some are 0, or there are too few."""
    if len(means) > 1 and min(means) > 0.0:
        return Attribute(law=PowerLaw.fitted(counts, means))
    return Attribute(law=PowerLaw(float(means[-1]), 0.0, 0.0))


class _Means:
    """What a process does on average in one turn of a trace.

    Attributes
    ----------
    turns : how many there are.
    messages, bytes, work : sent messages, bytes of one, and instructions.
    collective : by name and number of numbers, how often, and the means of the numbers.
    """

    def __init__(self, trace: Trace, marked: bool) -> None:
        table, many = trace.table, len(trace.table.shape)
        times = sum(
            (np.bincount(process, minlength=many).astype(np.float64) for process in trace.processes), np.zeros(many)
        )
        names = [table.shapes[shape].name.lower() for shape in table.shape]
        count = len(trace.processes)
        marks = sum(times[action] for action, name in enumerate(names) if name == TURN) / count
        self.turns = float(marks) if marked else 1.0
        whole = max(self.turns, 1.0) * count
        sent = bytes_ = work = 0.0
        sums: dict[tuple[str, int], tuple[float, Floats]] = {}
        for action in np.flatnonzero(times).tolist():
            shape, numbers, often = table.shapes[table.shape[action]], table.numbers[action], times[action]
            name = names[action]
            if name in SENDS or name == "sendrecv":
                sent += often
                bytes_ += often * (table.volume(action) / (2.0 if name == "sendrecv" else 1.0))
            elif name in AMOUNTS:
                work += often * (numbers[0] if numbers else 0.0)
            elif name not in PEERS and name not in ("waitall", "waitany", "testany", TURN, "init", "finalize"):
                if shape.lists or name.endswith(AMONG_SOME):
                    continue
                before, total = sums.get((shape.name, shape.numbers), (0.0, np.zeros(shape.numbers)))
                added = total + often * np.array(numbers, dtype=np.float64)
                sums[shape.name, shape.numbers] = before + float(often), added
        self.messages, self.work = sent / whole, work / whole
        self.bytes = bytes_ / sent if sent else 0.0
        self.collective = {
            key: (float(often) / whole, tuple((total / often).tolist())) for key, (often, total) in sums.items()
        }
