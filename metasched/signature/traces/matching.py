"""Matching of a program with loops to a sequence: the count of each loop, and the position of each action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from metasched.arrays import Ints
from metasched.signature.traces.folding import Loop, Node


@dataclass(frozen=True, slots=True)
class Leaf:
    """An action of a program: its number among them, its shape, and the loops around it, outermost first."""

    number: int
    shape: int
    loops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop of a program: its number, the loops around it, and what it repeats."""

    number: int
    loops: tuple[int, ...]
    body: tuple[Part, ...]


Part = Leaf | Repeat
#: How often a loop runs each time: by the loop, the steps and the counts of those around it, one row each time.
CountOf = Callable[[Repeat, Ints, Ints], Ints]


@dataclass
class Program:
    """Leaves and loops as a tree, and as lists by number."""

    parts: tuple[Part, ...] = ()
    leaves: list[Leaf] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list)


def program_of(nodes: Sequence[Node]) -> Program:
    """The program whose counts are open, from a folded sequence of shapes."""
    program = Program()
    spare: list[Repeat | None] = []

    def made(inside: Sequence[Node], loops: tuple[int, ...]) -> tuple[Part, ...]:
        parts: list[Part] = []
        for node in inside:
            if isinstance(node, Loop):
                number = len(spare)
                spare.append(None)
                repeat = Repeat(number, loops, made(node.body, (*loops, number)))
                spare[number] = repeat
                parts.append(repeat)
            else:
                leaf = Leaf(len(program.leaves), node, loops)
                program.leaves.append(leaf)
                parts.append(leaf)
        return tuple(parts)

    program.parts = made(nodes, ())
    program.repeats = [each for each in spare if each is not None]
    return program


@dataclass
class Places:
    """The positions of a program's actions in a sequence.

    Attributes
    ----------
    leaves : of each leaf, positions and the steps of the loops around it, an array of shape (k, 1 + loops).
    repeats : of each loop, the steps of the loops around it and how often it ran, of shape (k, loops + 1).
    """

    leaves: list[Ints]
    repeats: list[Ints]

    def leaf(self, number: int) -> tuple[Ints, Ints]:
        """Positions, shape (k,), and steps, shape (k, loops), of a leaf."""
        table = self.leaves[number]
        return table[:, 0], table[:, 1:]

    def without_counts(self, program: Program) -> Places:
        """The places without the counts of loops that :func:`laid_out` puts behind the steps of each action."""
        leaves = [table[:, : 1 + len(leaf.loops)] for leaf, table in zip(program.leaves, self.leaves, strict=True)]
        return Places(leaves, self.repeats)


def matched(program: Program, sequence: Sequence[int]) -> Places | None:
    """Match a program to a whole sequence of shapes, loops greedily; None if it does not fit.

    >>> from metasched.signature.traces.folding import folded
    >>> places = matched(program_of(folded([1, 2, 2, 2, 3])), [1, 2, 2, 3])
    >>> places.repeats, places.leaf(1)[0].tolist()
    ([array([[2]])], [1, 2])
    """
    leaves: list[list[tuple[int, ...]]] = [[] for _ in program.leaves]
    repeats: list[list[tuple[int, ...]]] = [[] for _ in program.repeats]
    size = len(sequence)

    def run(parts: tuple[Part, ...], at: int, steps: tuple[int, ...]) -> int:
        for part in parts:
            if isinstance(part, Leaf):
                if at >= size or sequence[at] != part.shape:
                    return -1
                leaves[part.number].append((at, *steps))
                at += 1
                continue
            count = 0
            while True:
                marks = [len(each) for each in leaves], [len(each) for each in repeats]
                after = run(part.body, at, (*steps, count)) if _may_begin(part, sequence, at, size) else -1
                # A turn in which no inner loop runs would be followed by as many more of them as one likes.
                if after <= at:
                    for kept, lists in zip(marks, (leaves, repeats), strict=True):
                        for length, each in zip(kept, lists, strict=True):
                            del each[length:]
                    break
                at, count = after, count + 1
            repeats[part.number].append((*steps, count))
        return at

    if run(program.parts, 0, ()) != size:
        return None
    return Places(
        [_table(rows, len(each.loops)) for each, rows in zip(program.leaves, leaves, strict=True)],
        [_table(rows, len(each.loops)) for each, rows in zip(program.repeats, repeats, strict=True)],
    )


