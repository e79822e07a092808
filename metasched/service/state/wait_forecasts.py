"""Forecasts of the waits in one queue, and what they missed: learned once of each job, from whoever tells it first.

A job that is seen waiting has its first forecast, made then. One that was submitted and started between two looks at
the queue, as short jobs are, has the forecast that one more job would have had at the look before. The start is known
from the queue while the job runs, from its epilog, or from accounting. Without jobs that start at once, only the errors
of those that wait for long would count.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from threading import Lock

from metasched.history.job_log import JobLog, job_key
from metasched.history.queue import UNLIMITED, Line, QueuedJob
from metasched.history.waits import Wait, WaitErrors
from metasched.jobs import SAME_MOMENT

#: Forecasts that are remembered of jobs that wait, and of jobs that have left the queue since; jobs that were learned.
MOST_FORECASTS = 50_000
#: For how long looks at the queue are remembered (s), and how many waiting jobs they may have in all: accounting, which
#: is asked every few minutes, tells of jobs that were submitted after them.
KEPT, MOST_KEPT = 300.0, 20_000


class WaitForecasts:
    """The first forecast for each job of a queue, and the errors of such forecasts.

    Eight processors are idle; a job that needs them all is submitted two seconds after a look, starts at once, and has
    ended by the next.

    >>> forecasts = WaitForecasts(WaitErrors())
    >>> forecasts.look({}, {}, {"p": Line(8, [])}, 100.0)
    False
    >>> forecasts.unseen(job_key("7", 102.0), {"p"}, 8, 600.0, submitted=102.0, started=102.0)
    True
    >>> forecasts.unseen(job_key("7", 102.0), {"p"}, 8, 600.0, submitted=102.0, started=102.0)
    False
    """

    def __init__(self, errors: WaitErrors) -> None:
        self.errors, self._lock = errors, Lock()
        #: Of each job that waits, the first forecast, when it was made, and when the job was submitted (s).
        self._made: dict[str, tuple[Wait, float, float]] = {}
        #: The same of jobs that are in the queue no more.
        self._left: OrderedDict[str, tuple[Wait, float, float]] = OrderedDict()
        self._learned: OrderedDict[int, None] = OrderedDict()
        #: Times of looks at the queue (s), its lines then, and the number of jobs that waited.
        self._looks: deque[tuple[float, Mapping[str, Line], int]] = deque()

    def expect(self, simulated: float) -> Wait:
        """The forecast for a job whose simulated wait is known (s)."""
        with self._lock:
            return self.errors.expect(simulated)

    def look(
        self, jobs: Mapping[str, QueuedJob], starts: Mapping[str, tuple[str, float]], lines: Mapping[str, Line],
        now: float,
    ) -> bool:  # fmt: skip
        """Take the queue as it is; return whether anything was learned.

        Parameters
        ----------
        jobs : by number.
        starts : partition, and time from now until the start (s), of each job that waits for processors.
        lines : of the partitions.
        now : the time (s).
        """
        with self._lock:
            learned = False
            for number in [*self._made]:
                job = jobs.get(number)
                if job is None:
                    self._left[number] = self._made.pop(number)
                elif job.ran is not None or not job.ready:
                    if job.started is not None:
                        learned |= self._forecast_met(number, job.started, [job_key(number, job.started)])
                    # One that waits for something else than processors by now is forgotten: nobody forecasts that.
                    self._forget(number)
        since = self._looks[0][0] if self._looks else math.inf
        for job in jobs.values():
            if job.started is not None and job.submitted is not None and job.submitted >= since:
                learned |= self.unseen(
                    job_key(job.number, job.started), job.partitions, job.processors, job.limit or UNLIMITED,
                    submitted=job.submitted, started=job.started,
                )  # fmt: skip
        with self._lock:
            for number, (_, start) in starts.items():
                self._left.pop(number, None)  # it was put back into the queue
                if number not in self._made and len(self._made) < MOST_FORECASTS:
                    self._made[number] = self.errors.expect(start), now, jobs[number].submitted or now
            self._looks.append((now, lines, len(starts)))
            while len(self._looks) > 1 and (
                now - self._looks[1][0] > KEPT or sum(waiting for _, _, waiting in self._looks) > MOST_KEPT
            ):
                self._looks.popleft()
            while len(self._left) > MOST_FORECASTS:
                self._left.popitem(last=False)
        return learned

    def started(self, number: str, start: float) -> bool:
        """Learn of a job that was seen waiting and has ended since when it started (s); return whether it was new.

        The second may be another one than that of its scheduler, which a hook does not know.
        """
        keys = [job_key(number, start + shift) for shift in (0.0, -1.0, 1.0)]
        with self._lock:
            return self._forecast_met(number, start, keys)

    def accounted(self, log: JobLog) -> bool:
        """Learn from jobs that accounting tells of; return whether any was new."""
        waiting: dict[int, list[str]] = {}
        with self._lock:
            for number, (_, _, submitted) in self._left.items():
                waiting.setdefault(math.floor(submitted), []).append(number)
        learned = False
        rows = zip(
            log.keys.tolist(), log.named("partition"), log.processors.tolist(), log.requested_time.tolist(),
            log.submit_time.tolist(), log.wait.tolist(), strict=True,
        )  # fmt: skip
        for key, partition, processors, limit, submitted, wait in rows:
            if math.isnan(wait):
                continue
            start = submitted + wait
            alike = waiting.get(math.floor(submitted), ())
            seen = next((each for each in alike if job_key(each, start) == key), None)
            if seen is not None:
                with self._lock:
                    learned |= self._forecast_met(seen, start, [key])
            else:
                holds = UNLIMITED if math.isnan(limit) else limit
                learned |= self.unseen(key, {partition}, processors, holds, submitted=submitted, started=start)
        return learned

    def unseen(
        self, key: int, partitions: Collection[str], processors: int, limit: float, *, submitted: float, started: float
    ) -> bool:
        """Learn from a job that started before any look could see it wait; return whether there was anything to learn.

        Parameters
        ----------
        key : of this run, see :func:`~metasched.history.job_log.job_key`.
        partitions, processors, limit : that it asked for (s); it started where it could soonest.
        submitted, started : when (s).
        """
        with self._lock:
            before = [each for each in self._looks if each[0] <= submitted]
            if not before or key in self._learned:
                return False
            after = self._looks[len(before)][0] if len(before) < len(self._looks) else math.inf
            if started > after:  # that look saw it wait, or it was not ready
                return False
            lines = before[-1][1]
            waits = [lines[name].wait(processors, limit) for name in partitions if name in lines]
            simulated = min(waits, default=math.inf)
            if not math.isfinite(simulated):
                return False
            self.errors.learn(self.errors.expect(simulated), max(started - submitted, 0.0))
            self._note([key])
            return True

    def _forecast_met(self, number: str, start: float, keys: Collection[int]) -> bool:
        """Learn when a job started for which there is a forecast; whether it was new."""
        found = self._made.get(number) or self._left.get(number)
        if found is None or start < found[1] - SAME_MOMENT:  # an earlier run of a job that was put back into the queue
            return False
        self._forget(number)
        if any(key in self._learned for key in keys):
            return False
        self.errors.learn(found[0], max(start - found[1], 0.0))
        self._note(keys)
        return True

    def _forget(self, number: str) -> None:
        self._made.pop(number, None)
        self._left.pop(number, None)

    def _note(self, keys: Collection[int]) -> None:
        self._learned.update(dict.fromkeys(keys))
        while len(self._learned) > MOST_FORECASTS:
            self._learned.popitem(last=False)
