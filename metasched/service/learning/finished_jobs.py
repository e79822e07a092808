"""Jobs that have ended: stored, matched with the advice given for them, confirmed by their scheduler, and learned."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import chain
from threading import Lock
from types import MappingProxyType
from typing import Any

from metasched.advised_placements import AdvisedPlacement
from metasched.history.argument_numbers import merged
from metasched.jobs import (
    LEFT_ALONE,
    LONGEST_BEGINNING,
    SAME_MOMENT,
    EndedJob,
    Fate,
    Mark,
    check_times,
    read_mark,
    same_run,
    says_off,
)
from metasched.records import Run
from metasched.schedulers.contract import Source
from metasched.service.clock import Clock
from metasched.service.learning.accounting import REACH
from metasched.service.learning.confirmation import Pending, Waiting, ended_by_scheduler
from metasched.service.learning.job_energies import JobEnergies
from metasched.service.learning.job_matching import AFTER, BEFORE, Askers, match, owns
from metasched.service.learning.run_outcome import DONE, UNLEARNED, Concluded, as_reported, conclude, unlearned
from metasched.service.metrics import Metrics
from metasched.service.quality.advice_quality import Ledger, settled
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Models
from metasched.service.state.sized_jobs import SizedJobs
from metasched.service.state.write_queue import WriteQueue
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.run_records import FORGOTTEN, RecordedRun
from metasched.store.database.store import Store
from metasched.store.errors import StoreError

_log = logging.getLogger(__name__)

#: Placements without an outcome that are looked for after a restart, the newest first.
MOST_OPEN = 10_000
#: Finished jobs from before a restart that tell how good the advice is.
REMEMBERED_JOBS = 2000
#: How far back a scheduler whose jobs no epilog reports is asked repeatedly (s).
LATELY = 86_400.0
#: Schedulers cut off their times to whole seconds (s).
WHOLE = 1.0
#: Placements about a moment are kept in mind from so long after it on (s), when all of them are made, for the jobs
#: that a loop submitted together; for so many moments.
ALL_MADE, MOMENTS = 10.0, 16


class Turns:
    """Lets reports of one job be taken one after the other, whoever reports it: only then is the second one known."""

    def __init__(self) -> None:
        self._locks = tuple(Lock() for _ in range(64))

    def of(self, job: EndedJob) -> Lock:
        """The lock of a job's number."""
        return self._locks[hash((job.scheduler, job.job)) % len(self._locks)]


