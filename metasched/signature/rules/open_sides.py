"""Grids so small that along a side no process has neighbours both ways, or any: what longer sides say of the calls.

A run on two processes along a side shows each of the two calls to the neighbours there, but no process that makes both,
and one process along a side shows none. The order of the calls is that along a side where processes make both; the
calls that a run lacks are those of the largest run, at the same places of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

#: A call: the number of its shape, and the labels of its partners.
Call = tuple[int, ...]
#: The steps along each side that a label stands for.
Parts = Callable[[int], Sequence[float]]
#: Before the first call and after the last one.
EDGE: Call = ()
#: The side under which the last call along any stands.
ANY = -1


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
    >>> known.first([(0, 1), (1, -1)], {0: (0, -1)})
    (1, -1)
    """

    def __init__(
        self, parts: Parts, kinds: Sequence[int], waits: Collection[int], processes: Sequence[Sequence[Call]]
    ) -> None:
        self._parts, self._kinds = parts, kinds
        different = [[*calls] for calls in dict.fromkeys(tuple(dict.fromkeys(each)) for each in processes)]
        self._ways: dict[Call, tuple[int, Call]] = {}
        for calls in different:
            # Calls to one neighbour that differ in their tags are numbered in order.
            before: dict[tuple[int, Call], int] = {}
            for call in calls:
                side, way = self._way(call)
                place = before[side, way] = before.get((side, way), -1) + 1
                self._ways.setdefault(call, (side, (*way, place)))
        orders: dict[tuple[Call, ...], set[Call]] = {}
        for whole in {tuple(each) for each in processes}:
            along: dict[int, dict[Call, bool]] = {}
            last = -1
            for side, way in map(self._ways.__getitem__, whole):
                if side < 0 and way[0] in waits and last >= 0:
                    along[last][[*along[last]][-1]] = True
                elif side >= 0:
                    along.setdefault(side, {}).setdefault(way, False)
                last = side
            for ways in along.values():
                if {-1, 1} <= {way[1] for way in ways}:
                    waited = {way for way, waits_then in ways.items() if waits_then}
                    orders[(*ways,)] = orders.get((*ways,), waited) & waited
        # Where sides have orders of their own, none says anything of another one.
        ((order, pauses),) = orders.items() if len(orders) == 1 else (((), set()),)
        self._order = {way: place for place, way in enumerate(order)}
        self._pauses = pauses

    def _way(self, call: Call) -> tuple[int, Call]:
        """The side that a call goes along, -1 for none or several, and its kind with its steps there."""
        steps = [self._parts(label) for label in call[1:]]
        sides = {side for each in steps for side, step in enumerate(each) if step}
        side = min(sides) if len(sides) == 1 and all(map(any, steps)) else -1
        return side, (self._kinds[call[0]], *(int(each[side]) for each in steps if side >= 0))

    @property
    def complete(self) -> bool:
        """Whether all calls with partners go along one side each."""
        return all(side >= 0 for call, (side, _) in self._ways.items() if len(call) > 1)

    def side(self, call: Call) -> int:
        """The side that a call goes along, -1 where it goes along none or several."""
        return self._ways[call][0]

    def first(self, calls: Sequence[Call], last: Mapping[int, Call]) -> Call:
        """Which of some calls comes first: the first of them, or another along the same side that comes before it.

        Parameters
        ----------
        calls : that may come next.
        last : the last call along each side so far, and of all.
        """
        (side, way), many = self._ways[calls[0]], len(self._order)
        if side < 0:
            # Others may still have to call the neighbour the other way before processes wait.
            return next((call for call in calls[1:] if self._follows(last.get(ANY, EDGE), call)), calls[0])
        if way not in self._order:
            return calls[0]
        before = self._order.get(self._ways[last[side]][1], -1) if side in last else -1
        along = {call: self._order[way] for call in calls for at, way in [self._ways[call]]
                 if at == side and way in self._order}  # fmt: skip
        return min(along, key=lambda call: (along[call] - before - 1) % many)

    def _follows(self, before: Call, call: Call) -> bool:
        """Whether a call comes right after another one along the same side."""
        if not before or self.side(before) < 0 or self.side(before) != self.side(call):
            return False
        one, other = self._ways[before][1], self._ways[call][1]
        return one not in self._pauses and self._order.get(other, -1) == self._order.get(one, -2) + 1


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
