"""Periodic work by the monotonic clock: setting the time of day neither stops nor hastens it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Thread

from metasched.service.recurring_faults import RecurringFaults

_log = logging.getLogger(__name__)

#: How long after a failure work that is done once is tried again (s).
RETRY_AFTER = 30.0
#: How long the end waits for work that is being done (s): a database may not answer it.
ENDING = 10.0


class Schedule:
    """Each kind of work has a thread of its own, so that none waits for another.

    Examples
    --------
    >>> schedule, done = Schedule(), Event()
    >>> schedule.every(0.01, done.set)
    >>> done.wait(60.0)
    True
    >>> schedule.stop()
    """

    def __init__(self) -> None:
        self._stopping = Event()
        self._threads: list[Thread] = []
        self._left: list[Thread] = []

    def every(self, seconds: float, work: Callable[[], object]) -> None:
        """Do a work after a period, and again after each further one; one that fails is done again.

        Parameters
        ----------
        seconds : the period.
        work : called without arguments.
        """
        self._begin(self._again, work, seconds)

    def once(self, work: Callable[[], object], *, after: float = 0.0, left: bool = False) -> None:
        """Do a work once, however often it must be tried for that: the database may be away for a while.

        Parameters
        ----------
        work : what to do; it counts as done when it raises nothing.
        after : how long to wait before the first try (s).
        left : whether the end need not wait for it: work that only reads, perhaps for minutes.
        """
        thread = self._begin(self._until_done, work, after)
        if left:
            self._left.append(thread)

    @property
    def idle(self) -> bool:
        """Whether all that is to be done once is done."""
        return not any(thread.is_alive() for thread in self._threads if thread.name.endswith(" once"))

    def stop(self) -> None:
        """End it; work that is being done is finished, unless it only reads, or takes too long."""
        self._stopping.set()
        end = time.monotonic() + ENDING
        for thread in self._threads:
            if thread not in self._left:
                thread.join(max(end - time.monotonic(), 0.0))

    def _begin(
        self, run: Callable[[Callable[[], object], float], None], work: Callable[[], object], s: float
    ) -> Thread:
        once = " once" if run == self._until_done else ""
        name = f"metasched-{getattr(work, '__name__', 'work')}{once}"
        thread = Thread(target=run, args=(work, s), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _again(self, work: Callable[[], object], seconds: float) -> None:
        due, faults = time.monotonic() + seconds, RecurringFaults()
        while not self._stopping.wait(max(due - time.monotonic(), 0.0)):
            due = max(due, time.monotonic()) + seconds  # what was missed is not made up for
            _tried(work, faults)

    def _until_done(self, work: Callable[[], object], after: float) -> None:
        faults = RecurringFaults()
        while not self._stopping.wait(after):
            if _tried(work, faults):
                return
            after = RETRY_AFTER


def _tried(work: Callable[[], object], faults: RecurringFaults) -> bool:
    """Whether a work was done; where it failed, the log says why, once a minute while it stays the same."""
    try:
        work()
    except Exception as error:
        name, expected = getattr(work, "__name__", "work"), isinstance(error, RuntimeError)
        level = logging.WARNING if expected else logging.ERROR
        if faults.to_log(str(error)):
            _log.log(level, "%s failed and is retried: %s", name, error, exc_info=not expected)
        return False
    return True
