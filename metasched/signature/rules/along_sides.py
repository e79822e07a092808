"""Programs whose calls along each side of a grid depend on its length: none if it is one process long.

Around a grid, whoever is two wide has one neighbour for two directions and may send once where others send twice, so
that programs of different counts differ in their calls. What belongs to a side is found by partners that differ in one
coordinate, by the same distance for all; what a side does that is longer than in any run, another one shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from metasched.arrays import Flags, Ints
from metasched.signature.equations.expressions import GUARDS
from metasched.signature.equations.topologies import coordinates
from metasched.signature.traces.folding import Loop, Node, folded
from metasched.signature.traces.matching import Places, Program, Repeat, laid_out, program_of
from metasched.signature.traces.trace import Trace

#: How long a side is: one process, two, or more.
LENGTHS = ("", "two", "wide")
#: Names of guards: of sides of two, of longer ones, of both.
TWO, WIDE, MANY = "two", "wide", "many"


class Call(NamedTuple):
    """A call together with the computation before it.

    Parameters
    ----------
    shapes : of its actions, by number.
    shifts : of each partner along the side, as far as there are any.
    """

    shapes: tuple[int, ...]
    shifts: tuple[int, ...] = ()


#: What is done along one side, without a break.
Stretch = tuple[Call, ...]


@dataclass(frozen=True)
class Calls:
    """The calls of the processes of a role in one run; those that all of them repeat, only once.

    Parameters
    ----------
    ranks : of the role.
    peers : the partners, an array of shape (ranks, columns, 2), -1 for none.
    asked : how many partners the actions of a column have, an array of shape (columns,).
    shapes : of each different call those of its actions, computation first.
    columns : of each different call, -1 for none: what is computed at the end.
    which : the different call that each is, in order, an array of shape (calls,).
    """

    ranks: Ints
    peers: Ints
    asked: Ints
    shapes: tuple[tuple[int, ...], ...]
    columns: tuple[int, ...]
    which: Ints

    @classmethod
    def of(cls, trace: Trace, ranks: Ints, shapes: Ints, amounts: Flags) -> Calls:
        """The calls of some ranks of a trace, from the shapes of their actions and which shapes are computations."""
        actions, which = np.unique(
            np.stack([trace.processes[rank] for rank in ranks.tolist()]), axis=1, return_inverse=True
        )
        table = trace.table
        of_shape = [shape.peers for shape in table.shapes]
        peers = np.full((len(table.shape), 2), -1, dtype=np.int64)
        for action, shape in enumerate(table.shape):
            if places := of_shape[shape]:
                peers[action, : len(places)] = [table.numbers[action][place] for place in places]
        many = np.array([len(each) for each in of_shape], dtype=np.int64)
        different: dict[tuple[tuple[int, ...], int], int] = {}
        order: list[int] = []
        before: tuple[int, ...] = ()
        for column, shape, amount in zip(
            which.reshape(-1).tolist(), shapes.tolist(), amounts[shapes].tolist(), strict=True
        ):
            before = (*before, shape)
            if not amount:
                order.append(different.setdefault((before, column), len(different)))
                before = ()
        if before:
            order.append(different.setdefault((before, -1), len(different)))
        return cls(
            ranks, peers[actions], many[trace.shapes[actions[0]]], tuple(each for each, _ in different),
            tuple(column for _, column in different), np.array(order, dtype=np.int64),
        )  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """The calls of the processes of a role in one run.

    Parameters
    ----------
    calls : of all of them.
    shapes : of the actions of each of them, an array of shape (events,).
    partnered : of each shape, whether it has partners.
    sides : of the grid.
    """

    calls: Calls
    shapes: Ints
    partnered: Flags
    sides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Along:
    """Where an action of the program stands: along which side, and its partners; like which one it is.

    Parameters
    ----------
    side : the dimension.
    shifts : of each partner along it.
    part : what is done there, by the number of the stretch, its guard, and the place in it; the same for actions that
        are alike, of other sides too.
    """

    side: int
    shifts: tuple[int, ...]
    part: tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Shown:
    """A stretch of calls observed along a side of two, and along a longer one.

    Parameters
    ----------
    number, side : of the stretch.
    narrow, wide : what is done there.
    """

    number: int
    side: int
    narrow: Stretch
    wide: Stretch


@dataclass
class Sided:
    """A program whose stretches along sides are guarded by their length.

    Attributes
    ----------
    program : all stretches, each in a loop that runs once or not at all.
    astray : calls with partners, of one process of each run, that go along no side.
    guards : by loop, the dimension and the name of the guard.
    counts : by loop, how often any other one runs.
    along : by action, where it stands; nothing for those that go along no side.
    borrowed : by part, the part of another side that shows it.
    """

    program: Program
    astray: int = 0
    guards: dict[int, tuple[int, str]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    along: dict[int, Along] = field(default_factory=dict)
    borrowed: dict[tuple[int, str, int], tuple[int, tuple[int, str, int]]] = field(default_factory=dict)

    def places(self, sides: tuple[int, ...]) -> Places:
        """Where each action stands in a grid."""

        def count_of(repeat: Repeat, steps: Ints, counts: Ints) -> Ints:
            if repeat.number in self.guards:
                dimension, guard = self.guards[repeat.number]
                return np.full(len(steps), int(holds(guard, sides[dimension])))
            return np.full(len(steps), self.counts[repeat.number])

        places, _ = laid_out(self.program, count_of)
        return places.without_counts(self.program)

    def shapes(self, sides: tuple[int, ...]) -> Ints:
        """The shapes of the actions in a grid, in order."""
        places = self.places(sides)
        size = sum(len(rows) for rows in places.leaves)
        found = np.zeros(size, dtype=np.int64)
        for leaf, rows in zip(self.program.leaves, places.leaves, strict=True):
            found[rows[:, 0]] = leaf.shape
        return found


def holds(guard: str, length: int) -> bool:
    """Whether a guarded stretch runs along a side of ``length`` processes.

    Examples
    --------
    >>> [holds("two", 2), holds("wide", 2), holds("many", 2), holds("many", 1)]
    [True, False, True, False]
    """
    return bool(GUARDS[guard](np.array(float(length))))


class _Cut:
    """Calls in order, cut where others follow than those along one side.

    Parameters
    ----------
    seen : the calls.

    Attributes
    ----------
    directed : whether any goes along a side.
    begins : where stretches begin: of calls along one side in a row together, others each by itself.
    """

    def __init__(self, seen: Seen) -> None:
        calls, self.which = seen.calls, seen.calls.which
        own, known = coordinates(calls.ranks, seen.sides), calls.peers >= 0
        theirs = coordinates(np.where(known, calls.peers, 0), seen.sides)
        shifts = np.stack(
            [np.mod(at - mine[:, None, None], side) for at, mine, side in zip(theirs, own, seen.sides, strict=True)]
        )
        shifts[:, ~known] = 0
        steady = np.all(shifts == shifts[:, :1], axis=(0, 1, 3)) & np.all(known == known[:1], axis=(0, 2))
        first, here = shifts[:, 0], known[0]
        moved = np.any(first > 0, axis=2)
        goes = steady & (moved.sum(axis=0) == 1) & (calls.asked > 0) & (here.sum(axis=1) == calls.asked)
        side = [*np.where(goes, np.argmax(moved, axis=0), -1).tolist(), -1]
        #: Each different call, with the side that it goes along, -1 for none.
        self.different: list[tuple[int, Call]] = []
        for shapes, column in zip(calls.shapes, calls.columns, strict=True):
            dimension, by = side[column], tuple[int, ...]()
            if dimension >= 0:
                length = seen.sides[dimension]
                far = first[dimension, column, : calls.asked[column]].tolist()
                by = tuple(each - length if 2 * each > length else each for each in far)
            self.different.append((dimension, Call(shapes, by)))
        sides = np.array([each for each, _ in self.different])[self.which]
        self.directed = bool(np.any(sides >= 0))
        self.begins = np.flatnonzero((sides < 0) | (np.diff(sides, prepend=-1) != 0))

    def stretches(self) -> list[tuple[int, Stretch]]:
        """The stretches, with the side that each goes along."""
        calls = [self.different[each] for each in self.which.tolist()]
        bounds = [*self.begins.tolist(), len(calls)]
        return [(calls[begin][0], tuple(call for _, call in calls[begin:end])) for begin, end in pairwise(bounds)]


def _shapes(stretch: Stretch) -> list[tuple[int, ...]]:
    return [call.shapes for call in stretch]


#: What it costs to take a stretch for another one, for its begin or end, for what is left of it without what both
#: lengths have in common, for its content; the cheapest is believed.
WHOLE, EDGE, REST, INSIDE = 1.0, 1.4, 1.5, 1.6


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the common prefix of two sequences."""
    same = (mine == theirs for mine, theirs in zip(one, other, strict=False))
    return next((at for at, each in enumerate(same) if not each), min(len(one), len(other)))


