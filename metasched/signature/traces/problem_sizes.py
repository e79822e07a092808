"""A run at a problem size that was not run, from runs on as many processes at other sizes (beyond the paper).

Numbers that differ between the sizes grow by a power law, or by a constant and a power: from three sizes on the form
that fits them best is taken. So do the turns of loops. Partners may not depend on the size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from metasched.arrays import Ints
from metasched.records import InputError
from metasched.signature.traces.actions import AMOUNTS, ActionTable
from metasched.signature.traces.folding import Loop, Node, folded, length, unfolded
from metasched.signature.traces.trace import Trace

#: Powers of the problem size beside a constant: of sides, faces and volumes.
POWERS = (1 / 3, 1 / 2, 2 / 3, 1.0, 4 / 3, 3 / 2, 2.0, 3.0)
#: Largest number, and most actions of all processes, at another size.
LARGEST, MOST_ACTIONS = 1e18, 50_000_000


def at_size(sizes: Sequence[float], values: Sequence[float], size: float) -> float:
    """A number at another size.

    Parameters
    ----------
    sizes : different ones, at least two.
    values : the number at each, at least 0.

    Raises
    ------
    InputError : when it would be too large.

    Examples
    --------
    >>> at_size([10, 20], [100, 400], 40), at_size([10, 20, 30], [108, 208, 308], 50)
    (1600.0, 508.0)
    """
    known, at = np.asarray(values, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if np.all(known == known[0]):
        return float(known[0])
    scale = np.maximum(known, np.finfo(np.float64).tiny)
    found: list[tuple[float, float]] = []
    if known.min() > 0.0:
        power, constant = np.polyfit(np.log(at), np.log(known), 1)
        fitted = np.exp(np.minimum(constant + power * np.log(np.append(at, size)), 700.0))
        found.append((float(np.max(np.abs(fitted[:-1] / scale - 1.0))), float(fitted[-1])))
    # Two sizes agree with every form of two coefficients: the power law is taken.
    for power in POWERS if len(at) > 2 else () if found else (1.0,):
        columns = np.stack([np.ones(len(at)), at**power], axis=1)
        weight = 1.0 / np.maximum(known, 1e-3 * known.max())
        (constant, slope), *_ = np.linalg.lstsq(columns * weight[:, None], known * weight, rcond=None)
        error = np.max(np.abs((columns @ [constant, slope] - known) * weight))
        found.append((float(error), float(max(constant + slope * size**power, 0.0))))
    # The first of those that are as good but for rounding.
    best = min(error for error, _ in found)
    chosen = next(value for error, value in found if error <= best + 1e-9)
    if not chosen < LARGEST:
        raise InputError(f"{values[-1]:g} with problem size {sizes[-1]:g} grows beyond {LARGEST:g} with {size:g}")
    return round(chosen, 9)


@dataclass
class _Resized:
    """Actions of several sizes that stand in one place, and the action at another size."""

    tables: Sequence[ActionTable]
    sizes: Sequence[float]
    size: float
    table: ActionTable = field(default_factory=ActionTable)
    known: dict[tuple[int, ...], int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    left: int = MOST_ACTIONS

    def action(self, together: tuple[int, ...]) -> int:
        """The number of the action that those of all sizes come to."""
        if together in self.known:
            return self.known[together]
        shapes = [table.shapes[table.shape[action]] for table, action in zip(self.tables, together, strict=True)]
        texts = [table.text(action) for table, action in zip(self.tables, together, strict=True)]
        if any(shape != shapes[0] for shape in shapes):
            raise _UnlikeError
        name, peers = shapes[0].name, () if shapes[0].lists else shapes[0].peers
        columns = [*zip(*([float(word) for word in text.split()[1:]] for text in texts), strict=True)]
        numbers: list[float] = []
        for place, values in enumerate(columns):
            same = len({*values}) == 1
            if not same and (place in peers or min(values) < 0.0):
                raise InputError(
                    f"{texts[0]!r} with problem size {self.sizes[0]:g} is {texts[-1]!r} with {self.sizes[-1]:g}: "
                    "expected partners that do not depend on the problem size"
                )
            number = values[0] if same else at_size(self.sizes, values, self.size)
            numbers.append(number if name in AMOUNTS else round(number))
        text = f"{name} {numbers} {shapes[0].tail}"
        if text not in self.texts:
            self.texts[text] = self.table.add(name, numbers, shapes[0].tail)
        self.known[together] = self.texts[text]
        return self.known[together]

    def process(self, processes: Sequence[Ints]) -> Ints:
        """What a process does at the other size: action by action, or loop by loop where these turn more often."""
        if len({each.size for each in processes}) == 1:
            try:
                columns, which = np.unique(np.stack(processes), axis=1, return_inverse=True)
                numbers = np.array([self.action(tuple(column)) for column in columns.T.tolist()], dtype=np.int64)
                return numbers[which.reshape(-1)]
            except _UnlikeError:
                pass
        made = self.nodes([folded(each) for each in processes])
        self.left -= length(made)
        if self.left < 0:
            raise InputError(f"the run comes to more than {MOST_ACTIONS} actions with problem size {self.size:g}")
        return unfolded(made)

    def nodes(self, programs: Sequence[Sequence[Node]]) -> tuple[Node, ...]:
        """Nodes of all sizes, one by one."""
        if len({len(each) for each in programs}) > 1:
            raise _UnlikeError
        found: list[Node] = []
        for together in zip(*programs, strict=True):
            loops = [node for node in together if isinstance(node, Loop)]
            actions = [node for node in together if not isinstance(node, Loop)]
            if not loops:
                found.append(self.action(tuple(actions)))
            elif actions:
                raise _UnlikeError
            else:
                turns = round(at_size(self.sizes, [loop.count for loop in loops], self.size))
                found.append(Loop(max(turns, 1), self.nodes([loop.body for loop in loops])))
        return tuple(found)


class _UnlikeError(Exception):
    """Actions or loops of the sizes do not stand side by side."""


def resized(runs: Mapping[float, Trace], size: float) -> Trace:
    """The run at a problem size.

    Parameters
    ----------
    runs : by problem size, all on as many processes.

    Raises
    ------
    InputError
        When there are fewer than two sizes, numbers of processes differ, or the runs do other things than each other.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> def run(size):
    ...     return trace_of({0: [("compute", (5.0 * size**2,)), ("allreduce", (8 * size, 0, -1))] * size})
    >>> made = resized({10: run(10), 20: run(20)}, 40)
    >>> made.events, [made.table.text(action) for action in made.processes[0][:2].tolist()]
    (80, ['compute 8000', 'allreduce 320 0 -1'])
    """
    sizes = sorted(runs)
    traces = [runs[each] for each in sizes]
    if len(sizes) < 2:
        raise InputError(f"there is problem size {sizes[0]:g} alone, expected at least two")
    counts = {len(trace.processes) for trace in traces}
    if len(counts) > 1:
        listed = ", ".join(map(str, sorted(counts)))
        raise InputError(f"the runs are of {listed} processes, expected one number of processes")
    made = _Resized([trace.table for trace in traces], sizes, size)
    processes = []
    for rank, together in enumerate(zip(*(trace.processes for trace in traces), strict=True)):
        try:
            processes.append(made.process([each.astype(np.int64) for each in together]).astype(np.int32))
        except _UnlikeError:
            raise InputError(
                f"process {rank} has other calls or loops with problem size {sizes[-1]:g} than with {sizes[0]:g}: "
                "expected runs whose numbers and turns of loops alone depend on it"
            ) from None
    return Trace(made.table, tuple(processes)).checked()
