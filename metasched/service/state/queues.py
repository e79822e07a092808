"""The queues of the schedulers as they were last reported, and the waits that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metasched.history.job_log import JobLog
from metasched.history.queue import Line, QueuedJob
from metasched.history.waits import WaitErrors
from metasched.jobs import EndedJob
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.partition_queues import partition_lines, with_queue_waits
from metasched.records import InputError
from metasched.service.state.job_history import JobHistory
from metasched.service.state.wait_forecasts import WaitForecasts
from metasched.store.database.wait_error_records import WaitErrorRecords
from metasched.store.errors import StoreError


@dataclass(frozen=True, slots=True)
class _Queue:
    """A queue: its jobs by number, in its order, its partitions' lines, and when each job would start (s from then)."""

    asked_at: float
    jobs: Mapping[str, QueuedJob]
    lines: Mapping[str, Line]
    starts: Mapping[str, tuple[str, float]]


class Queues:
    """The queue of each scheduler, as it is expected to go on."""

    def __init__(self, history: JobHistory, kept: WaitErrorRecords) -> None:
        self._history, self._kept = history, kept
        #: Schedulers of which something was learned since it was last saved.
        self._unsaved: set[str] = set()
        self._queues: dict[str, _Queue] = {}
        self._forecasts: dict[str, WaitForecasts] = {}

    def restore(self) -> None:
        """Read what forecasts have missed before the start; StoreError where that cannot be read."""
        for source, errors in self._kept.all().items():
            self._forecasts.setdefault(source, WaitForecasts(errors))

    def save(self) -> None:
        """Store what was learned of forecasts since the last time; StoreError where that is not possible."""
        unsaved, self._unsaved = self._unsaved, set()
        try:
            if unsaved:
                self._kept.save({source: self._forecasts[source].errors for source in unsaved})
        except StoreError:
            self._unsaved |= unsaved
            raise

    def put(
        self, source: str, partitions: Sequence[Partition], jobs: Sequence[QueuedJob] | None, now: float
    ) -> tuple[Partition, ...]:
        """Take a scheduler's queue; return its partitions with the waits in it.

        Where it does not tell its jobs (None), the queue stays as it was: that none are known does not mean that there
        are none.
        """
        if jobs is None:
            last = self._queues.get(source)
            return (
                tuple(partitions) if last is None else with_queue_waits(partitions, [*last.jobs.values()], last.lines)
            )
        self._history.note(source, jobs, now)
        left = self._history.left(source)
        lines = partition_lines(partitions, jobs, left)
        # A job that may start in several partitions starts where it may soonest.
        starts: dict[str, tuple[str, float]] = {}
        by_number = {job.number: job for job in jobs}
        for name, line in lines.items():
            for number, start in line.starts().items():
                mine = name in by_number[number].partitions
                if mine and start < starts.get(number, ("", math.inf))[1]:
                    starts[number] = name, start
        if self._history.ready:  # forecasts made before the history is known are none to learn from
            self._learned(source, self._of(source).look(by_number, starts, lines, now))
        self._queues = self._queues | {source: _Queue(now, by_number, lines, starts)}
        return with_queue_waits(partitions, jobs, lines)

    def waiting(
        self, now: float, shown: Callable[[str], bool] = lambda user: True, source: str | None = None
    ) -> list[dict[str, Any]]:
        """The waits of the jobs that wait, of users that are shown, in the order of the queues: of a scheduler or all.

        Parameters
        ----------
        now : the time (s).
        shown : whether the jobs of a user are.
        source : the scheduler, all where None.
        """
        return [
            self._document(name, queue, job, now)
            for name, queue in self._queues.items()
            if source in (None, name)
            for job in queue.jobs.values()
            if job.ran is None and shown(job.user)
        ]

    def job(
        self, number: str, now: float, source: str | None = None, shown: Callable[[str], bool] = lambda user: True
    ) -> dict[str, Any] | None:
        """The wait of a job; None where no queue that is asked about holds one of this number that is shown."""
        for name, queue in self._queues.items():
            job = queue.jobs.get(number)
            if job is not None and source in (None, name) and shown(job.user):
                return self._document(name, queue, job, now)
        return None

    def placements_of(self, number: str) -> list[str]:
        """The uids of the placements that the jobs of a number name in their comments, of every scheduler."""
        found = (queue.jobs.get(number) for queue in self._queues.values())
        return [job.placement for job in found if job is not None and job.placement]

    def heard(self, source: str | None = None) -> bool:
        """Whether the queue of a scheduler is known, or any where None."""
        return bool(self._queues) if source is None else source in self._queues

    def scheduler_of(self, partition: str, source: str | None = None) -> str:
        """The scheduler that has a partition: this one, or any where None.

        Raises
        ------
        InputError : when no such partition is known.
        """
        found = [name for name, queue in self._queues.items() if source in (None, name)]
        if not found:
            raise InputError(f"no queue of {source or 'any scheduler'} is known yet")
        name = next((each for each in found if partition in self._queues[each].lines), None)
        if name is None:
            known = ", ".join(sorted({each for source in found for each in self._queues[source].lines}))
            raise InputError(
                f"no partition {partition}, expected one of {known or 'none: no scheduler has reported any'}"
            )
        return name

    def one_more(self, partition: str, processors: int, limit: float, source: str | None = None) -> dict[str, Any]:
        """The wait of a job that is not submitted yet.

        Parameters
        ----------
        partition : where it would wait.
        processors : how many it would ask for.
        limit : the time that it would ask for (s).
        source : the scheduler, any that has the partition where None.

        Raises
        ------
        InputError : when no such partition is known, or it has fewer processors.
        """
        name = self.scheduler_of(partition, source)
        line = self._queues[name].lines[partition]
        simulated = line.wait(processors, limit)
        if not math.isfinite(simulated):
            raise InputError(
                f"{processors} processors are requested, expected no more than the {line.processors} of {partition} "
                "whose nodes are up"
            )
        return {"cluster": name, "partition": partition, "processors": processors, **self._interval(name, simulated)}

    def ended(self, job: EndedJob) -> None:
        """Learn how long a job waited that was seen waiting, by what its epilog tells of it."""
        self._learned(job.scheduler, self._of(job.scheduler).started(job.job, job.start))

    def accounted(self, source: str, log: JobLog) -> None:
        """Learn how long jobs waited that started and ended between two looks at the queue, by their accounting."""
        self._learned(source, self._of(source).accounted(log))

    def _of(self, source: str) -> WaitForecasts:
        return self._forecasts.setdefault(source, WaitForecasts(WaitErrors()))

    def _learned(self, source: str, anything: bool) -> None:
        if anything:
            self._unsaved.add(source)

    def _interval(self, source: str, simulated: float) -> dict[str, float]:
        """A wait and its interval, corrected for the errors of earlier forecasts."""
        found = self._of(source).expect(simulated)
        return {"wait": found.seconds, "low": min(found.low, found.seconds), "high": max(found.high, found.seconds)}

    def _document(self, source: str, queue: _Queue, job: QueuedJob, now: float) -> dict[str, Any]:
        """What the daemon answers about a pending job."""
        document: dict[str, Any] = {
            "cluster": source, "job": job.number, "partition": ",".join(sorted(job.partitions)),
            "processors": job.processors, "requested_time": job.limit, "user": job.user, "name": job.name,
            "submitted": job.submitted, "started": job.started,
        }  # fmt: skip
        if job.ran is not None:
            return document | {"state": "running", "wait": 0.0, "low": 0.0, "high": 0.0, "scheduler_start": None,
                           "scheduler_wait": None}  # fmt: skip
        planned = {"scheduler_start": job.planned,
                   "scheduler_wait": None if job.planned is None else max(job.planned - now, 0.0)}  # fmt: skip
        found = queue.starts.get(job.number)
        if found is None:
            state = "waiting" if job.ready else "not ready"
            return document | {"state": state, "wait": None, "low": None, "high": None} | planned
        name, start = found
        gone = max(now - queue.asked_at, 0.0)
        waits = {what: max(value - gone, 0.0) for what, value in self._interval(source, start).items()}
        return document | {"state": "waiting", "partition": name} | waits | planned