def _shown_elsewhere(stretch: Stretch, shown: Sequence[Shown]) -> list[tuple[Shown, int, Call]] | None:
    """The calls along a side of two if it were longer, piece by piece as observed along another side.

    A piece is all that the other side does at one place, or, where that has the same calls at both lengths, part of it.

    Returns
    -------
    Of each call, what shows it, its place there, and the call; None where nothing shows all pieces.
    """
    wanted = _shapes(stretch)
    pieces: list[tuple[float, list[tuple[int, ...]], Shown, int, Stretch]] = []
    for each in shown:
        shapes = _shapes(each.narrow)
        pieces.append((WHOLE, shapes, each, 0, each.wide))
        if shapes == _shapes(each.wide):
            for begin in range(len(shapes)):
                for end in range(begin + 1, len(shapes) + 1):
                    cost = EDGE if begin == 0 or end == len(shapes) else INSIDE
                    pieces.append((cost, shapes[begin:end], each, begin, each.wide[begin:end]))
            continue
        longer = _shapes(each.wide)
        before, behind = _common(shapes, longer), _common(shapes[::-1], longer[::-1])
        for begin in range(before + 1):
            for end in range(behind + (begin == 0)):
                left = shapes[begin : len(shapes) - end]
                if left and (begin or end):
                    pieces.append((REST, left, each, begin, each.wide[begin : len(longer) - end]))
    best: list[tuple[float, list[tuple[Shown, int, Call]]] | None] = [(0.0, []), *[None] * len(wanted)]
    for at in range(len(wanted)):
        reached = best[at]
        if reached is None:
            continue
        for cost, shapes, each, begin, wide in pieces:
            end = at + len(shapes)
            then = best[end] if end <= len(wanted) else None
            if wanted[at:end] == shapes and (then is None or reached[0] + cost < then[0]):
                found = [(each, begin + place, call) for place, call in enumerate(wide)]
                best[end] = reached[0] + cost, [*reached[1], *found]
    return best[-1][1] if best[-1] is not None else None


