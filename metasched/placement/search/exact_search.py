"""The exact search: for every domain and every number of processors the best resource set.

Inside a domain, the sets with bandwidth >= b take nodes of width >= b only, and among those the P fastest processors
are as fast as any P: so one set for each (domain, P, width) holds an optimum for every predictor that never predicts
a longer time for more CPU or more bandwidth. All widths of one (domain, P) form a staircase, ever more CPU for ever
less bandwidth. Stretches of it are bisected while their ideal corner, the CPU of one end with the bandwidth of the
other, still promises more than what is in hand (branch and bound). docs/placement.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.placement.search.prefix_quantiles import TABLES, PrefixQuantiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Scores of (pair, CPU, bandwidth): arrays of shape (k,) in, shape (k,) out, the smaller the better.
Score = Callable[[Ints, Floats, Floats], Floats]
Scope = Literal["all", "processors", "top"]


class Domains:
    """Nodes in groups, each node with its speed, processors and width in the group; sorted and indexed for the search.

    Parameters
    ----------
    domain : array of shape (m,), number of the domain an entry belongs to.
    node : array of shape (m,), number of the node.
    width : array of shape (m,), bandwidth that the node brings into this domain (Mbit/s).
    speed : array of shape (m,), available CPU of each of its processors, in units of the reference node's processor.
    processors : array of shape (m,), processors that the job may take there.
    tables : bytes that tables for very many questions may take.

    Attributes
    ----------
    ids : array of shape (d,), numbers of the domains that have entries, ascending.
    sizes : array of shape (d,), processors of each.
    """

    def __init__(
        self,
        domain: ArrayLike,
        node: ArrayLike,
        width: ArrayLike,
        speed: ArrayLike,
        processors: ArrayLike,
        tables: int = TABLES,
    ) -> None:
        domain = np.asarray(domain, dtype=np.int64)
        order = np.lexsort((np.asarray(node), -np.asarray(speed), -np.asarray(width), domain))
        self.domain: Ints = domain[order]
        self.node: Ints = np.asarray(node, dtype=np.int64)[order]
        self.width: Floats = np.asarray(width, dtype=np.float64)[order]
        self.speed: Floats = np.asarray(speed, dtype=np.float64)[order]
        self.processors: Ints = np.asarray(processors, dtype=np.int64)[order]
        self.ids, self._start = np.unique(self.domain, return_index=True)
        self._stop = np.append(self._start[1:], order.size)
        self._running = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.processors)])
        self.sizes: Ints = self._running[self._stop] - self._running[self._start]
        # A step is a run of entries of one domain with one width; it ends where either changes.
        ends = (self.domain[1:] != self.domain[:-1]) | (self.width[1:] != self.width[:-1])
        self.step_end: Ints = np.append(np.flatnonzero(ends) + 1, order.size) if order.size else np.empty(0, np.int64)
        self.step_width: Floats = self.width[self.step_end - 1]
        self._best = PrefixQuantiles(self.speed, self.processors, self._start, tables)

    def pairs(self, allowed: ArrayLike) -> tuple[Ints, Ints]:
        """Every (domain index, P) with P among the allowed counts that the domain has the processors for."""
        allowed = np.asarray(allowed, dtype=np.int64)
        index, which = np.nonzero(allowed[None, :] <= self.sizes[:, None])
        return index.astype(np.int64), allowed[which]

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
        """The step that takes in the whole domain."""
        return np.asarray(np.searchsorted(self.step_end, self._stop[index]), dtype=np.int64)

    def cpu(self, index: Ints, processors: Ints, step: Ints) -> Floats:
        """The P-th fastest processor among the nodes of a domain as wide as a step.

        Parameters
        ----------
        index : of each domain, shape (k,).
        processors : P of each, shape (k,).
        step : of each, shape (k,); its nodes and all wider ones count.
        """
        return self._best.largest(index, self.step_end[step] - self._start[index], processors)

    def members(self, index: int, processors: int, step: int, cpu: float) -> tuple[Ints, Ints]:
        """Nodes of the P fastest processors as wide as a step, fastest first, and how many are taken on each.

        ``cpu`` is the P-th fastest of them, as :meth:`cpu` answered.

        Parameters
        ----------
        index : of the domain.
        processors : how many are wanted.
        step : whose width the nodes have at least.
        cpu : available CPU of the P-th fastest of them, as :meth:`cpu` answered.
        """
        start = int(self._start[index])
        able = start + np.flatnonzero(self.speed[start : int(self.step_end[step])] >= cpu)
        able = able[np.lexsort((self.node[able], -self.width[able], -self.speed[able]))]
        running = np.cumsum(self.processors[able])
        last = int(np.searchsorted(running, processors))
        counts = self.processors[able[: last + 1]]
        counts[-1] -= running[last] - processors
        return self.node[able[: last + 1]], counts


@dataclass(frozen=True, slots=True)
class Found:
    """The best step of each (domain, P).

    Parameters
    ----------
    domain, processors : arrays of shape (p,), the pairs; ``domain`` is the index into ``Domains.ids``.
    step : array of shape (p,), the best step found.
    cpu, bandwidth : arrays of shape (p,), the two minima there.
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
    cpu_low, cpu_high = domains.cpu(index, processors, low), domains.cpu(index, processors, high)
    best_step, best_cpu = low.copy(), cpu_low.copy()
    best = score(np.arange(index.size), cpu_low, domains.step_width[low])
    evaluations = index.size

    def offer(which: Ints, step: Ints, cpu: Floats, offered: Floats) -> None:
        better = np.flatnonzero(offered < best.take(which))
        if not better.size:
            return
        np.minimum.at(best, which.take(better), offered.take(better))
        # A pair may get several offers, and several equal ones: the lowest step of the best ones stays.
        better = better[offered.take(better) == best.take(which.take(better))]
        better = better[np.argsort(-step.take(better), kind="stable")]
        which = which.take(better)
        best_step[which], best_cpu[which] = step.take(better), cpu.take(better)

    def refine(pair: Ints) -> None:
        """Leave nothing better than what is in hand between the first and the last step of some pairs."""
        nonlocal evaluations
        # A stretch holds the steps after the one where it begins up to its last; the CPU is that at these two.
        begin, last = low.take(pair), high.take(pair)
        cpu_begin, cpu_last = cpu_low.take(pair), cpu_high.take(pair)
        offered, offered_step, offered_cpu = pair, last, cpu_last
        while pair.size:
            # No set of a stretch has more CPU than its last step, nor more bandwidth than its first: one batch scores
            # these corners and a set in each stretch. The corner of a single step is a set itself.
            corner, inside = np.split(
                score(
                    np.concatenate([pair, offered]),
                    np.concatenate([cpu_last, offered_cpu]),
                    domains.step_width.take(np.concatenate([begin + 1, offered_step])),
                ),
                [pair.size],
            )
            evaluations += corner.size + inside.size
            offer(offered, offered_step, offered_cpu, inside)
            single = last - begin == 1
            offer(pair[single], last[single], cpu_last[single], corner[single])
            limit = best if scope == "all" else np.minimum(best, _limit(best, processors, scope, top))
            promising = np.flatnonzero(~single & (corner < limit.take(pair)))
            pair, begin, last = (each.take(promising) for each in (pair, begin, last))
            cpu_begin, cpu_last = cpu_begin.take(promising), cpu_last.take(promising)
            middle = (begin + last) >> 1
            cpu_middle = domains.cpu(index.take(pair), processors.take(pair), middle)
            offered, offered_step, offered_cpu = pair, middle, cpu_middle
            # Where the CPU does not grow, no step is better than the one before the stretch.
            near, far = np.flatnonzero(cpu_middle > cpu_begin), np.flatnonzero(cpu_last > cpu_middle)
            pair = np.concatenate([pair.take(near), pair.take(far)])
            begin, last = (np.concatenate([a.take(near), b.take(far)]) for a, b in ((begin, middle), (middle, last)))
            cpu_begin, cpu_last = (
                np.concatenate([a.take(near), b.take(far)])
                for a, b in ((cpu_begin, cpu_middle), (cpu_middle, cpu_last))
            )

    more = np.flatnonzero((high > low) & (cpu_high > cpu_low))
    if scope != "all" and more.size > 1:
        # What the largest domain has rules out most of the others at once.
        largest = index.take(more) == int(np.argmax(domains.sizes))
        refine(more[largest])
        more = more[~largest]
    refine(more)
    return Found(index, processors, best_step, best_cpu, domains.step_width[best_step], best, evaluations)


def _limit(best: Floats, processors: Ints, scope: Scope, top: int) -> Floats:
    """What a pair must beat to matter in the scope asked for; shape (p,)."""
    limit = np.full(best.size, np.partition(best, top - 1)[top - 1] if scope != "all" and top < best.size else np.inf)
    if scope == "processors":
        least = np.full(int(processors.max()) + 1, np.inf)
        np.minimum.at(least, processors, best)
        limit = np.maximum(limit, least[processors]) if top < best.size else limit
    return limit
