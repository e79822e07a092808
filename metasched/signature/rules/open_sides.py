"""Grids so small that along a side no process has neighbours both ways, or any: what longer sides say of the calls.

A run on two processes along a side shows each of the two calls to the neighbours there, but no process that makes both,
and one process along a side shows none. The order of the calls is that along a side where processes make both; the
calls that a run lacks are those of the largest run, at the same places of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise, permutations, product

#: A call: the number of its shape, and the labels of its partners.
Call = tuple[int, ...]
#: The steps along each side that a label stands for.
Parts = Callable[[int], Sequence[float]]
#: Before the first call and after the last one.
EDGE: Call = ()
#: The side of calls that go along none, or several.
NONE = -1


class BothWays:
    """The order of the calls to both neighbours along one side, as processes that have both make them.

    Parameters
    ----------
    parts : the steps of a label along each side of the grid.
    kinds : of the number of each shape, that of all shapes which differ in their tags only.
    waits : the kinds that wait for all open requests.
    processes : the calls of processes, in order.

    Examples
    --------
    >>> known = BothWays(lambda label: [label], [0, 1], [], [[(0, 1), (1, 1)], [(0, -1), (1, -1), (0, 1), (1, 1)]])
    >>> known.first([(0, 1), (1, -1)], (0, -1), {0: 0})
    (1, -1)
    """

    def __init__(
        self, parts: Parts, kinds: Sequence[int], waits: Collection[int], processes: Sequence[Sequence[Call]]
    ) -> None:
        self._parts, self._kinds = parts, kinds
        different = {*map(tuple, processes)}
        self._ways: dict[Call, tuple[int, Call]] = {}
        for calls in sorted(different):
            # Calls to one neighbour that differ in their tags are numbered in order.
            before: dict[tuple[int, Call], int] = {}
            for call in dict.fromkeys(calls):
                side, way = self._way(call)
                place = before[side, way] = before.get((side, way), -1) + 1
                self._ways.setdefault(call, (side, (*way, place)))
        #: The calls of one turn along a side, and after which of them processes wait.
        self._order, self._pauses = self._agreed([*map(self._along, sorted(different))], waits)

    def _along(self, calls: Sequence[Call]) -> dict[int, list[Call]]:
        """The calls along each side to which a process has both neighbours, and waits that follow right after them."""
        found: dict[int, list[Call]] = {}
        last = NONE
        for side, way in map(self._ways.__getitem__, calls):
            if side != NONE or last != NONE:
                found.setdefault(last if side == NONE else side, []).append(way)
            last = side
        return {side: ways for side, ways in found.items() if {-1, 1} <= {way[1] for way in ways if len(way) > 2}}

    @staticmethod
    def _agreed(
        processes: Sequence[Mapping[int, Sequence[Call]]], waits: Collection[int]
    ) -> tuple[tuple[Call, ...], set[int]]:
        """The order of the calls along a side, and after which of them all sides wait; nothing where sides differ."""
        for form in (period, dict.fromkeys):
            orders: dict[tuple[Call, ...], set[int]] = {}
            for ways in chain.from_iterable(each.values() for each in processes):
                order, pauses = list[Call](), set[int]()
                for way in form(ways):
                    if len(way) > 2:
                        order.append(way)
                    elif way[0] in waits:
                        pauses.add(len(order) - 1)
                orders[tuple(order)] = orders.get(tuple(order), pauses) & pauses
            if len(orders) == 1:
                return orders.popitem()
        return (), set()

    def _way(self, call: Call) -> tuple[int, Call]:
        """The side that a call goes along, NONE for none or several, and its kind with its steps there."""
        steps = [self._parts(label) for label in call[1:]]
        sides = {side for each in steps for side, step in enumerate(each) if step}
        side = min(sides) if len(sides) == 1 and all(map(any, steps)) else NONE
        return side, (self._kinds[call[0]], *(int(each[side]) for each in steps if side != NONE))

    @property
    def complete(self) -> bool:
        """Whether all calls with partners go along one side each."""
        return all(side != NONE for call, (side, _) in self._ways.items() if len(call) > 1)

    def place(self, call: Call, places: Mapping[int, int]) -> tuple[int, int]:
        """The side that a call goes along, and which call there it is in the order, the first after those before it.

        Parameters
        ----------
        places : of the last call along each side.
        """
        side, way = self._ways.get(call, (NONE, call))
        if side == NONE or way not in self._order:
            return NONE, 0
        begin = places.get(side, -1) + 1
        turned = [*self._order[begin:], *self._order[:begin]]
        return side, begin + turned.index(way)

    def passed(self, call: Call, places: dict[int, int]) -> None:
        """Note the place of a call that was made."""
        side, place = self.place(call, places)
        if side != NONE:
            places[side] = place % len(self._order)

    def first(self, calls: Sequence[Call], last: Call, places: Mapping[int, int]) -> Call:
        """Which of some calls comes first: the first of them, or another along the same side that comes before it.

        Parameters
        ----------
        calls : that may come next.
        last : the last call of all.
        places : in the order, of the last call along each side.
        """
        at = {call: self.place(call, places) for call in calls}
        side, _ = at[calls[0]]
        if side != NONE:
            return min((call for call in calls if at[call][0] == side), key=lambda call: at[call][1])
        if self._ways.get(calls[0], (0, last))[0] != NONE or len(calls[0]) > 1:
            return calls[0]
        # Others may still have to call the neighbour the other way before processes wait.
        along, _ = self._ways.get(last, (NONE, last))
        before = places.get(along, NONE)
        if before == NONE or before in self._pauses or before + 1 == len(self._order):
            return calls[0]
        return next((call for call in calls[1:] if at[call] == (along, before + 1)), calls[0])


def period(ways: Sequence[Call]) -> tuple[Call, ...]:
    """The calls of one turn of a loop, of those of all its turns.

    >>> period([(0, 1), (0, 2), (0, 1), (0, 2)])
    ((0, 1), (0, 2))
    """
    period = next(
        length for length in range(1, len(ways) + 1) if all(way == ways[at % length] for at, way in enumerate(ways))
    )
    return tuple(ways[:period])


class NestedLoops:
    """The order of calls to neighbours, corners included, where loops over the sides of the grid make them.

    Parameters
    ----------
    parts : the steps of a label along each side of the grid.
    kinds : of the number of each shape, that of all shapes which differ in their tags only.
    processes : the calls of processes, in order.

    Examples
    --------
    >>> steps = {4: (-1, 1), 5: (0, -1), 6: (-1, 0), 7: (1, -1)}
    >>> known = NestedLoops(steps.__getitem__, [0], [[(0, 6), (0, 5), (0, 7)]])
    >>> known.first([(0, 5), (0, 4)], (0, 6))
    (0, 4)
    """

    def __init__(self, parts: Parts, kinds: Sequence[int], processes: Sequence[Sequence[Call]]) -> None:
        self._parts, self._kinds = parts, kinds
        by_kind: dict[int, set[Sequence[Call]]] = {}
        for calls in {*map(tuple, processes)}:
            for kind in {kinds[call[0]] for call in calls if len(call) > 1}:
                own = tuple(dict.fromkeys(call for call in calls if kinds[call[0]] == kind))
                by_kind.setdefault(kind, set()).add(own)
        longest = max(processes, key=len, default=())
        #: The kinds of two calls to one neighbour, where one follows right after the other.
        self._pairs = {
            (kinds[one[0]], kinds[other[0]])
            for one, other in pairwise(longest)
            if len(one) > 1 and one[1:] == other[1:]
        }
        #: Of each kind of call, the outermost side first and the way along all sides, as far as processes show them.
        self._loops = {kind: self._possible(different) for kind, different in by_kind.items()}

    def _possible(self, different: Collection[Sequence[Call]]) -> list[tuple[tuple[int, ...], int]]:
        sides = range(len(self._parts(next(iter(different))[0][1])))
        after = [both for calls in different for both in pairwise(calls)]
        return [
            loops
            for loops in product(permutations(sides), (1, -1))
            if all(self._key(one, loops) <= self._key(other, loops) for one, other in after)
        ]

    def _key(self, call: Call, loops: tuple[tuple[int, ...], int]) -> tuple[float, ...]:
        steps, (order, way) = self._parts(call[1]), loops
        return tuple(way * steps[side] for side in order)

    def first(self, calls: Sequence[Call], last: Call) -> Call | None:
        """Which of some calls that no process makes together comes first; None where that is not clear.

        Parameters
        ----------
        calls : that may come next.
        last : the last call.
        """
        kinds = {self._kinds[call[0]] for call in calls}
        if len(kinds) > 1 and last and len(last) > 1:
            kind = self._kinds[last[0]]
            paired = [call for call in calls if call[1:] == last[1:] and (kind, self._kinds[call[0]]) in self._pairs]
            if paired:
                return paired[0]
            # A loop is finished before the next one begins.
            kinds = {kind}
            calls = [call for call in calls if self._kinds[call[0]] == kind and self._follows(last, call)]
        if len(kinds) != 1 or not calls or any(len(call) < 2 for call in calls):
            return None
        firsts = {min(calls, key=partial(self._key, loops=loops)) for loops in self._loops[kinds.pop()]}
        return firsts.pop() if len(firsts) == 1 else None

    def _follows(self, one: Call, other: Call) -> bool:
        """Whether a call may come after another of its kind in one turn of the loops."""
        return all(self._key(one, loops) <= self._key(other, loops) for loops in self._loops[self._kinds[one[0]]])


def with_lacking(
    own: Sequence[Call], whole: Sequence[Call], lacking: Collection[Call], opens: Mapping[Call, int],
    waits: Collection[Call],
) -> list[tuple[Call, bool]] | None:  # fmt: skip
    """The calls of a run with those that it lacks, and which these are; None where their places are not clear.

    Parameters
    ----------
    own, whole : the calls of the run, and of one that lacks none, in order.
    lacking : the calls that the run lacks.
    opens : how many requests calls open.
    waits : the calls that wait for all open requests; the run lacks those that would wait for none, or makes them.

    Examples
    --------
    >>> send, other, wait = (0, 1), (0, 2), (1,)
    >>> with_lacking([send, wait], [send, other, wait], [other], {send: 1, other: 1}, [wait])
    [((0, 1), False), ((0, 2), True), ((1,), False)]
    """
    for quiet in (True, False):
        left, requests, lost = [], 0, 0
        for call in whole:
            lost += opens.get(call, 0) * (call in lacking)
            requests += opens.get(call, 0) * (call not in lacking)
            left.append(call in lacking or (quiet and call in waits and lost > 0 and not requests))
            if call in waits:
                requests = lost = 0
        blocks, agree = _blocks(whole, left)
        if agree and all(pair in blocks for pair in pairwise((EDGE, *own, EDGE))):
            made: list[tuple[Call, bool]] = []
            for before, call in pairwise((EDGE, *own, EDGE)):
                made += [(each, True) for each in blocks[before, call]]
                made.append((call, False))
            return made[:-1]
    return None


def _blocks(whole: Sequence[Call], left: Sequence[bool]) -> tuple[dict[tuple[Call, Call], list[Call]], bool]:
    """The calls left out between two others that then follow each other; whether these are always the same."""
    blocks: dict[tuple[Call, Call], list[Call]] = {}
    before, block, agree = EDGE, list[Call](), True
    for call, out in zip((*whole, EDGE), (*left, False), strict=True):
        if out:
            block.append(call)
            continue
        agree &= blocks.setdefault((before, call), block) == block
        before, block = call, []
    return blocks, agree
