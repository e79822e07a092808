"""Jobs that have ended, for the history of run times: as epilogs tell of them, and as accounting does.

An epilog reports at once a job that the queue had reported before. Jobs that were too short for that, or that ended
while the daemon was down, are read from the accounting, which is queried at most once in two minutes. Every other query
is for a further week of older jobs, until all that is to be kept has been read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from metasched.history.job_log import FAILED
from metasched.jobs import EndedJob
from metasched.schedulers.contract import Source
from metasched.service.clock import Clock
from metasched.service.state.job_history import LATE, JobHistory
from metasched.service.state.queues import Queues

_log = logging.getLogger(__name__)

#: How far back a scheduler is asked at first, and for jobs that ended while the daemon was down (s).
REACH = 7 * 86_400.0

#: Seconds of older jobs that are asked for at a time, and after how many such periods without any job they end.
PERIOD, EMPTY = REACH, 8

#: Exit statuses from here on tell of a signal.
KILLED = 128


@dataclass(slots=True)
class _Asked:
    """What a scheduler was asked for.

    Parameters
    ----------
    until : up to when it was asked for what ended (s).
    since : from when on it was asked, or everything is stored (s).
    stored : begin and end of what was stored before the start (s), until ``since`` has come to it.
    empty : periods one after the other, up to the oldest that was asked for, in which no job ended.
    older : whether it was asked for older jobs the last time.
    """

    until: float
    since: float
    stored: tuple[float, float] | None
    empty: int = 0
    older: bool = False

    def back_to(self, since: float) -> None:
        """Note that it was asked for what ended since an earlier time (s)."""
        self.since = since
        if self.stored is not None and since <= self.stored[1]:
            self.since, self.stored = min(since, self.stored[0]), None


class Accounting:
    """Takes jobs that have ended into the history.

    Parameters
    ----------
    history : learns from them.
    queues : learn how long they waited.
    clock : tells the time.
    kept : for how long past jobs are kept (s): so far back they are read.
    """

    def __init__(self, history: JobHistory, queues: Queues, clock: Clock, kept: float = 0.0) -> None:
        self._history, self._queues, self._clock, self._kept = history, queues, clock, kept
        self._asked: dict[str, _Asked] = {}

    def ended(self, job: EndedJob) -> None:
        """Learn from a job reported by its epilog; one that its queue did not list is left to accounting.

        What goes wrong here keeps the job from nothing else.
        """
        try:
            self._queues.ended(job)
            failed = 0 < job.exit_status < KILLED  # beyond, it may have been cancelled as well
            self._history.ended(job.scheduler, job.job, job.start, job.end, FAILED if failed else "", job.numbers)
        except Exception as error:
            _log.warning("job %s of %s is not in the history yet: %s", job.job, job.scheduler, error)

    def catch_up(self, source: Source) -> None:
        """Take what accounting tells of since it was last asked.

        Raises
        ------
        RuntimeError
            When the scheduler does not answer.
        StoreError
            When the database does not take them: they are asked for again.
        """
        if not self._history.ready:
            return
        now = self._clock.now()
        asked = self._asked.get(source.name)
        if asked is not None and not asked.older and self._has_older(asked, now):
            self._read_older(source, asked)
            return
        if asked is None:
            stored = self._history.ends(source.name)
            newest = 0.0 if stored is None or stored[1] > now else stored[1]  # what is to come was imported
            since = max(newest, now - REACH)
            asked = _Asked(since, since, stored)
            asked.back_to(since)
        log = source.accounted(min(asked.until, now) - LATE)  # the clock may have been set back
        if log is not None:
            _log.info("%d jobs of %s are new in the history", self._history.take(source.name, log), source.name)
            self._queues.accounted(source.name, log)
        asked.until, asked.older = now, False
        self._asked[source.name] = asked

    def _has_older(self, asked: _Asked, now: float) -> bool:
        return asked.empty < EMPTY and asked.since > now - self._kept

    def _read_older(self, source: Source, asked: _Asked) -> None:
        """Store the jobs of the period before those that a scheduler was asked for."""
        since, asked.older = asked.since - PERIOD, True
        try:
            log = source.accounted(since, asked.since)
        except RuntimeError as error:
            asked.empty = EMPTY
            _log.info("older jobs of %s are not read: %s", source.name, error)
            return
        if log is not None:
            _log.info("%d older jobs of %s are stored", self._history.keep(source.name, log), source.name)
        asked.empty = 0 if log is not None else asked.empty + 1
        asked.back_to(since)
