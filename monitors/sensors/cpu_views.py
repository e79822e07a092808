"""What passive counters say a new task would get: formulas only, no reading.

All of them answer for a task of k processes that start together on a host where others run: the share of one processor
that each of the k would get. Sources: the Network Weather Service's uptime and vmstat views, here for k processes, and
the limits of control groups.
"""

from __future__ import annotations


def queue_view(processors: float, runnable: float, k: int = 1) -> float:
    """Share from the run queue: the k and the ``runnable`` others divide the processors evenly.

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
