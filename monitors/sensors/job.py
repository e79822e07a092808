"""The use of each processor by a job on this host: :class:`JobUse`; a job must not count as load on itself.

The kernel keeps processor time for each process, without saying where it was spent; so it is taken to have been spent
where the process is seen, as far as that processor was busy. For each thread it also counts how long it was ready to
run and waited for a processor (schedstat, in nanoseconds).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil


class Turn(NamedTuple):
    """Seconds that a process, with all its threads, ran and that it waited for a processor.

    >>> Turn(0.3, 0.1).demand
    0.4
    """

    ran: float
    waited: float

    @property
    def demand(self) -> float:
        """Seconds for which a processor was wanted."""
        return self.ran + self.waited


class Use(NamedTuple):
    """The use of processors by a job over some time.

    Parameters
    ----------
    running : number of its processes that run now.
    own : seconds that it used on each processor.
    turns : of each process; empty where the kernel does not count them.
    """

    running: int
    own: list[float]
    turns: list[Turn]


class JobUse:
    """Processor time of a process and all its descendants, from now on.

    Parameters
    ----------
    pid : of the process that started the others.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._used: dict[psutil.Process, float] = {}
        self._total = 0.0
        self._turns: dict[tuple[psutil.Process, str], Turn] = {}
        self.since_last((), ())

    def since_last(self, processors: Sequence[int], busy: Sequence[float]) -> Use:
        """The use since the last call.

        Parameters
        ----------
        processors : numbers of the processors.
        busy : seconds that each of them was busy since then.
        """
        used: dict[psutil.Process, float] = {}
        place = {number: index for index, number in enumerate(processors)}
        located = [0.0] * len(processors)
        total, running = 0.0, 0
        threads: dict[tuple[psutil.Process, str], Turn] = {}
        turns: list[Turn] = []
        for process in self._tree():
            try:
                with process.oneshot():
                    times, processor = process.cpu_times(), process.cpu_num()
                    running += process.status() == psutil.STATUS_RUNNING
            except psutil.Error:
                continue
            used[process] = times.user + times.system
            total += used[process] + times.children_user + times.children_system
            if processor in place:
                located[place[processor]] += max(0.0, used[process] - self._used.get(process, 0.0))
            counted = _turns(process)
            since = [(now, self._turns.get(thread, Turn(0.0, 0.0))) for thread, now in counted.items()]
            if since:
                ran, waited = (sum(now[side] - before[side] for now, before in since) for side in (0, 1))
                turns.append(Turn(ran, waited))
            threads |= counted
        # Children that have ended since are in their parent's account; where they ran is lost.
        elsewhere = max(0.0, total - self._total - sum(located))
        self._used, self._total, self._turns = used, max(total, self._total), threads
        return Use(running, attributed(located, elsewhere, busy), turns)

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self._pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _turns(process: psutil.Process) -> dict[tuple[psutil.Process, str], Turn]:
    """Seconds that each thread of a process ran and waited since its start; none where the kernel does not count."""
    found = {}
    folder = f"/proc/{process.pid}/task"
    try:
        threads = os.listdir(folder)
    except OSError:  # it has ended
        return {}
    for thread in threads:
        # The thread has ended, or the kernel was built without.
        with suppress(OSError, ValueError), open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
            ran, waited, _ = map(int, file.read().split())
            found[process, thread] = Turn(1e-9 * ran, 1e-9 * waited)
    return found


def attributed(located: Sequence[float], elsewhere: float, busy: Sequence[float]) -> list[float]:
    """Spread a job's processor time over the processors that were busy.

    Parameters
    ----------
    located : for each processor, seconds used by processes that were last seen there.
    elsewhere : seconds used on processors that are unknown.
    busy : seconds that each processor was busy.

    Returns
    -------
    Seconds for each processor, at most ``busy``: time stays where it was seen as far as there is room for it, since a
    process moves now and then; the rest goes where there is room, in proportion to it.

    Examples
    --------
    >>> attributed([1.5, 0.0], 0.0, [1.0, 1.0])
    [1.0, 0.5]
    """
    own = [min(seen, whole) for seen, whole in zip(located, busy, strict=True)]
    room = [whole - part for whole, part in zip(busy, own, strict=True)]
    rest, total = elsewhere + sum(located) - sum(own), sum(room)
    part = 1.0 if rest >= total else max(rest, 0.0) / total
    return [known + part * free for known, free in zip(own, room, strict=True)]
