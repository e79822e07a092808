"""Periodic work by the monotonic clock: setting the time of day neither stops nor hastens it."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from threading import Event, Thread

from monitors.recurring_faults import RecurringFaults

_log = logging.getLogger(__name__)

#: How long after a failure work that is done once is tried again (s).
RETRY_AFTER = 30.0
#: How long the end waits for work that is being done (s): a database may not answer it.
ENDING = 10.0


class Schedule:
    """Each kind of work has a thread of its own, so that none waits for another.

    >>> schedule, done = Schedule(), Event()
    >>> schedule.every(0.01, done.set)
    >>> done.wait(60.0)
    True
    >>> schedule.stop()
    """

    def __init__(self) -> None:
        self._stopping = Event()
        self._periodic: list[Thread] = []
        self._once: list[Thread] = []
        self._left: list[Thread] = []

    def every(self, seconds: float, work: Callable[[], object], *, spread: float = 0.0) -> None:
        """Do a work after a period, and again after each further one; one that fails is done again.

        Parameters
        ----------
        seconds : the period.
        work : called without arguments.
        spread : up to how much later, at random, each begins (s): many hosts then don't call at the same moment.

        Raises
        ------
        RuntimeError : no more threads can be started.
        """
        self._periodic.append(_started(self._again, work, seconds, spread))

    def once(self, work: Callable[[], object], *, after: float = 0.0, left: bool = False) -> None:
        """Do a work once, however often it must be tried for that: the database may be away for a while.

        Parameters
        ----------
        work : what to do; it counts as done when it raises nothing.
        after : how long to wait before the first try (s).
        left : whether the end need not wait for it: work that only reads, perhaps for minutes.
        """
        (self._left if left else self._once).append(_started(self._until_done, work, after))

    @property
    def idle(self) -> bool:
        """Whether all that is to be done once is done."""
        return not any(thread.is_alive() for thread in (*self._once, *self._left))

    def stop(self) -> None:
        """End it; work that is being done is finished, unless it only reads, or takes too long."""
        self._stopping.set()
        end = time.monotonic() + ENDING
        for thread in (*self._periodic, *self._once):
            thread.join(max(end - time.monotonic(), 0.0))

    def _again(self, work: Callable[[], object], seconds: float, spread: float) -> None:
        due, faults = time.monotonic() + seconds, RecurringFaults()
        while not self._stopping.wait(max(due - time.monotonic(), 0.0) + spread * random.random()):  # noqa: S311
            late = time.monotonic() - due
            due += seconds + (late if late > spread else 0.0)  # what was missed is not made up for
            _tried(work, faults)

    def _until_done(self, work: Callable[[], object], after: float) -> None:
        faults = RecurringFaults()
        while not self._stopping.wait(after):
            if _tried(work, faults):
                return
            after = RETRY_AFTER


def _started(run: Callable[..., None], work: Callable[[], object], *times: float) -> Thread:
    name = f"metasched-{getattr(work, '__name__', 'work')}"
    thread = Thread(target=run, args=(work, *times), name=name, daemon=True)
    thread.start()
    return thread


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
