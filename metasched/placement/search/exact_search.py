"""The exact search: for every domain and every number of processors the best resource set.

Within a domain, a set with bandwidth >= b can only use nodes of width >= b, and the P fastest processors among them are
at least as fast as any other P. So for every predictor that never predicts a longer time for more CPU or more
bandwidth, one of the sets for each (domain, P, width) is optimal. The widths of one (domain, P) form a staircase: CPU
increases as bandwidth decreases. Intervals of it are bisected as long as their bound, the CPU of one end with the
bandwidth of the other, is better than the best set so far (branch and bound). docs/placement.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.placement.search.prefix_quantiles import PrefixQuantiles, falling_in_groups

#: Scores of (pair, place of the CPU in ``Domains.falling``, step): arrays of shape (k,) in, shape (k,) out, the smaller
#: the better.
Score = Callable[[Ints, Ints, Ints], Floats]
Scope = Literal["all", "processors", "top"]

#: Pairs that are searched together, so that the arrays of their stretches stay in the cache.
PIECE = 4096


class Domains:
    """Nodes in groups (domains), each with its speed, processors and width there; sorted and indexed for the search.

    Parameters
    ----------
    domain : array of shape (m,), number of the domain an entry belongs to.
    node : array of shape (m,), number of the node.
    width : array of shape (m,), bandwidth that the node brings into this domain (Mbit/s).
    speed : array of shape (m,), available CPU of each of its processors, in units of the reference node's processor.
    processors : array of shape (m,), processors that the job may take there.
    turn : array indexed by the numbers of nodes, of equal ones that with the least is taken first; by their numbers
        where None.

    Attributes
    ----------
    ids : array of shape (d,), numbers of the domains that have entries, ascending.
    sizes, entries : arrays of shape (d,), processors and nodes of each.
    falling : array of shape (m,), the speeds of each domain's entries in falling order.
    index : array of shape (m,), which of these domains each entry belongs to, and each place in ``falling``.
    step_width : array of shape (t,), the width of each step, a run of entries of one domain with one width.
    step_end : array of shape (t,), the entries up to the step's last.
    """

    def __init__(
        self,
        domain: ArrayLike,
        node: ArrayLike,
        width: ArrayLike,
        speed: ArrayLike,
        processors: ArrayLike,
        turn: Ints | None = None,
    ) -> None:
        domain = np.asarray(domain, dtype=np.int64)
        # The order of entries of one width does not matter, since a step includes them all.
        order = falling_in_groups(np.asarray(width, dtype=np.float64), domain)
        self.domain: Ints = domain[order]
        self.node: Ints = np.asarray(node, dtype=np.int64)[order]
        self._turn = turn
        self.width: Floats = np.asarray(width, dtype=np.float64)[order]
        self.speed: Floats = np.asarray(speed, dtype=np.float64)[order]
        self.processors: Ints = np.asarray(processors, dtype=np.int64)[order]
        begins = np.append(True, self.domain[1:] != self.domain[:-1])[: order.size]
        self._start: Ints = np.flatnonzero(begins)
        self._stop = np.append(self._start[1:], order.size)[: self._start.size]
        self.ids: Ints = self.domain[self._start]
        self.index: Ints = np.cumsum(begins) - 1
        self._running = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.processors)])
        self.sizes: Ints = self._running[self._stop] - self._running[self._start]
        self.entries: Ints = self._stop - self._start
        ends = np.append(begins[1:] | (self.width[1:] != self.width[:-1]), True)[: order.size]
        self.step_end: Ints = np.flatnonzero(ends) + 1
        self.step_width: Floats = self.width[self.step_end - 1]
        self._best = PrefixQuantiles(self.speed, self.processors, self._start)
        self.falling: Floats = self._best.falling

    @property
    def overlap(self) -> int:
        """In how many domains a node is at most, and so a set."""
        return int(np.bincount(self.node).max(initial=0))

    def pairs(self, allowed: ArrayLike) -> tuple[Ints, Ints]:
        """Every (domain index, P) with P among the allowed counts that the domain has the processors for."""
        index, which = self.able(allowed)
        return index, np.asarray(allowed, dtype=np.int64)[which]

    def able(self, allowed: ArrayLike) -> tuple[Ints, Ints]:
        """The same pairs, with the place of P among the allowed counts."""
        index, which = np.nonzero(np.asarray(allowed) <= self.sizes[:, None])
        return index, which

    def first_step(self, index: Ints, processors: Ints) -> Ints:
        """The widest step that leaves enough processors, for each (domain, P).

        Parameters
        ----------
        index : of each domain, shape (k,).
        processors : P of each, shape (k,).
        """
        taken = np.searchsorted(self._running, self._running[self._start[index]] + processors)
        return np.asarray(np.searchsorted(self.step_end, taken), dtype=np.int64)

    def last_step(self, index: Ints) -> Ints:
        """The steps that take in the whole domains, from the indices of these, both of shape (k,)."""
        return np.asarray(np.searchsorted(self.step_end, self._stop[index]), dtype=np.int64)

    def place(self, index: Ints, processors: Ints, step: Ints, *, inside: bool = False) -> Ints:
        """The place in ``falling`` of the P-th fastest processor among the nodes of a domain as wide as a step.

        Parameters
        ----------
        index : of each domain, shape (k,).
        processors : P of each, shape (k,).
        step : of each, shape (k,); its nodes and all wider ones count.
        inside : whether no step is a domain's last, nor its nodes only just enough.
        """
        find = self._best.places_inside if inside else self._best.places
        return find(index, self.step_end.take(step) - self._start.take(index), processors)

    def least(self, index: Ints, step: Ints) -> Ints:
        """The place in ``falling`` of the slowest processor among the nodes of a domain as wide as a step.

        Parameters
        ----------
        index : of each domain, shape (k,).
        step : of each, shape (k,).
        """
        return self._best.least(index, self.step_end.take(step) - self._start.take(index))

    def members(self, index: int, processors: int, step: int, cpu: float) -> tuple[Ints, Ints]:
        """Nodes of the P fastest processors as wide as a step, fastest first, and how many are taken on each.

        Parameters
        ----------
        index : of the domain.
        processors : how many are wanted.
        step : whose width the nodes have at least.
        cpu : available CPU of the P-th fastest of them.
        """
        start = int(self._start[index])
        able = start + np.flatnonzero(self.speed[start : int(self.step_end[step])] >= cpu)
        node = self.node[able]
        turn = node if self._turn is None else self._turn.take(node)
        return fastest(node, self.width[able], self.speed[able], self.processors[able], turn, processors)


def fastest(node: Ints, width: Floats, speed: Floats, processors: Ints, turn: Ints, wanted: int) -> tuple[Ints, Ints]:
    """Nodes of the fastest processors, fastest first, of equal ones the widest, and how many are taken on each.

    Parameters
    ----------
    node, width, speed, processors, turn : of each node, shape (m,); of equal ones that with the least turn is first.
    wanted : how many processors are to be taken, at most all.
    """
    order = np.lexsort((turn, -width, -speed))
    running = np.cumsum(processors[order])
    last = int(np.searchsorted(running, wanted))
    counts = processors[order[: last + 1]]
    counts[-1] -= running[last] - wanted
    return node[order[: last + 1]], counts


@dataclass(frozen=True, slots=True)
class Found:
    """The best step of each (domain, P).

    Parameters
    ----------
    domain, processors : arrays of shape (p,), the pairs; ``domain`` is the index into ``Domains.ids``.
    step : array of shape (p,), the best step found.
    cpu, bandwidth : arrays of shape (p,), the two minima there: share of a processor, and Mbit/s.
    score : array of shape (p,).
    evaluations : how many predictions it took.
    """

    domain: Ints
    processors: Ints
    step: Ints
    cpu: Floats
    bandwidth: Floats
    score: Floats
    evaluations: int


def search(domains: Domains, allowed: ArrayLike, score: Score, scope: Scope = "all", top: int = 10) -> Found:
    """Find the best resource set of every (domain, P).

    Parameters
    ----------
    domains : the nodes.
    allowed : numbers of processors to try, ascending.
    score : what to make small; called with whole batches. Its first argument numbers the pairs of ``domains.pairs``.
    scope : what must be exact. ``"all"``: the best step of every (domain, P). ``"top"``: the ``top`` best pairs.
        ``"processors"``: those, and for every P the best over all domains. The other pairs then carry the best step
        that was evaluated, a set that exists, with its own score.
    top : see ``scope``.
    """
    index, processors = domains.pairs(allowed)
    low, high = domains.first_step(index, processors), domains.last_step(index)
    at_low, at_high = domains.place(index, processors, low), domains.place(index, processors, high)
    hand = _BestSoFar(score(np.arange(index.size), at_low, low), low, at_low, processors, scope, top)
    # Where the CPU does not grow, no step is better than the first.
    more = np.flatnonzero(at_high < at_low)
    hand.offer(more, high.take(more), at_high.take(more), score(more, at_high.take(more), high.take(more)))
    evaluations = index.size + more.size

    def refine(pair: Ints) -> None:
        """Search between the first and the last step of some pairs until no better set can be there."""
        nonlocal evaluations
        # A stretch holds the steps between two that were considered, with the places of the CPU at these.
        begin, last, at_begin, at_last = low.take(pair), high.take(pair), at_low.take(pair), at_high.take(pair)
        offered, offered_step, offered_at = (np.empty(0, np.int64) for _ in range(3))
        while pair.size + offered.size:
            # No set of a stretch has more CPU than there is at its end, nor more bandwidth than its first step: one
            # batch scores these corners and the steps that divided the stretches before.
            corner, inside = np.split(
                score(
                    np.concatenate([pair, offered]),
                    np.concatenate([at_last, offered_at]),
                    np.concatenate([begin + 1, offered_step]),
                ),
                [pair.size],
            )
            evaluations += corner.size + inside.size
            hand.offer(offered, offered_step, offered_at, inside)
            promising = np.flatnonzero(corner < hand.limit(pair))
            pair, begin, last, at_begin, at_last = (
                each.take(promising) for each in (pair, begin, last, at_begin, at_last)
            )
            middle = (begin + last) >> 1
            at_middle = domains.place(index.take(pair), processors.take(pair), middle, inside=True)
            offered, offered_step, offered_at = pair, middle, at_middle
            near = np.flatnonzero((at_middle < at_begin) & (middle - begin > 1))
            far = np.flatnonzero((at_last < at_middle) & (last - middle > 1))
            pair = np.concatenate([pair.take(near), pair.take(far)])
            begin, last, at_begin, at_last = (
                np.concatenate([one.take(near), other.take(far)])
                for one, other in ((begin, middle), (middle, last), (at_begin, at_middle), (at_middle, at_last))
            )

    more = more[high.take(more) - low.take(more) > 1]
    if scope != "all" and more.size > 1:
        # What the largest domains have rules out most of the others at once.
        large = (2 * domains.entries >= domains.entries.max()).take(index.take(more))
        refine(more[large])
        more = more[~large]
    for start in range(0, more.size, PIECE):
        refine(more[start : start + PIECE])
    cpu, bandwidth = domains.falling.take(hand.place), domains.step_width.take(hand.step)
    return Found(index, processors, hand.step, cpu, bandwidth, hand.score, evaluations)


class _BestSoFar:
    """The best set of each pair found so far, and the score that another set must beat."""

    def __init__(self, score: Floats, step: Ints, place: Ints, processors: Ints, scope: Scope, top: int) -> None:
        self.score, self.step, self.place = score, step.copy(), place.copy()
        self._processors, self._scope, self._top = processors, scope, top
        #: The score of the last pair among the top ones.
        self._last = np.inf
        self._of_count = np.full(int(processors.max(initial=0)) + 1, np.inf)
        self._lowered(np.arange(score.size), score)

    def offer(self, pair: Ints, step: Ints, place: Ints, score: Floats) -> None:
        """Consider some sets, possibly several of one pair; among equal scores the lowest step is kept."""
        better = np.flatnonzero(score < self.score.take(pair))
        if not better.size:
            return
        np.minimum.at(self.score, pair.take(better), score.take(better))
        better = better[score.take(better) == self.score.take(pair.take(better))]
        better = better[np.argsort(-step.take(better), kind="stable")]
        pair = pair.take(better)
        self.step[pair], self.place[pair] = step.take(better), place.take(better)
        self._lowered(pair, score.take(better))

    def limit(self, pair: Ints) -> Floats:
        """The score that a set must beat to be relevant in the requested scope; shape (k,)."""
        own = self.score.take(pair)
        if self._scope == "all":
            return own
        if self._scope == "top":
            return np.asarray(np.minimum(own, self._last))
        needed = np.maximum(self._of_count.take(self._processors.take(pair)), self._last)
        return np.asarray(np.minimum(own, needed))

    def _lowered(self, pair: Ints, score: Floats) -> None:
        """Update the best scores after those of some pairs were lowered."""
        if self._scope == "processors":
            np.minimum.at(self._of_count, self._processors.take(pair), score)
        if self._scope != "all" and self._top < self.score.size and (score < self._last).any():
            # Scores only fall: whatever is among the top ones now is not above the last of those before.
            able = self.score[self.score <= self._last]
            if able.size >= self._top:
                self._last = float(np.partition(able, self._top - 1)[self._top - 1])
