"""What is made of programs drawn at random, compared by :mod:`tests.signature.traces.test_whole_answers`.

``make answers`` writes it down anew; read the difference before it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.records import InputError
from metasched.signature.computation.instruction_groups import grouped, levels
from metasched.signature.computation.instruction_table import drifting, instruction_table
from metasched.signature.computation.measurable_points import paces, point
from metasched.signature.traces.actions import ActionTable
from metasched.signature.traces.common_beginning import common_beginning
from metasched.signature.traces.exchanges import exchanges
from metasched.signature.traces.folding import Loop, Node, folded
from metasched.signature.traces.matching import Places, likened, matched, merged, program_of
from metasched.signature.traces.message_order import in_order
from metasched.signature.traces.parts import cut, turns
from metasched.signature.traces.phases import Machine, phases_of, worked
from metasched.signature.traces.problem_sizes import POWERS, at_size, resized
from metasched.signature.traces.trace import Trace, ends_of, trace_of
from tests.signature.answers import digest_of
from tests.signature.traces.drawn_programs import Program, drawn

SEEDS = range(48)
MACHINE = Machine(2e9, 1e8, 3e-5)


def answers() -> dict[str, Any]:
    """What is made of each program, by the seed that drew it."""
    powers = {"powers of sizes": [[grown(power, constant) for constant in (0.0, 7.0)] for power in POWERS]}
    return powers | {str(seed): made_of(drawn(seed)) for seed in SEEDS}


def grown(power: float, constant: float) -> list[float]:
    """What two and three sizes tell of a number that grows by a power."""
    sizes = [40.0, 100.0, 150.0]
    values = [constant + 3.0 * size**power for size in sizes]
    return [at_size(sizes[:many], values[:many], 700.0) for many in (2, 3)]


def made_of(program: Program) -> dict[str, Any]:
    """What each function of the room makes of a program: a few numbers as they are, of the rest a digest."""
    trace = trace_of(program)
    table, shapes = trace.table, trace.shapes
    ends, anywhere = ends_of(table)
    actions = range(len(table.shape))
    sequences = [shapes[process].tolist() for process in trace.processes]
    loops = [folded(each) for each in sequences]
    together = [merged(loops[0], other) for other in loops]
    programs = [program_of(each) for each in loops]
    found: dict[str, Any] = {
        "bytes": digest_of([table.volume(action) for action in actions]),
        "least": [table.least(action) for action in actions][:40],
        "shapes": digest_of([[each.name, each.numbers, each.nulls, each.pattern, each.root] for each in table.shapes]),
        "counts": [trace.events, trace.instructions, trace.compact().events],
        "ends": digest_of([sorted(ends.items()), sorted(anywhere)]),
        "loops": [digest_of(repr(loops)), *(counted(each) for each in loops)],
        "merged": digest_of(repr(together)),
        "matched": digest_of([placed(fit(made, each)) for made in programs for fit, each in _fits(sequences, loops)]),
        "in order": digest_of(texts(in_order(trace))),
        "exchanges": digest_of([getattr(exchanges(trace), each.name).tolist() for each in fields(exchanges(trace))]),
        "steadied": digest_of(texts(jittered(program).steadied())),
        "groups": grouped(np.array([float(len(each)) for each in sequences])).tolist(),
        "levels": levels([np.array([1.0 + len(each) for each in sequences])]).tolist()[::20],
    }
    if (parts := cut(trace)) is not None:
        marks = [place for place, inside in enumerate(parts.inside) if any(each.size for each in inside)]
        cut_out = parts.together(marks)
        found["parts"] = [digest_of(texts(parts.outside)), digest_of(texts(cut_out)), marks]
        written = [cut_out.table.text(action) for action in range(len(cut_out.table.shape))]
        mark = written.index("turn") if marks else -1
        found["turns"] = [[each.size for each in turns(one, mark)] for one in cut_out.processes if mark >= 0]
    timed = trace_of({rank: [slower(rank, *each) for each in actions] for rank, actions in program.items()})
    for name, phases in (("phases", phases_of(trace, MACHINE)), ("timed", phases_of(trace, MACHINE, timed))):
        rows = [[*each.as_dict().values()] for each in phases.phases]
        found[name] = [rows, phases.coverage, phases.duration]
    relevant = [each.phase for each in phases.phases if each.relevant]
    found["worked"] = worked(timed, [0.5 + rank for rank in range(len(program))], relevant, MACHINE).tolist()
    found["groups of phases"] = digest_of([each.as_dict() for each in instruction_table(trace, MACHINE)])
    tables = {1 + turn: instruction_table(trace_of(sized(program, turn)), MACHINE) for turn in range(3)}
    found["drifting"] = digest_of([str(each) for each in drifting(tables)])
    points = [point(trace_of(sized(program, turn)), trace_of(sized(timed_of(program), turn))) for turn in range(2)]
    found["paces"] = [each and each.as_dict() for each in paces(points)][:9]
    found["cut short"] = [refused(made, shorter(program, at)) for at in (0.1, 0.3, 0.6, 0.9, 1.0) for made in CUT_SHORT]
    found["resized"] = refused(larger, program)
    return found


def counted(nodes: list[Node]) -> int:
    """How many nodes there are, with those inside others."""
    return sum(1 + (counted(list(node.body)) if isinstance(node, Loop) else 0) for node in nodes)


def placed(places: Places | None) -> str:
    """Where the actions of a program are, and how often its loops run."""
    if places is None:
        return "None"
    tables = ([[(*row,) for row in each.tolist()] for each in of] for of in (places.leaves, places.repeats))
    return "Places(leaves={}, repeats={})".format(*tables)


def texts(trace: Trace) -> list[list[str]]:
    """The actions of each process as SimGrid writes them."""
    return [[trace.table.text(action) for action in process] for process in trace.processes]


def _fits(sequences: list[Any], loops: list[Any]) -> list[tuple[Callable[..., Any], Any]]:
    return [*((matched, each) for each in sequences), *((likened, each) for each in loops)]


def refused(made: Callable[[Program], Any], program: Program) -> Any:
    """What is made of a program, or the line that refuses it."""
    try:
        return made(program)
    except InputError as error:
        return str(error)


def shorter(program: Program, share: float) -> Program:
    """Of each process the first actions, fewer of later ones."""
    return {rank: actions[: 1 + int(share * len(actions) / (1 + 0.1 * rank))] for rank, actions in program.items()}


def beginning(program: Program) -> list[int]:
    return [each.size for each in common_beginning(trace_of(program)).processes]


def halves(program: Program) -> str:
    found = exchanges(trace_of(program), halves=True)
    return digest_of([getattr(found, each.name).tolist() for each in fields(found)])


def checked(program: Program) -> int:
    return trace_of(program).checked().events


CUT_SHORT = (beginning, halves, checked)


def larger(program: Program) -> str:
    return digest_of(texts(resized({size: trace_of(sized(program, size)) for size in (1, 2, 3)}, 5)))


def sized(program: Program, size: int) -> Program:
    """The program with computations that grow by the size, and an operation whose bytes do."""
    return {
        rank: [(name, (numbers[0] * (1 + size) ** 2,) if name == "compute" else numbers) for name, numbers in actions]
        + [("allreduce", (8.0 * size + 4, 0, -1))] * (3 + 2 * size)
        for rank, actions in program.items()
    }


def slower(rank: int, name: str, numbers: tuple[float, ...]) -> tuple[str, tuple[float, ...]]:
    """An action with nanoseconds in place of instructions, more in later processes."""
    return (name, (numbers[0] * (1.0 + 0.5 * rank),)) if name == "compute" else (name, numbers)


def timed_of(program: Program) -> Program:
    return {rank: [slower(rank, *each) for each in actions] for rank, actions in program.items()}


def jittered(program: Program) -> Trace:
    """The program with computations that differ a little each time, as measured ones do."""
    table, made = ActionTable(), []
    for rank, actions in program.items():
        numbers = []
        for at, (name, values) in enumerate(30 * [("compute", (1e6,)), *actions]):
            varied = (values[0] * (1.0 + 1e-6 * (7 * at % 1009) + 1e-9 * rank),) if name == "compute" else values
            numbers.append(table.add(name, varied))
        made.append(np.array(numbers, dtype=np.int32))
    return Trace(table, tuple(made))


if __name__ == "__main__":
    print(written_down(answers(), 9))
