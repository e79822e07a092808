"""The q-th best value among the first entries of a group, for very many groups and questions at once.

Of a small group every answer is tabled: its entries are put one by one into a sorted row, all groups side by side, and
each row is kept. A large group has a wavelet tree (Grossi, Gupta, Vitter: High-order entropy-compressed text indexes,
SODA 2003), which halves it again and again by the ranks of its values, and keeps for every entry how many of its half's
entries, up to itself, are among the better ones. A question goes down the tree, one step of counting a level. So a
million questions are answered by a few vectorised gathers. Each entry has a weight as well, the processors of a node,
so that the q-th processor is asked for and not the q-th node. Ranks are counted within a group and ties broken by
position: then a part of the tree begins where its ranks begin, and only its end has to be looked up.

Of a whole group, and for the least of some entries, neither is needed: tables and trees wait for another question.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Entries of a group that is tabled at most: ranks fit a byte, with one value to spare. Bytes of all tables at most.
TABLED, TABLES = 255, 2**25
#: Questions for each entry from which on tables pay: they cost much to make, but each answer is a single step.
WORTH_TABLES = 0.25


class PrefixQuantiles:
    """Answers "which is the q-th largest value among the first entries", counting each entry as often as it weighs.

    Parameters
    ----------
    values : array of shape (m,).
    weights : array of shape (m,), whole numbers of at least 1.
    start : array of shape (g,), where each group begins, ascending from 0; it ends where the next begins.
    tables : bytes that tables may take.
    worth : questions for each entry, asked at once and first, from which on tables are made.

    Examples
    --------
    >>> best = PrefixQuantiles([0.5, 0.9, 0.7, 0.9, 0.2], [1, 2, 1, 1, 1], [0, 4])
    >>> best.largest([0, 0, 0, 1], [4, 3, 1, 1], [3, 3, 1, 1]).tolist()
    [0.9, 0.7, 0.5, 0.2]
    """

    def __init__(
        self,
        values: ArrayLike,
        weights: ArrayLike,
        start: ArrayLike,
        tables: int = TABLES,
        worth: float = WORTH_TABLES,
    ) -> None:
        values, self._weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.int64)
        self._start: Ints = np.asarray(start, dtype=np.int64)
        self._sizes: Ints = np.diff(np.append(self._start, values.size))
        self._tables, self._worth = tables, worth
        order = np.lexsort((-values, np.repeat(np.arange(self._sizes.size), self._sizes)))
        self._falling: Floats = values[order]
        self._place = np.empty(values.size, dtype=np.int64)
        self._place[order] = np.arange(values.size)
        # Groups lie one behind the other, so these need no account of where each begins.
        self._least = np.maximum.accumulate(self._place)
        self._before, self._before_falling = (
            np.concatenate([np.zeros(1, np.int64), np.cumsum(each)]) for each in (self._weights, self._weights[order])
        )
        self._parts: _Parts | None = None

    def largest(self, group: ArrayLike, count: ArrayLike, q: ArrayLike) -> Floats:
        """The q-th largest value of each stretch; q counts from 1 and is at most the stretch's weight.

        Parameters
        ----------
        group, count, q : arrays of shape (k,): the first ``count`` entries of a group are asked about.
        """
        group, count, q = (np.asarray(each, dtype=np.int64) for each in (group, count, q))
        start = self._start.take(group)
        end, sought = start + count, self._before.take(start) + q
        place = self._least.take(end - 1, mode="clip")
        asked = count == self._sizes.take(group)
        whole = np.flatnonzero(asked)
        place[whole] = np.searchsorted(self._before_falling, sought.take(whole)) - 1
        asked |= sought == self._before.take(end)  # the least of some entries
        rest = np.flatnonzero(~asked)
        if rest.size:
            if self._parts is None:
                worth = rest.size >= self._worth * self._falling.size
                self._parts = _Parts(self._place, self._weights, self._start, self._sizes, self._tables * worth)
            if rest.size < group.size:
                group, count, q, start = (each.take(rest) for each in (group, count, q, start))
            place[rest] = start + self._parts.rank(group, count, q)
        return self._falling.take(place)


class _Parts:
    """Tables of the small groups and trees of the others; arguments as for :class:`PrefixQuantiles`."""

    def __init__(self, place: Ints, weights: Ints, start: Ints, sizes: Ints, tables: int) -> None:
        group = np.repeat(np.arange(sizes.size), sizes)
        rank = place - np.repeat(start, sizes)
        small = sizes <= TABLED
        heaviest = np.bincount(group[small[group]], weights[small[group]]).max(initial=0)
        if small.sum() * sizes[small].max(initial=0) * heaviest > tables:
            small[:] = False
        self._kind = np.where(small, 0, 1 + np.frexp(np.maximum(sizes - 1, 0))[1])  # large ones by bits of their ranks
        self._local = np.empty(sizes.size, dtype=np.int64)
        self._parts: dict[int, _Part] = {}
        for kind in np.unique(self._kind).tolist():
            mine = np.flatnonzero(self._kind == kind)
            self._local[mine] = np.arange(mine.size)
            own = np.flatnonzero(self._kind[group] == kind)
            self._parts[kind] = (_Tree if kind else _Table)(rank[own], weights[own], sizes[mine])

    def rank(self, group: Ints, count: Ints, q: Ints) -> Ints:
        """Ranks in their groups of the values asked for; arrays of shape (k,)."""
        if len(self._parts) == 1:
            [part] = self._parts.values()
            return part.rank(self._local.take(group), count, q)
        rank, kind = np.empty_like(group), self._kind.take(group)
        for number, part in self._parts.items():
            mine = np.flatnonzero(kind == number)
            if mine.size:
                rank[mine] = part.rank(self._local.take(group.take(mine)), count.take(mine), q.take(mine))
        return rank


class _Part(Protocol):
    """Some of the groups, numbered among themselves."""

    def rank(self, group: Ints, count: Ints, q: Ints) -> Ints:
        """Ranks in their groups of the values asked for; arrays of shape (k,)."""
        ...


class _Table:
    """All answers for small groups; arrays of shape (m,): rank within the group and weight, of shape (g,): sizes."""

    def __init__(self, rank: Ints, weight: Ints, sizes: Ints) -> None:
        group = np.repeat(np.arange(sizes.size), sizes)
        entry = np.arange(rank.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        longest, heaviest = int(sizes.max()), int(np.bincount(group, weight).max())
        none = np.uint8(TABLED)
        ranks = np.full((longest, sizes.size), none)
        ranks[entry, group] = rank
        weights = np.zeros((longest, sizes.size), dtype=np.int64)
        weights[entry, group] = weight
        self._rows = np.empty((longest, sizes.size, heaviest), dtype=np.uint8)
        row, filled = np.full((sizes.size, heaviest), none), 0
        for number, (own, times) in enumerate(zip(ranks, weights, strict=True)):
            for time in range(int(times.max())):
                # Into a rising row, what is put in moves all that is larger on by one; what is none moves nothing.
                put = np.where(times > time, own, none)[:, None]
                moved = np.maximum(row[:, :filled], put)
                np.minimum(row[:, :1], put, out=row[:, :1])
                filled = min(filled + 1, heaviest - 1)
                np.minimum(row[:, 1 : moved.shape[1] + 1], moved, out=row[:, 1 : moved.shape[1] + 1])
            self._rows[number] = row
        self._strides = sizes.size * heaviest, heaviest

    def rank(self, group: Ints, count: Ints, q: Ints) -> Ints:
        by_entry, by_group = self._strides
        place = count * by_entry
        place += group * by_group
        place += q
        place -= by_entry + 1
        return self._rows.ravel().take(place).astype(np.int64)


class _Tree:
    """A wavelet tree of groups with as many bits of rank; arguments as for :class:`_Table`."""

    def __init__(self, rank: Ints, weight: Ints, sizes: Ints) -> None:
        self._base = np.cumsum(sizes) - sizes
        base = np.repeat(self._base, sizes)
        alike = bool(np.all(weight == 1))
        #: The bit that a level asks for; entries and weight with that bit 0, in an entry's part of the tree up to it.
        self._levels: list[tuple[int, Ints, Ints]] = []
        number = np.arange(rank.size)
        for bit in reversed(range(int(sizes.max() - 1).bit_length())):
            left = (rank >> bit) & 1 == 0
            begin = base + (rank >> (bit + 1) << (bit + 1))
            entries = _running(left.astype(np.int64), begin)
            heavy = entries if alike else _running(np.where(left, weight, 0), begin)
            self._levels.append((bit, entries, heavy))
            # Within its half an entry keeps its place among the others.
            moved = np.empty_like(number)
            moved[np.where(left, begin + entries - 1, (1 << bit) + number - entries)] = number
            rank, weight, base = rank[moved], weight[moved], base[moved]

    def rank(self, group: Ints, count: Ints, q: Ints) -> Ints:
        base = self._base.take(group)
        place, q = base.copy(), q.copy()
        last, better = np.empty_like(place), np.empty_like(place)
        for bit, entries, weight in self._levels:
            np.add(place, count, out=last)
            last -= 1
            entries.take(last, out=better, mode="clip")  # no place is beyond the ends: clipping is only quicker
            heavy = better if weight is entries else weight.take(last)
            right = q > heavy
            q -= heavy * right
            place += right * (1 << bit)
            count = np.where(right, count - better, better)
        place -= base
        return place


def _running(counts: Ints, begin: Ints) -> Ints:
    """Sums of counts from where each entry's part begins up to the entry itself."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return np.asarray(total[1:] - total[begin])
