"""The q-th largest value among the first entries of a group, for very many groups and queries at once.

Each group has a wavelet tree (Grossi, Gupta, Vitter: High-order entropy-compressed text indexes, SODA 2003), which
halves it repeatedly by the ranks of its values, and stores for every entry how many entries of its half, up to itself,
are in the better half of the next level. A query descends the tree with one count on each level. So a million queries
take a few vectorised gathers. Each entry has a weight, the processors of a node, so that a query is for the q-th
processor and not for the q-th node. Ranks are counted within a group, with ties broken by position: then a part of the
tree begins where its ranks begin, and only its end has to be looked up. Groups with the same number of bits of rank
share one tree.

Queries for whole groups, and for the smallest of some entries, need no tree. Nor do queries that end at only a few
places of each group, such as those of a cluster whose links are mostly alike: the values up to there are counted in
their falling order. So trees are only built for other queries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.arrays import Floats, Ints

Counts = NDArray[np.int32]

#: What sums begin with.
ZERO: Counts = np.zeros(1, dtype=np.int32)
#: Places of a group at which queries may end to be answered without a tree, or as many as make so many counts.
FEW_ENDS, MOST_COUNTED = 12, 1 << 16


class PrefixQuantiles:
    """Finds the q-th largest value among the first entries of groups, where each entry counts as often as its weight.

    Parameters
    ----------
    values : array of shape (m,).
    weights : array of shape (m,), whole numbers of at least 1.
    start : array of shape (g,), where each group begins, ascending from 0; it ends where the next begins.

    Attributes
    ----------
    falling : array of shape (m,), the values of each group in falling order.

    Examples
    --------
    >>> best = PrefixQuantiles([0.5, 0.9, 0.7, 0.9, 0.2], [1, 2, 1, 1, 1], [0, 4])
    >>> best.largest([0, 0, 0, 1], [4, 3, 1, 1], [3, 3, 1, 1]).tolist()
    [0.9, 0.7, 0.5, 0.2]
    """

    def __init__(self, values: ArrayLike, weights: ArrayLike, start: ArrayLike) -> None:
        values, self._weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.int64)
        self._start: Ints = np.asarray(start, dtype=np.int64)
        self._sizes: Ints = np.diff(np.append(self._start, values.size))
        group = np.repeat(np.arange(self._sizes.size), self._sizes)
        self._group, self._order = group, (order := falling_in_groups(values, group))
        self.falling: Floats = values[order]
        alike = (self.falling[1:] == self.falling[:-1]) & (group[1:] == group[:-1])
        self._equal: Ints = np.arange(values.size)
        self._equal[1:][alike] = 0
        np.maximum.accumulate(self._equal, out=self._equal)
        self._place = np.empty(values.size, dtype=np.int64)
        self._place[order] = np.arange(values.size)
        # Groups lie one behind the other, so these need no account of where each begins.
        self._least = np.maximum.accumulate(self._place)
        self._falling_weights = self._weights[order]
        self._before, self._before_falling = (
            np.concatenate([np.zeros(1, np.int64), np.cumsum(each)]) for each in (self._weights, self._falling_weights)
        )
        self._trees: _Trees | None = None

    def largest(self, group: ArrayLike, count: ArrayLike, q: ArrayLike) -> Floats:
        """The q-th largest value of each stretch; q counts from 1 and is at most the stretch's weight.

        Parameters
        ----------
        group, count, q : arrays of shape (k,): the first ``count`` entries of a group are asked about.
        """
        return self.falling.take(self.places(*(np.asarray(each, dtype=np.int64) for each in (group, count, q))))

    def places(self, group: Ints, count: Ints, q: Ints) -> Ints:
        """The places of the same values in :attr:`falling`, shape (k,), the first of equal ones in a group.

        Parameters
        ----------
        group : of each query, shape (k,).
        count : the first so many entries of the group are asked about, shape (k,).
        q : which of their values is asked for, from 1, an entry counting as often as its weight; shape (k,).
        """
        start = self._start.take(group)
        end, sought = start + count, self._before.take(start) + q
        place = self._least.take(end - 1, mode="clip")
        asked = count == self._sizes.take(group)
        whole = np.flatnonzero(asked)
        place[whole] = np.searchsorted(self._before_falling, sought.take(whole)) - 1
        asked |= sought == self._before.take(end)  # the least of some entries
        rest = np.flatnonzero(~asked)
        place = self._equal.take(place)
        if rest.size:
            place[rest] = self.places_inside(*(each.take(rest) for each in (group, count, q)))
        return place

    def least(self, group: Ints, count: Ints) -> Ints:
        """The places in :attr:`falling` of the least values of stretches, shape (k,).

        Parameters
        ----------
        group, count : arrays of shape (k,): the first ``count`` entries of a group, one at least.
        """
        return np.asarray(self._least.take(self._start.take(group) + count - 1))

    def places_inside(self, group: Ints, count: Ints, q: Ints) -> Ints:
        """The same for stretches of neither whole groups nor so few entries."""
        if self._trees is None:
            place = self._places_of_few(group, self._start.take(group) + count, q)
            if place is not None:
                return self._equal.take(place)
            self._trees = _Trees(self._place, self._weights, self._start, self._sizes)
        found = self._trees.rank(group, count, q)
        found += self._start.take(group)
        return self._equal.take(found)

    def _places_of_few(self, group: Ints, end: Ints, q: Ints) -> Ints | None:
        """The places by counting, a row for each end in a group; None if these are many.

        Parameters
        ----------
        group, q : of the queries, shape (k,).
        end : the entry after the last that each is about, shape (k,).
        """
        ends = np.flatnonzero(np.bincount(end))
        owner = self._group.take(ends - 1)
        turn = np.arange(ends.size) - np.searchsorted(owner, owner)
        rows, entries = int(turn.max(initial=-1)) + 1, self._order.size
        if rows > FEW_ENDS and rows * entries > MOST_COUNTED:
            return None
        bounds = np.zeros((rows, self._start.size), dtype=np.int64)
        bounds[turn, owner] = ends
        at, first = turn.take(np.searchsorted(ends, end)), self._start.take(group)
        place, together = np.empty_like(group), max(1, MOST_COUNTED // max(entries, 1))
        for begin in range(0, rows, together):
            inside = self._order < bounds[begin : begin + together].take(self._group, axis=1)
            # All rows in one rising sequence, so that one search finds the places in each.
            running = np.zeros((len(inside), entries + 1), dtype=np.int64)
            np.cumsum(self._falling_weights * inside, axis=1, out=running[:, 1:])
            running += np.arange(len(inside))[:, None] * (self._before[-1] + 1)
            mine = slice(None) if together >= rows else np.flatnonzero((at >= begin) & (at < begin + together))
            row = (at[mine] - begin) * (entries + 1)
            sought = running.ravel().take(row + first[mine]) + q[mine]
            place[mine] = np.searchsorted(running.ravel(), sought) - 1 - row
        return place


def falling_in_groups(values: Floats, group: Ints) -> Ints:
    """The order of entries by group, and in each by falling value; equal ones in any order. Arrays of shape (m,).

    Parameters
    ----------
    values : of each entry, shape (m,).
    group : number of each entry's group, shape (m,).
    """
    order = np.argsort(-values)
    # Groups that 16 bits number are sorted by counting.
    few = group.astype(np.uint16) if group.max(initial=0) < 1 << 16 else group
    return order[np.argsort(few[order], kind="stable")]


class _Trees:
    """Trees of all groups, one for each number of bits of rank, built on demand.

    Parameters
    ----------
    place, weights, start, sizes : as :class:`PrefixQuantiles` has them.
    """

    def __init__(self, place: Ints, weights: Ints, start: Ints, sizes: Ints) -> None:
        self._group = np.repeat(np.arange(sizes.size), sizes)
        self._rank, self._weights, self._sizes = place - np.repeat(start, sizes), weights, sizes
        self._bits = np.frexp(np.maximum(sizes - 1, 0))[1]
        self._local = np.empty(sizes.size, dtype=np.int64)
        self._trees: dict[int, _Tree] = {}

    def rank(self, group: Ints, count: Ints, q: Ints) -> Ints:
        """Ranks of the requested values in their groups; arrays of shape (k,)."""
        rank, bits = np.empty_like(group), self._bits.take(group)
        for number in np.flatnonzero(np.bincount(bits)).tolist():
            mine, tree = np.flatnonzero(bits == number), self._tree(number)
            if mine.size == group.size:
                return tree.rank(self._local.take(group), count, q)
            rank[mine] = tree.rank(self._local.take(group.take(mine)), count.take(mine), q.take(mine))
        return rank

    def _tree(self, bits: int) -> _Tree:
        if bits not in self._trees:
            mine, own = np.flatnonzero(self._bits == bits), np.flatnonzero(self._bits[self._group] == bits)
            self._local[mine] = np.arange(mine.size)
            self._trees[bits] = _Tree(self._rank[own], self._weights[own], self._sizes[mine])
        return self._trees[bits]


class _Tree:
    """A wavelet tree of groups with the same number of bits of rank.

    Parameters
    ----------
    rank, weight : arrays of shape (m,): rank of each entry within its group, and its weight.
    sizes : array of shape (g,), entries of each group.
    """

    def __init__(self, rank: Ints, weight: Ints, sizes: Ints) -> None:
        self._base = np.cumsum(sizes) - sizes
        #: Of a level for each end of a stretch: the weight of its better half, and its ends in both halves, in turn.
        self._levels: list[tuple[Counts, Counts]] = []
        # Half the memory takes half the time to fill.
        base, ranks, weights = (each.astype(np.int32) for each in (np.repeat(self._base, sizes), rank, weight))
        number, alike = np.arange(rank.size, dtype=np.int32), bool((weight == weight[0]).all())
        for bit in reversed(range(int(sizes.max() - 1).bit_length())):
            worse = ranks >> bit & 1
            begin = base + (ranks >> (bit + 1) << (bit + 1))
            entries = _running(1 - worse, begin)
            heavy = entries * weights[0] if alike else _running(weights * (1 - worse), begin)
            # Within its half an entry keeps its place among the others.
            ends = np.zeros((rank.size + 1, 2), dtype=np.int32)
            ends[1:, 0], ends[1:, 1] = begin + entries, number + (1 + (1 << bit)) - entries
            self._levels.append((np.concatenate([ZERO, heavy]), ends.ravel()))
            moved = np.empty_like(number)
            moved[np.where(worse, ends[1:, 1], ends[1:, 0]) - 1] = number
            ranks, weights = ranks.take(moved), weights if alike else weights.take(moved)

    def rank(self, group: Ints, count: Ints, q: Ints) -> Ints:
        base = self._base.take(group)
        end, q = base + count, q.copy()
        for weight, ends in self._levels:
            heavy = weight.take(end)
            worse = q > heavy
            heavy *= worse
            q -= heavy
            end <<= 1
            end += worse
            end = ends.take(end).astype(np.int64)
        end -= base
        end -= 1
        return end


def _running(counts: Counts, begin: Counts) -> Counts:
    """Sums of counts from the beginning of each entry's part up to the entry itself."""
    total = np.concatenate([ZERO, np.cumsum(counts, dtype=np.int32)])
    return np.asarray(total[1:] - total.take(begin))
