"""Processor time that this host's kernel counts: of all processors, and of the children that have ended.

What a run used of all that was used meanwhile tells its share of the energy that a meter of the host counts.
"""

from __future__ import annotations

import resource

import psutil


def idle_and_busy(times: object) -> tuple[float, float]:
    """Idle and busy seconds of processor times as psutil gives them.

    >>> from types import SimpleNamespace
    >>> class Times(tuple):
    ...     idle, iowait, guest = 5.0, 1.0, 0.5
    >>> idle_and_busy(Times((2.0, 5.0, 1.0, 0.5)))
    (6.0, 2.0)
    """
    idle = times.idle + getattr(times, "iowait", 0.0)  # type: ignore[attr-defined]
    # Linux counts the time of guests in user and nice too.
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return idle, sum(times) - guests - idle  # type: ignore[call-overload]


def busy_seconds() -> float:
    """Processor time that all processors of this host have worked since it was started (s)."""
    return float(idle_and_busy(psutil.cpu_times())[1])


def seconds_of_children() -> float:
    """Processor time of the children of this process that have ended and been waited for, and of theirs (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