def _table(rows: Sequence[tuple[int, ...]], loops: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(len(rows), loops + 1)


def _may_begin(repeat: Repeat, sequence: Sequence[int], at: int, size: int) -> bool:
    """Whether a loop's body can begin here, by its first action."""
    first = repeat.body[0]
    return at < size and (not isinstance(first, Leaf) or sequence[at] == first.shape)


def merged(one: Sequence[Node], other: Sequence[Node]) -> tuple[Node, ...] | None:
    """Two folded sequences of one program as one that has the loops of both; None where more than counts differ.

    What one repeats may stand in the other once without being folded, or not at all.

    >>> from metasched.signature.traces.folding import folded
    >>> merged(folded([1, 2, 2, 3, 4]), folded([1, 2, 3, 4, 3, 4]))
    (1, Loop(count=2, body=(2,)), Loop(count=2, body=(3, 4)))
    """
    found, at = _merged(one, other, 0, True) or ((), -1)
    return found if at == len(other) else None


def _merged(one: Sequence[Node], other: Sequence[Node], at: int, whole: bool) -> tuple[tuple[Node, ...], int] | None:
    """All of one sequence merged with another from a place on, and where that ends; None where they differ."""
    found: list[Node] = []
    place = 0
    while place < len(one) or (whole and at < len(other)):
        mine = one[place] if place < len(one) else None
        theirs = other[at] if at < len(other) else None
        if mine == theirs and mine is not None:
            found.append(mine)
            place, at = place + 1, at + 1
        elif isinstance(mine, Loop) and isinstance(theirs, Loop) and (body := merged(mine.body, theirs.body)):
            found.append(Loop(max(mine.count, theirs.count), body))
            place, at = place + 1, at + 1
        elif isinstance(mine, Loop) and (once := _merged(mine.body, other, at, False)):
            found.append(Loop(mine.count, once[0]))
            place, at = place + 1, once[1]
        elif isinstance(theirs, Loop) and (once := _merged(theirs.body, one, place, False)):
            found.append(Loop(theirs.count, once[0]))
            place, at = once[1], at + 1
        elif isinstance(mine, Loop):
            found.append(mine)
            place += 1
        elif isinstance(theirs, Loop):
            found.append(theirs)
            at += 1
        else:
            return None
    return tuple(found), at


def likened(program: Program, nodes: Sequence[Node]) -> Places | None:
    """Liken a program to a folded sequence, loop by loop; None where the loops are not the same but for their counts.

    A loop of the program may be missing in the sequence, or be there once without being folded.

    >>> from metasched.signature.traces.folding import folded
    >>> places = likened(program_of(folded([1, 2, 2, 2, 3])), folded([1, 2, 2, 3]))
    >>> places.repeats, places.leaf(1)[0].tolist()
    ([array([[2]])], [1, 2])
    """
    counts: dict[int, int] = {}

    def alike(parts: tuple[Part, ...], inside: Sequence[Node], at: int, whole: bool) -> int:
        for part in parts:
            if isinstance(part, Leaf):
                if at >= len(inside) or inside[at] != part.shape:
                    return -1
                at += 1
                continue
            node = inside[at] if at < len(inside) else None
            before = dict(counts)
            while isinstance(node, Loop) and alike(part.body, node.body, 0, True) < 0:
                counts.clear()
                counts.update(before)
                # Where partners on both sides are one, what is a loop elsewhere is a loop of pairs.
                node = _flattened(node)
            if isinstance(node, Loop):
                count, after = node.count, at + 1
            else:
                counts.clear()
                counts.update(before)
                after = alike(part.body, inside, at, False)
                count = int(after >= 0)
                if not count:
                    counts.clear()
                    counts.update(before)
                    after = at
            if count and counts.setdefault(part.number, count) != count:
                return -1
            counts.setdefault(part.number, 0)
            at = after
        return at if not whole or at == len(inside) else -1

    if alike(program.parts, nodes, 0, True) < 0:
        return None
    places, _ = laid_out(program, lambda repeat, steps, around: np.full(len(steps), counts.get(repeat.number, 0)))
    # Whoever lays out knows the counts around each action; here they follow from the loops themselves.
    return places.without_counts(program)


def _flattened(node: Loop) -> Loop | None:
    """A loop of nothing but a loop as one; None for another."""
    inner = node.body[0]
    return Loop(node.count * inner.count, inner.body) if len(node.body) == 1 and isinstance(inner, Loop) else None


#: Most actions that one process may be given.
MOST_LAID_OUT = 5_000_000


def laid_out(program: Program, count_of: CountOf) -> tuple[Places, int]:
    """Lay out a program: the positions of all actions for given loop counts.

    Parameters
    ----------
    count_of : called with a loop, the steps and the counts of the loops around it; arrays of shape (times, loops).

    Returns
    -------
    places : those of the actions with the counts of the loops around them behind their steps.
    size : how many actions there are.

    Raises
    ------
    ValueError : when there would be more than :data:`MOST_LAID_OUT`.

    Examples
    --------
    >>> from metasched.signature.traces.folding import Loop
    >>> program = program_of((7, Loop(1, (1, Loop(1, (2,))))))
    >>> places, size = laid_out(program, lambda loop, steps, counts: 1 + steps.sum(axis=1) + (loop.number == 0))
    >>> size, places.leaves[2].tolist()
    (6, [[2, 0, 0, 2, 1], [4, 1, 0, 2, 2], [5, 1, 1, 2, 2]])
    """
    turns: dict[int, _Turns] = {}

    def measured(parts: tuple[Part, ...], steps: Ints, counts: Ints) -> Ints:
        """How many actions parts are each time; all times at once, so that it takes no longer where loops are long."""
        size = np.zeros(len(steps), dtype=np.int64)
        for part in parts:
            if isinstance(part, Leaf):
                size += 1
                continue
            times = np.minimum(count_of(part, steps, counts), MOST_LAID_OUT + 1) if len(steps) else size
            if times.sum() > MOST_LAID_OUT:
                raise ValueError(f"a process would have more than {MOST_LAID_OUT} actions")
            around = np.repeat(np.arange(times.size), times)
            step = np.arange(around.size) - np.repeat(np.cumsum(times) - times, times)
            inside = np.column_stack([steps[around], step]), np.column_stack([counts[around], times[around]])
            each = measured(part.body, *inside)
            turns[part.number] = made = _Turns(times, around, *inside, each)
            size += made.size
        return size

    places = Places([_table((), 0)] * len(program.leaves), [_table((), 0)] * len(program.repeats))

    def put(parts: tuple[Part, ...], at: Ints, steps: Ints, counts: Ints) -> None:
        for part in parts:
            if isinstance(part, Leaf):
                places.leaves[part.number] = np.column_stack([at, steps, counts])
                at = at + 1
                continue
            made = turns[part.number]
            places.repeats[part.number] = np.column_stack([steps, made.times])
            begin = (at - np.cumsum(made.size) + made.size)[made.around] + np.cumsum(made.each) - made.each
            put(part.body, begin, made.steps, made.counts)
            at = at + made.size

    once = np.zeros((1, 0), dtype=np.int64)
    size = int(measured(program.parts, once, once)[0])
    if size > MOST_LAID_OUT:
        raise ValueError(f"a process would have more than {MOST_LAID_OUT} actions")
    put(program.parts, np.zeros(1, dtype=np.int64), once, once)
    return places, size


@dataclass(frozen=True)
class _Turns:
    """The turns of a loop, of all times that it is run.

    Attributes
    ----------
    times : how often it turns each time.
    around : of each turn, which time it belongs to.
    steps, counts : of each turn those of all loops around what is done in it, with the loop itself.
    each : how many actions each turn is.
    """

    times: Ints
    around: Ints
    steps: Ints
    counts: Ints
    each: Ints

    @property
    def size(self) -> Ints:
        """How many actions the loop is each time."""
        return np.bincount(self.around, self.each, minlength=self.times.size).astype(np.int64)
