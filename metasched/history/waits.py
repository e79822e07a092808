"""How long a job will wait: the queue led on with the run times that are expected, and what such forecasts have missed.

Nobody knows who comes later and starts before; what earlier forecasts missed tells of it. So a forecast is moved, and
its interval made, by the ratios of waits to what the queue led on had said, among forecasts of about the same length;
and it is moved only while that makes forecasts better.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from metasched.history.backfilling import Backfilling, lead_on

#: Forecasts are held together by how long a wait they say (s): up to each of these, and longer.
CLASSES = (0.0, 300.0, 1800.0, 7200.0, 21_600.0, 86_400.0)
#: Added to waits before they are compared by ratios (s).
SOFTENING = 60.0
#: How fast it is forgotten how much forecasts missed that were moved, and that were not.
MEMORY = 0.99
#: Step by which the levels of intervals follow how often these held (Gibbs & Candès, "Adaptive conformal inference
#: under distribution shift", NeurIPS 2021).
STEP = 0.01
#: Past forecasts of a class that count, and that must have come true before they do.
MOST, FEWEST = 300, 20


class Wait(NamedTuple):
    """A wait and the ends of its interval (s)."""

    seconds: float
    low: float
    high: float


class WaitErrors:
    """What forecasts of waits have missed, and so what to make of the next.

    Parameters
    ----------
    level : of the intervals.

    Examples
    --------
    >>> errors = WaitErrors()
    >>> errors.expect(600.0).seconds
    600.0
    >>> for _ in range(40):
    ...     errors.learn(600.0, 1260.0)
    >>> round(errors.expect(600.0).seconds)
    1260
    """

    def __init__(self, level: float = 0.9) -> None:
        self._miss = (1.0 - level) / 2.0
        self._low, self._high = self._miss, 1.0 - self._miss
        self._ratios: list[deque[float]] = [deque(maxlen=MOST) for _ in range(len(CLASSES) + 1)]
        self._missed = self._missed_moved = 0.0

    def learn(self, said: float, waited: float) -> None:
        """A job for which the queue led on had said so long (s) waited so long."""
        moved = self._moved(said)
        self._missed = MEMORY * self._missed + abs(said - waited)
        self._missed_moved = MEMORY * self._missed_moved + abs(moved.seconds - waited)
        self._low = min(max(self._low + STEP * (self._miss - (waited < moved.low)), 0.0), 0.3)
        self._high = max(min(self._high - STEP * (self._miss - (waited > moved.high)), 1.0), 0.7)
        self._ratios[_class(said)].append(math.log((waited + SOFTENING) / (said + SOFTENING)))

    def expect(self, said: float) -> Wait:
        """The wait of a job for which the queue led on says so long (s)."""
        found = self._moved(said)
        if self._missed_moved < self._missed:
            return found
        return found._replace(seconds=min(max(said, found.low), found.high))

    def _moved(self, said: float) -> Wait:
        ratios = self._ratios[_class(said)]
        if len(ratios) < FEWEST:
            return Wait(said, 0.0, max(4.0 * said, 3600.0))
        low, middle, high = np.exp(np.quantile(ratios, [self._low, 0.5, self._high])) * (said + SOFTENING) - SOFTENING
        return Wait(max(float(middle), 0.0), max(float(low), 0.0), max(float(high), 0.0))


def possible_waits(
    cluster: Backfilling, job: int, now: float, left: Callable[[int, float], Sequence[float]]
) -> list[float]:
    """How long a job of a queue still waits if nobody else comes (s), for each of several possibilities of run times.

    Parameters
    ----------
    cluster : the queue as it is, with the job in it.
    job, now : its number, and the time (s).
    left : how long a job runs on that has run so long (s), 0 where it waits; of all jobs as many possibilities.

    Examples
    --------
    >>> cluster = Backfilling(8)
    >>> for number in range(2):
    ...     cluster.submit(number, 8, 100.0)
    >>> cluster.schedule(0.0)
    [0]
    >>> possible_waits(cluster, 1, 10.0, lambda job, ran: [40.0 - ran, 90.0 - ran])
    [30.0, 80.0]
    """
    started = cluster.started
    possible = {other: left(other, now - started[other] if other in started else 0.0) for other in cluster.width}
    return [
        lead_on(cluster.copy(), now, {other: each[which] for other, each in possible.items()}, until=job)[job] - now
        for which in range(len(possible[job]))
    ]


def _class(said: float) -> int:
    return bisect_right(CLASSES, said) if said > 0 else 0