def program_along_sides(runs: Sequence[Seen]) -> Sided | None:
    """The program that all runs share where stretches along sides depend on their length; None where there is none.

    Parameters
    ----------
    runs : of a role, one of each count.
    """
    full = [place for place, run in enumerate(runs) if min(run.sides) > 1]
    if not full:
        return None
    cuts = [_Cut(runs[full[0]])]
    if not cuts[0].directed:
        return None
    for place in full[1:]:
        cuts.append(_Cut(runs[place]))
        if cuts[-1].begins.size != cuts[0].begins.size:
            return None
    parts = [each.stretches() for each in cuts]
    numbers: dict[tuple[tuple[int, Stretch], ...], int] = {}
    symbols = []
    for together in zip(*parts, strict=True):
        side = together[0][0]
        if any(each[0] != side for each in together) or (side < 0 and len({*together}) > 1):
            return None
        symbols.append(numbers.setdefault(together, len(numbers)))
    # Of each stretch, what is done along a side of two, and along a longer one.
    known: dict[int, dict[str, Stretch]] = {}
    side_of: dict[int, int] = {}
    for together, number in numbers.items():
        side_of[number] = together[0][0]
        for place, (side, stretch) in zip(full, together, strict=True):
            length = LENGTHS[min(runs[place].sides[side], 3) - 1] if side >= 0 else ""
            if known.setdefault(number, {}).setdefault(length, stretch) != stretch:
                return None
    shown = [
        Shown(number, side_of[number], each[TWO], each[WIDE])
        for number, each in known.items()
        if TWO in each and WIDE in each
    ]
    borrowed: dict[tuple[int, str, int], tuple[int, tuple[int, str, int]]] = {}
    guarded: dict[int, list[tuple[str, Stretch]]] = {}
    origin: dict[int, list[tuple[Shown, int, Call]]] = {}
    for number, each in known.items():
        if side_of[number] < 0:
            continue
        if TWO in each and WIDE not in each:
            found = _shown_elsewhere(each[TWO], shown)
            if found is None and shown:
                return None
            if found is not None:
                each[WIDE] = tuple(call for _, _, call in found)
                origin[number] = found
        if TWO in each and WIDE in each and _shapes(each[TWO]) != _shapes(each[WIDE]):
            guarded[number] = [(TWO, each[TWO]), (WIDE, each[WIDE])]
        else:
            guarded[number] = [(MANY, each.get(WIDE, each.get(TWO, ())))]
    for number, pieces in origin.items():
        guard = guarded[number][-1][0]
        for at, (other, begin, _) in enumerate(pieces):
            borrowed[number, guard, at] = other.side, (other.number, guarded[other.number][-1][0], begin)
    sided = _checked(_assembled(symbols, numbers, side_of, guarded, borrowed), runs)
    if sided is not None:
        parts += [_Cut(run).stretches() for place, run in enumerate(runs) if place not in full]
        sided.astray = sum(_astray(runs[0].partnered, part) for part in parts)
    return sided