class EndedJobs:
    """What becomes of jobs that have ended.

    Parameters
    ----------
    store, writer : where runs and outcomes go.
    board : the loads that the jobs' nodes had.
    models : that learn.
    metrics : that count.
    sources : schedulers that know how a job really ended.
    clock : the daemon's; a job during which it was set is not learned.
    reported : called with each job reported by its epilog.
    sized : tells what a job is a run of by the numbers that it states, where its comment does not.
    moved : called with placements whose jobs have ended, the oldest first: some of them moved running jobs.

    Attributes
    ----------
    askers : users and job names that placements were asked for.
    ledger : how good the advice was.
    energies : what jobs took of what their nodes drew.
    """

    def __init__(
        self,
        store: Store,
        writer: WriteQueue,
        board: LiveClusters,
        models: Models,
        metrics: Metrics,
        sources: Sequence[Source],
        clock: Clock,
        reported: Callable[[EndedJob], object],
        sized: SizedJobs,
        moved: Callable[[Sequence[AdvisedPlacement]], object],
    ) -> None:
        self._on_report, self._sized, self._on_moved = reported, sized, moved
        self._clock, self._now = clock, clock.now
        self._store, self._writer, self._board = store, writer, board
        self._models, self._metrics, self._sources = models, metrics, tuple(sources)
        self._placements = store.placements
        self._waiting, self._turns = Waiting(self._sources), Turns()
        self.askers = Askers()
        self.ledger = Ledger()
        # Placements settled before the past was remembered, so that none is counted twice; None from then on.
        self._settled_meanwhile: set[str] | None = set()
        self._moments: dict[int, Sequence[AdvisedPlacement]] = {}
        self._caught_up: set[str] = set()
        self._lately: dict[str, frozenset[str]] = {}
        self.energies = JobEnergies(board, self._sources, self._now)

    def expect(self) -> None:
        """Look out for the jobs of placements made before the daemon started, and go on waiting for those that wait."""
        for advice in self._placements.recent(MOST_OPEN, settled=False):
            self.askers.note(advice.question, advice.made_at)
        self._store.waiting.forget(self._now() - REACH)
        for each in self._store.waiting.all():
            if self._waiting.concerns(each.job.scheduler):
                self.energies.note(each.job)
                self._waiting.add(Pending.of(each.job, stored=each.stored))

    def remember(self) -> list[AdvisedPlacement]:
        """Take up how good the advice was before the daemon started; return what became of it, newest first."""
        recent = self._placements.recent(REMEMBERED_JOBS, settled=True)
        meanwhile = self._settled_meanwhile or set()
        finished = [advice for advice in recent if advice.uid not in meanwhile]
        self._on_moved(finished[::-1])  # It reads, too: whatever fails has changed nothing, and is tried again.
        self._settled_meanwhile = None
        for advice in reversed(finished):
            self.ledger.add(settled(advice))
        return finished

    def take(self, job: EndedJob, *, sure: bool = False) -> dict[str, Any]:
        """Store a finished job's run, note its outcome, and have it learned; return once it is safely stored.

        ``sure`` says that the scheduler's last word on how it ended is known.

        Raises
        ------
        InputError
            When what is reported about the job is impossible.
        """
        check_times(job)
        self.energies.note(job)
        with self._turns.of(job):
            taken = self._taken(job, sure)
        if not sure:  # Where the database has refused it, it is reported again.
            self._on_report(job)
        return taken

    def _taken(self, job: EndedJob, sure: bool) -> dict[str, Any]:
        """What :meth:`take` does with the run of a job, and answers."""
        if says_off(job.comment):  # Epilogs do not report such a job; its scheduler does.
            return {"stored": False, "why": "its comment says metasched:off"}
        mark = self._mark_of(job)
        # Epilogs do not know a job's arguments, in which its problem size may be.
        if mark is None and not self.askers.know(job) and not self._sized.concerns(job.name):
            return {"stored": False, "why": "its comment names no application, and no placement was requested for it"}
        if job.kind in LEFT_ALONE:
            return {"stored": False, "why": f"it is not handled: {job.kind}"}
        # In this order: what is confirmed meanwhile is stored before it waits no more.
        if (sure and self._waiting.holds(job)) or self._known(job):
            return {"stored": False, "why": "it has been reported before"}
        confirmable = not sure and self._waiting.concerns(job.scheduler)
        if mark is None and confirmable:
            self._writer.ended(EndedRecord(job.uid, waiting=job)).result()
            self._waiting.add(Pending.of(job, stored=False))
            return {"stored": False, "why": "its scheduler is asked for details"}
        concluded = self._concluded(job if confirmable else self.energies.of(job))
        if concluded is None:
            return {"stored": False, "why": "its comment names no application, and no placement matches it"}
        record = concluded.record
        if confirmable:
            record = replace(record, learnable=False)
            concluded = Concluded(record, None, None)
        if not self._stored(concluded, waiting=job if confirmable else None):
            return {"stored": False, "why": "it has been reported before"}
        if confirmable:
            self._waiting.add(Pending.of(job, stored=True))
        return {"stored": True, "why": "", "learned": record.learnable}

    def confirm(self, source: Source) -> None:
        """Learn from jobs that seem to have gone well, once their scheduler has said so."""
        self._waiting.confirm(source, self._confirmed, self._metrics.unheard, self._now())

    def catch_up(self, now: float) -> None:
        """Take the jobs that ended while the daemon was down: once, soon after it has started.

        Raises
        ------
        StoreError
            When the database did not take all of them. The others are stored, and none is stored twice when it is
            tried again.
        RuntimeError
            When a scheduler did not answer; those that did are not asked again.
        """
        refused: Exception | None = None
        for record in self._store.runs.all(learnable=False, since=now - REACH):
            waits = record.exit_status == 0 and not {FORGOTTEN, DONE, UNLEARNED} & record.run.extra.keys()
            if waits and self._waiting.concerns(record.run.extra.get("scheduler", "")):
                job = _job_of(record.run)
                self.energies.note(job)
                self._waiting.add(Pending(job.scheduler, job.job, job.end, record=record, stored=True))
        missed = [each for each in self._sources if each.name not in self._caught_up]
        for source, jobs in self._reported(missed, now - REACH):
            if isinstance(jobs, Exception):
                self._metrics.unheard(source.name, jobs)
                refused = refused or RuntimeError(f"{source.name} did not answer")
                continue
            taken, complete = 0, True
            self.energies.note(*jobs)
            for job in jobs:
                try:
                    taken += self.take(job, sure=True)["stored"]
                except StoreError as error:
                    refused, complete = error, False
                except Exception as error:
                    _log.warning("job %s of %s was skipped: %s", job.job, source.name, error)
            if taken:
                _log.info("%d jobs of %s ended while the daemon was down", taken, source.name)
            if complete:
                self._caught_up.add(source.name)
        if refused is not None:
            raise refused

    def look(self, source: Source, now: float) -> None:
        """Take the jobs that ended lately, of a scheduler whose jobs no epilog reports: each once.

        Parameters
        ----------
        source : the scheduler; one that does not answer is asked again the next time.
        now : the time (s).

        Raises
        ------
        StoreError
            When the database did not take a job; it is tried again the next time.
        """
        try:
            jobs = source.finished(now - LATELY)
        except RuntimeError as error:
            self._metrics.unheard(source.name, error)
            return
        before = self._lately.get(source.name, frozenset())
        self.energies.note(*(job for job in jobs if job.uid not in before))
        for job in jobs:
            if job.uid in before:
                continue
            try:
                self.take(job, sure=True)
            except StoreError:
                raise
            except Exception as error:
                _log.warning("job %s of %s was skipped: %s", job.job, source.name, error)
        self._lately[source.name] = frozenset(job.uid for job in jobs)

    def _reported(
        self, sources: Sequence[Source], since: float
    ) -> Iterator[tuple[Source, Sequence[EndedJob] | Exception]]:
        """What each scheduler tells of finished jobs, or why it does not, in the order in which they answer."""
        with ThreadPoolExecutor(max(len(sources), 1)) as pool:
            asked = {pool.submit(source.finished, since): source for source in sources}
            for future in as_completed(asked):
                error = future.exception()
                yield asked[future], error if isinstance(error, Exception) else future.result()

    def _confirmed(self, pending: Pending, fate: Fate | None) -> None:
        if pending.job is None:
            assert pending.record is not None  # noqa: S101
            record = as_reported(pending.record, fate or Fate(completed=None))
            concluded: Concluded | None = Concluded(self._with_energy(record, fate), None, None)
        else:
            again = fate is not None and fate.again
            concluded = self._concluded(self.energies.of(_as_reported(pending.job, fate)), again=again)
        if concluded is None:
            self._writer.ended(EndedRecord(pending.uid)).result()
            return
        concluded = replace(concluded, record=replace(concluded.record, uid=pending.uid))
        if fate is None:
            _log.warning(
                "job %s of %s is not learned: its scheduler does not report how it ended",
                pending.number, pending.scheduler,
            )  # fmt: skip
            concluded = Concluded(replace(concluded.record, learnable=False), None, None)
        elif fate.kind in LEFT_ALONE or pending.ran_otherwise(fate):
            concluded = unlearned(concluded)
        elif not fate.completed and concluded.record.exit_status == 0:
            concluded = ended_by_scheduler(concluded)
        self._stored(concluded, corrects=pending.stored)

    def _with_energy(self, record: RecordedRun, fate: Fate | None) -> RecordedRun:
        """A stored run with its energy, if that was not known when it was stored."""
        if fate is None or record.run.energy is not None:
            return record
        run, job = record.run, self.energies.of(_as_reported(_job_of(record.run), fate))
        cells = {name: str(value) for name in ("energy", "energy_covers") if (value := getattr(job, name))}
        return replace(record, run=replace(run, extra=MappingProxyType({**run.extra, **cells})))

    def _stored(self, ended: Concluded, *, corrects: bool = False, waiting: EndedJob | None = None) -> bool:
        """Store a run with what became of its placement, and have it learned; tell whether it was new or corrected.

        ``waiting`` is the job as it was reported, where its scheduler has yet to confirm how it ended.
        """
        placement = ended.placement if ended.outcome is not None else None
        if placement is not None and (meanwhile := self._settled_meanwhile) is not None:
            meanwhile.add(placement)  # Before it is stored, where it might be remembered from.
        job = EndedRecord(ended.record.uid, ended.record, placement, ended.outcome, corrects, waiting)
        if ended.record.uid not in self._writer.ended(job).result():
            return False
        if not corrects:
            self._metrics.runs.inc()
        if ended.record.learnable:
            self._models.learn(ended.record)
        if placement is not None and (advice := self._placements.find(placement)) is not None:
            self._on_moved([advice])
            self.ledger.add(settled(advice))
        return True

    def _concluded(self, job: EndedJob, *, again: bool = False) -> Concluded | None:
        """What is learned from a job; None where neither its comment nor a placement tells what it was.

        ``again`` says that it runs once more, and that its placement waits for that where its comment names none.
        """
        marked = self._mark_of(job)
        mark = self._placed(job, marked)
        if again and mark is not None and (marked is None or marked.placement is None):
            mark = replace(mark, placement=None)
        concluded = None if mark is None else conclude(job, mark, self._board, self._models, self._store)
        why = "the clock was set meanwhile" if self._clock.was_set_during(job.start, job.end) else ""
        if job.kind == "newer":
            why = "only a later version knows what kind of job it is"
        if concluded is None or not why:
            return concluded
        _log.warning("job %s of %s is not learned: %s", job.job, job.scheduler, why)
        return unlearned(concluded)

    def _mark_of(self, job: EndedJob) -> Mark | None:
        """What its user says that a job is a run of, in its comment, or else by the numbers that it states."""
        return read_mark(job.comment) or self._sized.mark(job.name, job.numbers)

    def _placed(self, job: EndedJob, mark: Mark | None) -> Mark | None:
        """What a job was, with the placement that is certainly its own."""
        if mark is not None and mark.placement is not None:
            advice = self._advice(mark.placement)
            return mark if advice is not None and owns(job, mark, advice) else replace(mark, placement=None)
        if job.submitted is None or job.kind not in ("", "unknown"):
            return mark
        offset = self.askers.clock_offset(job.scheduler)
        submitted = (job.submitted, *(each.submitted for each in job.siblings))
        seconds = {math.floor(each - offset) for each in submitted}
        found = match(job, mark, chain.from_iterable(map(self._asked_about, seconds)))
        if found is None or found.placement is None:
            return found
        advice = self._advice(found.placement)
        # A second job that fits the same placement: one of the two is not known for what it is.
        return found if advice is not None and advice.outcome is None else mark

    def _advice(self, placement: str) -> AdvisedPlacement | None:
        """What was advised, also where it is not in the database yet: short jobs may end before it is."""
        return self._writer.placement(placement) or self._placements.find(placement)

    def _asked_about(self, second: int) -> Sequence[AdvisedPlacement]:
        """The placements made about a moment, whether their jobs have ended or not."""
        if second in self._moments:
            return self._moments[second]
        since, until = second - AFTER, second + 1.0 + BEFORE
        waiting = self._writer.placements_between(since, until)
        stored = self._placements.made_between(since, until)
        known = {each.uid: each for each in (*waiting, *stored)}
        found = sorted(known.values(), key=lambda each: each.made_at)
        if self._now() > second + ALL_MADE:
            self._moments[second] = found
            while len(self._moments) > MOMENTS:
                del self._moments[next(iter(self._moments))]
        return found

    def _known(self, job: EndedJob) -> bool:
        """Whether this run of a job is stored, whoever reported it."""
        since, until = job.start - LONGEST_BEGINNING, job.start + LONGEST_BEGINNING
        near = self._store.runs.all(since=since, until=until, job=job.job)
        return any(
            each.run.extra.get("scheduler") == job.scheduler and same_run(_job_of(each.run).span, job.span)
            for each in near
        )


