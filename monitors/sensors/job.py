"""The use of each processor by a job on this host: :class:`JobUse`; a job must not count as load on itself.

The kernel keeps processor time for each process, without saying where it was spent; so it is taken to have been spent
where the process is seen, as far as that processor was busy.
"""

from __future__ import annotations

from collections.abc import Sequence

import psutil


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
        self.since_last((), ())

    def since_last(self, processors: Sequence[int], busy: Sequence[float]) -> tuple[int, list[float]]:
        """The number of its running processes, and the seconds that it used on each processor since the last call.

        Parameters
        ----------
        processors : numbers of the processors.
        busy : seconds that each of them was busy since then.
        """
        used: dict[psutil.Process, float] = {}
        place = {number: index for index, number in enumerate(processors)}
        located = [0.0] * len(processors)
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
            if processor in place:
                located[place[processor]] += max(0.0, used[process] - self._used.get(process, 0.0))
        # Children that have ended since are in their parent's account; nobody knows any more where they ran.
        elsewhere = max(0.0, total - self._total - sum(located))
        self._used, self._total = used, max(total, self._total)
        return running, attributed(located, elsewhere, busy)

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self._pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def attributed(located: Sequence[float], elsewhere: float, busy: Sequence[float]) -> list[float]:
    """Spread a job's processor time over the processors that were busy.

    Parameters
    ----------
    located : for each processor, seconds used by processes that were last seen there.
    elsewhere : seconds used nobody knows where.
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
