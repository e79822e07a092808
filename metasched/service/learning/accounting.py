"""Jobs that have ended, for the history of run times: as epilogs tell of them, and as accounting does.

An epilog reports at once a job that the queue had reported before. Jobs that were too short for that, or that ended
while the daemon was down, are read from the accounting, which is queried at most once in two minutes.
"""

from __future__ import annotations

import logging

from metasched.history.job_log import FAILED
from metasched.jobs import EndedJob
from metasched.schedulers.contract import Source
from metasched.service.clock import Clock
from metasched.service.state.job_history import LATE, JobHistory

_log = logging.getLogger(__name__)

#: How far back a scheduler is asked at first, and for jobs that ended while the daemon was down (s).
REACH = 7 * 86_400.0

#: Exit statuses from here on tell of a signal.
KILLED = 128


class Accounting:
    """Takes jobs that have ended into the history.

    Parameters
    ----------
    history : learns from them.
    clock : tells the time.
    """

    def __init__(self, history: JobHistory, clock: Clock) -> None:
        self._history, self._clock = history, clock
        self._asked: dict[str, float] = {}

    def ended(self, job: EndedJob) -> None:
        """Learn from a job reported by its epilog; one that its queue did not list is left to accounting.

        What goes wrong here keeps the job from nothing else.
        """
        try:
            failed = 0 < job.exit_status < KILLED  # beyond, it may have been cancelled as well
            self._history.ended(job.scheduler, job.job, job.start, job.end, FAILED if failed else "")
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
        since = self._asked.get(source.name)
        if since is None:
            newest = self._history.newest_end(source.name) or 0.0
            since = max(newest if newest <= now else 0.0, now - REACH)  # what is to come was imported from elsewhere
        log = source.accounted(min(since, now) - LATE)  # the clock may have been set back
        if log is not None:
            stored = self._history.take(source.name, log)
            _log.info("%d jobs of %s are new in the history", stored, source.name)
        self._asked[source.name] = now
