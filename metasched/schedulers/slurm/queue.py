"""How long a job would wait in each partition, from the jobs that run and those that are ahead of it.

Running jobs hold their processors until their time limit, and those ahead start in their order, each for its limit:
what Slurm's own plan rests on. Jobs mostly end sooner and small ones start out of turn, so it is an upper estimate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from metasched.placement.waits import QueueWait, earliest_start

#: How a queue is asked for: state, partitions, processors, time left, time limit, and why a job is not started.
FORMAT = "%T|%P|%C|%L|%l|%r"
#: Why jobs wait that are ahead of a new one; others wait for something else than processors.
WAITING = frozenset({"None", "Priority", "Resources"})
#: What a job without a limit is taken to need (s).
UNLIMITED = 86_400.0


def queue_waits(
    rows: Iterable[Sequence[str]], free: Mapping[str, int], *, everywhere: bool = False
) -> dict[str, QueueWait]:
    """The wait in each partition by the number of processors; nothing is said of partitions where nobody waits.

    Parameters
    ----------
    rows : the fields of ``FORMAT`` of each job that runs or waits, those that wait in the order of their priority.
    free : processors that are free in each partition.
    everywhere : tell of all partitions, as a job must know that may wait where nobody does yet.

    Examples
    --------
    Four processors are free, but a job that is ahead waits for eight of them; the four others are freed in 100 s.

    >>> rows = [["RUNNING", "p", "4", "1:40", "10:00", "None"], ["PENDING", "p", "8", "INVALID", "5:00", "Resources"]]
    >>> queue_waits(rows, {"p": 4, "q": 2})["p"].at([1, 8]).tolist()
    [400.0, 400.0]
    """
    running: dict[str, list[tuple[int, float]]] = {}
    ahead: dict[str, list[tuple[int, float]]] = {}
    for state, partitions, processors, left, limit, reason in rows:
        if not processors.isdecimal():
            continue
        for partition in partitions.split(","):
            if state == "RUNNING":
                running.setdefault(partition, []).append((int(processors), seconds(left) or UNLIMITED))
            elif state == "PENDING" and reason in WAITING:
                ahead.setdefault(partition, []).append((int(processors), seconds(limit) or UNLIMITED))
    return {
        partition: earliest_start(free[partition], running.get(partition, ()), ahead.get(partition, ()))
        for partition in (free if everywhere else ahead)
        if partition in free
    }


def seconds(text: str) -> float | None:
    """Slurm's span of time, such as 1-12:00:00, 12:00:00 or 30:00; None where there is none, as for no limit.

    Examples
    --------
    >>> [seconds(text) for text in ("1-12:00:00", "2:00:00", "30:00", "infinite")]
    [129600.0, 7200.0, 1800.0, None]
    """
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip())
    if found is None:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return 86_400.0 * days + 3600.0 * hours + 60.0 * minutes + rest
