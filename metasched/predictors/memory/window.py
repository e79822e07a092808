"""The bounded memory of a model: the runs that searches and residual processes look back at.

A model that lives for years must not slow down with every run. The window keeps at most ``capacity`` runs, shared out
among processor counts: when it is full, the processor count that holds most gives up one run, alternately its oldest
and the one of its older half that lies closest to another in problem size. Recent behaviour is kept, and so is the
range of sizes. Adding a run costs the same however many have passed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from candidate_functions.terms import Observations
from metasched.arrays import Floats
from metasched.records import IDLE_BANDWIDTH, IDLE_CPU, Run


class RunWindow:
    """At most ``capacity`` runs, in the order they were learned.

    Parameters
    ----------
    runs : runs to start from, oldest first.
    capacity : how many runs to keep at most.
    seen : how many runs were ever added, these among them.

    Examples
    --------
    >>> window = RunWindow(capacity=3)
    >>> for n in (100, 200, 201, 300):
    ...     window.add(Run("cg", "c8", n, 1, 1.0, 100.0, n / 10))
    >>> len(window), window.seen
    (3, 4)
    """

    def __init__(self, runs: Iterable[Run] = (), capacity: int = 512, seen: int = 0) -> None:
        runs = tuple(runs)
        self.capacity = capacity
        self.seen = max(seen - len(runs), 0)
        self._shares: dict[tuple[str, int], deque[tuple[int, Run]]] = {}
        self._of_user: Counter[str] = Counter()
        self._size = 0
        for run in runs:
            self.add(run)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Run]:
        """The runs kept, in the order in which they were learned."""
        kept = sorted((entry for runs in self._shares.values() for entry in runs), key=lambda entry: entry[0])
        return iter([run for _, run in kept])

    def add(self, run: Run) -> None:
        """Remember one more run; forget another when full."""
        self._shares.setdefault((run.user, run.processors), deque()).append((self.seen, run))
        self._of_user[run.user] += 1
        self.seen += 1
        self._size += 1
        if self._size > self.capacity:
            self._forget()

    def _forget(self) -> None:
        (user, _), *_ = self._of_user.most_common(1)
        shares = ((count, runs) for (whose, count), runs in self._shares.items() if whose == user)
        processors, largest = max(shares, key=lambda share: len(share[1]))
        if self.seen % 2:
            largest.popleft()
        else:
            del largest[_most_crowded(np.array([run.problem_size for _, run in largest]))]
        if not largest:
            del self._shares[user, processors]
        self._of_user[user] -= 1
        if not self._of_user[user]:
            del self._of_user[user]  # else each run costs more the more users there ever were
        self._size -= 1

    @property
    def users(self) -> frozenset[str]:
        """The users who have runs in the window."""
        return frozenset(self._of_user)

    def slow_down(self, factor: float, before: int) -> None:
        """Have the runs that were learned before the one of this number (from 0) take ``factor`` times as long."""
        for runs in self._shares.values():
            for place, (number, run) in enumerate(runs):
                if number < before:
                    runs[place] = number, replace(run, execution_time=factor * run.execution_time)

    def observations(self) -> Observations:
        """The runs kept, as columns for the searches."""
        return observations(self)


def _most_crowded(sizes: Floats) -> int:
    """Position, in the older half, of the size that is closest to another on a logarithmic scale."""
    order = np.argsort(sizes)
    ratio = np.concatenate(([np.inf], sizes[order[1:]] / sizes[order[:-1]], [np.inf]))
    closest = np.empty(len(sizes))
    closest[order] = np.minimum(ratio[:-1], ratio[1:])
    return int(np.argmin(closest[: max(1, len(sizes) // 2)]))


def measured(runs: Iterable[Run]) -> Observations:
    """The same columns with NaN where a minimum was not measured.

    >>> measured([Run("cg", "c8", 100, 2, float("nan"), 90.0, 7.0)]).cpu
    array([nan])
    """
    rows = [(r.problem_size, r.processors, r.min_avg_avail_cpu, r.min_avg_avail_bw, r.execution_time) for r in runs]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return Observations.of(*columns)


def median_loads(cpu: Floats, bandwidth: Floats) -> tuple[float, float]:
    """The medians of available CPU and bandwidth (Mbit/s), NaN where not measured; those of an idle node if none was.

    >>> median_loads(np.array([0.5, 0.6, 0.9]), np.array([np.nan]))
    (0.6, 1000.0)
    """
    usual = ((cpu, IDLE_CPU), (bandwidth, IDLE_BANDWIDTH))
    found = [idle if np.isnan(known).all() else float(np.nanmedian(known)) for known, idle in usual]
    return found[0], found[1]


def observations(runs: Iterable[Run], cpu: float = IDLE_CPU, bandwidth: float = IDLE_BANDWIDTH) -> Observations:
    """Columns of the five numbers that the mathematics needs of each run.

    Parameters
    ----------
    runs : oldest first.
    cpu, bandwidth : share of a processor and Mbit/s in place of unmeasured minima, by default as in ``Run.request``.

    Examples
    --------
    >>> observations([Run("cg", "c8", 100, 2, 0.5, 90.0, 7.0)]).time
    array([7.])
    """
    found = measured(runs)
    return replace(
        found,
        cpu=np.where(np.isnan(found.cpu), cpu, found.cpu),
        bw=np.where(np.isnan(found.bw), bandwidth, found.bw),
    )