def _astray(partnered: Flags, parts: Sequence[tuple[int, Stretch]]) -> int:
    """How many calls with partners go along no side."""
    return sum(bool(partnered[call.shapes[-1]]) for side, stretch in parts if side < 0 for call in stretch)


def _assembled(
    symbols: Sequence[int],
    numbers: dict[tuple[tuple[int, Stretch], ...], int],
    side_of: dict[int, int],
    guarded: dict[int, list[tuple[str, Stretch]]],
    borrowed: dict[tuple[int, str, int], tuple[int, tuple[int, str, int]]],
) -> Sided:
    """The program of folded stretches, with what is known of its loops and actions."""
    plain = {number: together[0][1] for together, number in numbers.items()}
    loops: list[tuple[int, str] | int] = []
    about: list[Along | None] = []

    def nodes(inside: Sequence[Node]) -> tuple[Node, ...]:
        made: list[Node] = []
        for node in inside:
            if isinstance(node, Loop):
                loops.append(node.count)
                made.append(Loop(node.count, nodes(node.body)))
            elif side_of[node] < 0:
                shapes = [shape for call in plain[node] for shape in call.shapes]
                made += shapes
                about.extend([None] * len(shapes))
            else:
                for guard, stretch in guarded[node]:
                    loops.append((side_of[node], guard))
                    made.append(Loop(1, tuple(shape for call in stretch for shape in call.shapes)))
                    for place, call in enumerate(stretch):
                        # Of the actions of a call the last one is the call itself.
                        part = node, guard, place
                        about.extend([Along(side_of[node], (), part)] * (len(call.shapes) - 1))
                        about.append(Along(side_of[node], call.shifts, part))
        return tuple(made)

    sided = Sided(program_of(nodes(folded(np.array(symbols)))), borrowed=borrowed)
    for number, loop in enumerate(loops):
        if isinstance(loop, tuple):
            sided.guards[number] = loop
        else:
            sided.counts[number] = loop
    sided.along = {place: each for place, each in enumerate(about) if each is not None}
    return sided


def _checked(sided: Sided, runs: Sequence[Seen]) -> Sided | None:
    """The program, where it gives back the calls of every run."""
    for run in runs:
        made = sided.shapes(run.sides)
        if made.size != run.shapes.size or np.any(made != run.shapes):
            return None
    return sided
