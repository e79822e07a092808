"""Starts and waits of pending jobs, each by a simulation of its own: plain and slow, which quicker ways must equal."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence

from metasched.history.backfilling import Backfilling


def led_on(cluster: Backfilling, now: float, remaining: Mapping[int, float]) -> Iterator[tuple[float, list[int]]]:
    """Lead a cluster on without further arrivals until nothing runs, given the remaining run times.

    Parameters
    ----------
    cluster : as it is; it is changed, so pass a copy.
    now : the time (s).
    remaining : of each job how long it still runs, or will run once started (s).

    Yields
    ------
    Each time (s) at which jobs may start, the first being now, and the jobs that start then.
    """
    ends = [(now + remaining[job], job) for job in cluster.started]
    heapq.heapify(ends)
    while True:
        begun = cluster.schedule(now)
        for job in begun:
            heapq.heappush(ends, (now + remaining[job], job))
        yield now, begun
        if not ends:
            return
        now = ends[0][0]
        while ends and ends[0][0] == now:
            cluster.end(heapq.heappop(ends)[1])


def predicted_starts(
    cluster: Backfilling, now: float, remaining: Mapping[int, float], until: int | None = None
) -> dict[int, float]:
    """The start of each pending job without further arrivals, given the remaining run times.

    Parameters
    ----------
    cluster, now, remaining : see :func:`led_on`.
    until : stop once this job has started.

    Returns
    -------
    The time of each start (s).

    Examples
    --------
    >>> cluster = Backfilling(8)
    >>> for job, hold in enumerate([100.0, 50.0]):
    ...     cluster.submit(job, 8, hold)
    >>> predicted_starts(cluster, 0.0, {0: 30.0, 1: 10.0})
    {0: 0.0, 1: 30.0}
    """
    starts: dict[int, float] = {}
    for at, begun in led_on(cluster, now, remaining):
        starts |= dict.fromkeys(begun, at)
        if until in starts or not cluster._line:
            break
    return starts


def possible_waits(
    cluster: Backfilling, job: int, now: float, left: Callable[[int, float], Sequence[float]]
) -> list[float]:
    """The remaining wait of a queued job without further arrivals (s), for each of several sets of possible run times.

    Parameters
    ----------
    cluster : the queue at present, including the job.
    job, now : its number, and the time (s).
    left : possible remaining run times (s) of a job after it has run so long (s), 0 if it is pending; as many for every
        job.

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
        predicted_starts(cluster.copy(), now, {other: each[which] for other, each in possible.items()}, until=job)[job]
        - now
        for which in range(len(possible[job]))
    ]
