"""Estimates of the share of a new task from passive counters: formulas only, without reading.

All of them answer for k processes on a host where others run: the share of one processor that each of the k would get
if they started together, or, of a job that runs there already, that it gets. Sources: the Network Weather Service's
uptime and vmstat views, here for k processes; the limits of control groups; for jobs that run, the kernel's accounts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from monitors.sensors.job import Turn

#: Seconds of demand that a process must show in an interval for its turns to count as much as the other views.
_LITTLE = 0.01


def queue_view(processors: float, runnable: float, k: int = 1) -> float:
    """Share from the run queue: the k and the ``runnable`` others divide the processors evenly.

    Parameters
    ----------
    processors : of the node, or the quota in processors.
    runnable : other processes that are ready to run.
    k : new processes.

    Examples
    --------
    >>> queue_view(2, 3.0)
    0.5
    """
    return min(1.0, processors / (k + runnable))


def utilisation_view(idle: float, busy: float, runnable: float, k: int = 1) -> float:
    """Share from utilisation: all that is idle, and an even part of what is busy.

    Parameters
    ----------
    idle, busy : processors' worth of time that was idle and that was used.
    runnable : others that were ready to run; while something is busy there is at least one of them.

    Notes
    -----
    The Network Weather Service's idle + (user + system)/(r + 1), for k processes: (I + B k/(k + r))/k, at most 1.

    Examples
    --------
    >>> utilisation_view(idle=0.5, busy=0.5, runnable=1.0)
    0.75
    """
    others = max(runnable, busy, 1.0)  # half of the time busy is one other half of the time
    return min(1.0, (idle + busy * k / (k + others)) / k)


def quota_view(quota: float, used: float, k: int = 1) -> float:
    """Most that a quota leaves each of the k: what the group does not use, at least an even part of the quota.

    Parameters
    ----------
    quota : processors' worth of time for the whole group.
    used : processors' worth of time that others of the group use.

    Examples
    --------
    >>> quota_view(quota=1.5, used=0.5), quota_view(quota=0.5, used=0.5)
    (1.0, 0.25)
    """
    left = max(quota - used, quota * k / (k + max(used / quota, 1.0)))
    return min(1.0, left / k)


def followed_view(
    idle: Sequence[float], busy: Sequence[float], own: Sequence[float], others: float, k: int = 1
) -> float:
    """Share that the k-th process of a job gets that runs here already: what is idle and what the job itself uses.

    It is never less than the kernel's fair share, since a process that waits for a message leaves its processor to
    others and still gets it back.

    Parameters
    ----------
    idle, busy, own : for each processor, seconds that it was idle and busy, and that the job itself used of the latter.
    others : how many processes that are not of the job are ready to run, on average per processor.
    k : how many processes the job has; those beyond the number of processors share the processor with the least.

    Returns
    -------
    The k-th largest of the processors' shares, in (0, 1]; NaN where no time has passed on one that counts.

    Examples
    --------
    >>> [followed_view([0.0, 0.5], [1.0, 0.5], [0.6, 0.5], others=1.0, k=k) for k in (1, 2)]
    [1.0, 0.6]
    """
    # On a busy processor there is at least one other process to share with.
    fair = 1.0 / (1.0 + max(1.0, others))
    shares = [
        min(max(1.0 - (used - mine) / (rest + used), fair), 1.0)
        for rest, used, mine in zip(idle, busy, own, strict=True)
        if rest + used > 0
    ]
    return sorted(shares, reverse=True)[min(k, len(idle)) - 1] if len(shares) == len(idle) else math.nan


def turns_view(
    turns: Sequence[Turn], seconds: float, stolen: float, otherwise: float, processors: int, k: int = 1
) -> float:
    """Share that the k processes of a job got of the time for which they wanted a processor.

    Where a process hardly wanted one, as it waited for messages, its turns say little, and another view counts.

    Parameters
    ----------
    turns : of each process of the job, in the last ``seconds``.
    seconds : length of the interval, above 0.
    stolen : share of the time of busy processors that the host of this virtual machine took.
    otherwise : the share according to another view; NaN where no time has passed, and then the answer is NaN too.
    processors : on which the job may run.
    k : number of processes that count: those with the largest demand.

    Returns
    -------
    The least share of these processes. If the job wants more processors than there are, its processes wait for each
    other, which is no load; the share is that of what they could have got at most.

    Examples
    --------
    >>> round(turns_view([Turn(0.25, 0.75), Turn(0.5, 0.5)], 1.0, 0.0, 1.0, processors=2, k=2), 2)
    0.26
    >>> round(turns_view([Turn(0.5, 0.5)] * 4, 1.0, 0.0, 1.0, processors=2, k=4), 2)
    1.0
    """
    if not turns or math.isnan(otherwise):
        return otherwise
    crowd = max(1.0, sum(turn.demand for turn in turns) / (processors * seconds))
    most = sorted(turns, key=lambda turn: turn.demand, reverse=True)[:k]
    given = (1.0 - stolen) * crowd
    return min(1.0, *((turn.ran * given + _LITTLE * otherwise) / (turn.demand + _LITTLE) for turn in most))
