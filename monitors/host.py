"""Sensors of this host by psutil: available CPU of each processor, available bandwidth of each link.

A sensor is read again and again; each reading is the mean since the one before, from counters that the kernel keeps,
so that nothing between two readings is missed and reading costs next to nothing. A job that runs on this host does not
count as load: what is available to it is what is idle and what its own processes use. The kernel keeps processor time
for each process but traffic only for each interface; the job's own traffic can therefore not be told from others'.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

import numpy as np
import psutil
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Taken for the speed of a link that does not tell it (Mbit/s); the loopback interface, which has none, copies memory.
UNKNOWN_SPEED = 1_000.0
LOOPBACK_SPEED = 10_000.0
#: A new transfer gets at least this share of a full link.
_LEAST_SHARE = 0.01


class CpuSensor:
    """Share of each processor that a process of a job would get; by default of a job yet to come.

    The kernel moves a process to wherever there is room, so processor ``k`` of a reading is the one with the ``k``-th
    most to spare at that time, whichever it is, and a job of P processes is concerned with the first P. Processors on
    which this process may not run are left out.

    Examples
    --------
    >>> sensor = CpuSensor()
    >>> time.sleep(0.05)
    >>> shares = sensor.read()
    >>> bool(np.all(np.diff(shares) <= 0)), bool(np.all((shares > 0) & (shares <= 1)))
    (True, True)
    """

    def __init__(self) -> None:
        self._processors = _allowed_processors()
        self._root: int | None = None
        self._job: dict[psutil.Process, float] = {}
        self._job_total = 0.0
        self._busy, self._idle = self._counters()

    def follow(self, pid: int) -> None:
        """From now on take this process and its descendants as the job, not as load."""
        self._root = pid

    def read(self) -> Floats:
        """Shares since the last reading: array of shape (processors,), descending, in (0, 1]; NaN where too soon."""
        busy, idle = self._counters()
        own, running = self._own_use(busy - self._busy)
        # The kernel counts who is ready to run on the whole host, also where we may not run.
        others = max(0, _runnable() - running) / (psutil.cpu_count() or 1)
        shares = available_cpu(busy - self._busy, idle - self._idle, own, others)
        self._busy, self._idle = busy, idle
        return np.sort(shares)[::-1]

    def _counters(self) -> tuple[Floats, Floats]:
        times = [psutil.cpu_times(percpu=True)[k] for k in self._processors]
        idle = np.array([t.idle + getattr(t, "iowait", 0.0) for t in times])
        # Linux counts the time of guests in user and nice too.
        total = np.array([sum(t) - getattr(t, "guest", 0.0) - getattr(t, "guest_nice", 0.0) for t in times])
        return total - idle, idle

    def _own_use(self, busy: Floats) -> tuple[Floats, int]:
        """Seconds that the job used on each processor since the last reading, and how many of it run right now."""
        used: dict[psutil.Process, float] = {}
        located = np.zeros(max(self._processors) + 1)
        total, running = 0.0, 0
        for process in self._tree():
            try:
                with process.oneshot():
                    times, processor = process.cpu_times(), process.cpu_num()
                    running += process.status() == psutil.STATUS_RUNNING
            except psutil.Error:
                continue
            used[process] = times.user + times.system
            total += used[process] + times.children_user + times.children_system
            if processor < len(located):
                located[processor] += max(0.0, used[process] - self._job.get(process, 0.0))
        # Children that have ended since are in their parent's account; nobody knows any more where they ran.
        elsewhere = max(0.0, total - self._job_total - located.sum())
        self._job, self._job_total = used, max(total, self._job_total)
        return attribute(located[self._processors], elsewhere, busy), running

    def _tree(self) -> list[psutil.Process]:
        if self._root is None:
            return []
        try:
            root = psutil.Process(self._root)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


class LinkSensor:
    """Bandwidth (Mbit/s) that each interface has to spare: its speed less what passes in the busier direction.

    Parameters
    ----------
    interfaces : names; by default the loopback interface, over which the processes of a job on one host talk.
    speeds : speed of an interface (Mbit/s) where it is known better than the kernel knows it.

    Raises
    ------
    ValueError
        When there is no interface of that name.
    """

    def __init__(self, interfaces: Sequence[str] | None = None, speeds: Mapping[str, float] | None = None) -> None:
        known = psutil.net_if_stats()
        self.interfaces = tuple(interfaces) if interfaces else (_loopback(known),)
        for name in self.interfaces:
            if name not in known:
                raise ValueError(f"there is no network interface {name}, expected one of {', '.join(sorted(known))}")
        self._speeds = dict(speeds or {})
        self._bits, self._at = self._counters()

    def read(self) -> Floats:
        """What there was to spare since the last reading: array of shape (interfaces,); NaN where too soon."""
        bits, at = self._counters()
        elapsed = at - self._at
        used = (bits - self._bits).max(axis=1) / (1e6 * elapsed) if elapsed > 0 else np.nan
        self._bits, self._at = bits, at
        speed = np.array([self._speed(name) for name in self.interfaces])
        return np.asarray(np.clip(speed - used, _LEAST_SHARE * speed, speed), dtype=float)

    def _counters(self) -> tuple[Floats, float]:
        counters = psutil.net_io_counters(pernic=True)
        return 8.0 * np.array([counters[name][:2] for name in self.interfaces], dtype=float), time.monotonic()

    def _speed(self, name: str) -> float:
        if name in self._speeds:
            return self._speeds[name]
        stats = psutil.net_if_stats()
        return stats[name].speed or (LOOPBACK_SPEED if name == _loopback(stats) else UNKNOWN_SPEED)


def available_cpu(busy: Floats, idle: Floats, own: Floats, others: float) -> Floats:
    """Share of each processor that is available to a job.

    It is what is idle and what the job uses itself; but never less than the kernel's fair share, since a process that
    waits for a message leaves its processor to others and still gets it back.

    Parameters
    ----------
    busy, idle : arrays of shape (processors,), seconds.
    own : array of shape (processors,), the part of ``busy`` that the job itself used.
    others : how many processes that are not of the job are ready to run, on average per processor.

    Returns
    -------
    array of shape (processors,), in (0, 1]; NaN where no time has passed.

    Examples
    --------
    >>> available_cpu(np.array([1.0, 0.5]), np.array([0.0, 0.5]), np.array([0.6, 0.5]), others=1)
    array([0.6, 1. ])
    """
    elapsed = busy + idle
    load = np.full_like(elapsed, np.nan)
    np.divide(busy - own, elapsed, out=load, where=elapsed > 0)
    # On a busy processor there is at least one other process to share with.
    fair = 1.0 / (1.0 + max(1.0, others))
    return np.clip(1.0 - load, fair, 1.0)


def attribute(located: Floats, elsewhere: float, busy: Floats) -> Floats:
    """Spread a job's processor time over the processors that were busy.

    Parameters
    ----------
    located : array of shape (processors,), seconds used by processes that were last seen there.
    elsewhere : seconds used nobody knows where.
    busy : array of shape (processors,), seconds that each processor was busy.

    Returns
    -------
    array of shape (processors,), at most ``busy``: time stays where it was seen as far as there is room for it, since a
    process moves now and then; the rest goes where there is room, in proportion to it.

    Examples
    --------
    >>> attribute(np.array([1.5, 0.0]), 0.0, np.array([1.0, 0.9]))
    array([1. , 0.5])
    """
    own = np.minimum(located, busy)
    room = busy - own
    rest = elsewhere + float((located - own).sum())
    total = float(room.sum())
    return own + (room if rest >= total else room * (rest / total))


def _allowed_processors() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return list(range(psutil.cpu_count() or 1))


def _runnable() -> int:
    """Processes ready to run on the whole host, without this one; 0 where the kernel does not tell."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            return max(0, next(int(line.split()[1]) for line in file if line.startswith("procs_running")) - 1)
    except (OSError, StopIteration):
        return 0


def _loopback(stats: Mapping[str, object]) -> str:
    return next((name for name, stat in stats.items() if "loopback" in getattr(stat, "flags", "")), "lo")