def _job_of(run: Run) -> EndedJob:
    """The job whose run is stored, as far as that tells."""
    scheduler, number, partition = (run.extra.get(name, "") for name in ("scheduler", "job", "partition"))
    start = run.start_time or 0.0
    return EndedJob(scheduler, number, "", partition, run.nodes, run.processors, start, start + run.execution_time, 0)


def _as_reported(job: EndedJob, fate: Fate | None) -> EndedJob:
    """A job with what its scheduler knows better than its epilog."""
    if fate is None:
        return job
    if fate.started is not None and job.start + SAME_MOMENT < fate.started < job.end:
        job = replace(job, start=fate.started)  # the hook noted the moment before its nodes were booted
    if fate.ended is not None and job.start - WHOLE < fate.ended < job.end - SAME_MOMENT:
        # Its epilog ran late, or again: a controller that is restarted kills those that run.
        job = replace(job, end=fate.ended + WHOLE)
    if job.energy is None and fate.energy is not None:
        job = replace(job, energy=fate.energy, energy_covers=fate.energy_covers)
    return replace(
        job,
        # A scheduler dates a job that it puts back into the queue again.
        submitted=fate.submitted if job.submitted is None else job.submitted,
        processors=fate.processes or job.processors,
        kind=fate.kind or job.kind,
        threads=fate.threads or job.threads,
        command=fate.command,
        devices=job.devices if fate.devices is None else fate.devices,
        numbers=merged(job.numbers, fate.numbers),
        siblings=fate.siblings,
    )
