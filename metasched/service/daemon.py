"""All parts of the daemon put together, started and stopped in the right order."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler

from metasched.placement.partition import Partition
from metasched.records import InputError
from metasched.service.access import Buckets, Doorkeeper
from metasched.service.board import Board
from metasched.service.configuration import Configuration
from metasched.service.confirming import Pending, Waiting, ended_by_scheduler
from metasched.service.matching import AFTER, BEFORE, Askers, mark_of, match
from metasched.service.metrics import Metrics
from metasched.service.models import Models
from metasched.service.outcomes import Concluded, conclude
from metasched.service.placing import Placer
from metasched.service.sources import Source
from metasched.service.writer import Writer
from metasched.store.database import Store
from metasched.store.descriptions import read_description
from metasched.store.jobs import EndedJob, Fate, read_mark
from metasched.store.placements import Placements
from metasched.store.retention import prune
from metasched.store.tokens import Tokens

_log = logging.getLogger(__name__)

#: How many of the newest loads of each node count after a restart: those of so many seconds.
REMEMBERED = 900.0
DAY = 86_400.0
#: Placements without an outcome that are looked for after a restart, the newest first.
MOST_OPEN = 10_000
#: How far back a scheduler is asked for jobs that ended while the daemon was down (s).
REACH = 7 * DAY
#: How long after its start the daemon does so (s): what epilogs have kept is more exact and should come first.
CATCH_UP_AFTER = 5.0
#: Two accounts of the same start of a job differ by less than this (s).
SAME_START = 2.0


class Daemon:
    """The parts of the daemon.

    Parameters
    ----------
    configuration : what the administrator has set.
    store : the database; it stays the caller's to close.
    sources : batch schedulers to ask for their partitions.
    """

    def __init__(self, configuration: Configuration, store: Store, sources: Sequence[Source] = ()) -> None:
        self.configuration = configuration
        self.store = store
        self.sources = tuple(sources)
        self.placements = Placements(store)
        self.tokens = Tokens(store)
        self.doorkeeper = Doorkeeper()
        self.buckets = Buckets(configuration.limits.requests_per_second, configuration.limits.burst)
        self.board = Board()
        self.models = Models(store)
        self.placer = Placer(configuration, self.board, self.models)
        self.writer = Writer(store)
        self.waiting = Waiting(self.sources)
        self.askers = Askers()
        self.metrics = Metrics(self.board, self.models, self.writer)
        self.started_at = time.time()
        self._scheduler = BackgroundScheduler(job_defaults={"coalesce": True, "max_instances": 1}, timezone="UTC")

    def start(self) -> None:
        """Read what is kept, and begin the periodic work.

        Raises
        ------
        InputError
            When the description of the clusters is wrong.
        """
        if self.configuration.clusters is not None:
            described = read_description(self.configuration.clusters)
            self.board.put("described", [Partition.of(state) for state in described.clusters])
        for advice in self.placements.recent(MOST_OPEN, settled=False):
            self.askers.note(advice.question)
        self.models.start()
        self.writer.start()
        now = time.time()
        self.board.note(self.store.recent_loads(since=now - REMEMBERED))
        self.ask_sources()
        self.refresh()
        self.learn_tokens()
        periods = self.configuration.periods
        for work, seconds in (
            (self.refresh, periods.loads),
            (self.learn_tokens, periods.loads),
            (self.ask_sources, periods.partitions),
            (self.confirm, periods.confirm),
            (self.models.save, periods.models),
            (self.let_go, periods.retention),
        ):
            self._scheduler.add_job(work, "interval", seconds=seconds)
        self._scheduler.add_job(self.catch_up, "date", run_date=_later(CATCH_UP_AFTER), args=(now,))
        self._scheduler.start()

    def stop(self) -> None:
        """End the periodic work; write and save what is waiting."""
        self._scheduler.shutdown(wait=True)
        self.writer.stop()
        self.models.stop()

    def refresh(self) -> None:
        """Put up a view of this moment for placements."""
        self.board.refresh(time.time())

    def learn_tokens(self) -> None:
        """Take notice of tokens that were made or revoked."""
        self.doorkeeper.learn(self.tokens.all())

    def ask_sources(self) -> None:
        """Ask the schedulers for their partitions; one that does not answer keeps those it had."""
        for source in self.sources:
            asked_at = time.time()
            try:
                self.board.put(source.name, source.partitions(), asked_at)
            except Exception as error:
                self.metrics.source_failures.labels(source.name).inc()
                _log.warning("%s was not heard: %s", source.name, error)

    def catch_up(self, now: float) -> None:
        """Take the jobs that ended while the daemon was down: once, when it starts."""
        for record in self.store.recorded_runs(learnable=False, since=now - REACH):
            if record.exit_status == 0 and self.waiting.concerns(record.run.extra.get("scheduler", "")):
                told = record.run.extra
                self.waiting.add(Pending(told["scheduler"], told["job"], stored=record))
        for source in self.sources:
            try:
                jobs = source.finished(now - REACH)
            except Exception as error:
                self.metrics.source_failures.labels(source.name).inc()
                _log.warning("%s was not heard: %s", source.name, error)
                continue
            taken = 0
            for job in jobs:
                try:
                    taken += self.take_job(job, sure=True)["stored"]
                except InputError as error:
                    _log.warning("job %s of %s was passed over: %s", job.job, source.name, error)
            if taken:
                _log.info("%d jobs of %s ended while nobody listened", taken, source.name)

    def let_go(self) -> None:
        """Remove what is older than it is to be kept."""
        now, keep = time.time(), self.configuration.keep
        prune(self.store, loads_before=now - DAY * keep.loads, placements_before=now - DAY * keep.placements)

    def take_job(self, job: EndedJob, *, sure: bool = False) -> dict[str, Any]:
        """Store a finished job's run, note its outcome, and have it learned; return once it is safely stored.

        ``sure`` says that the scheduler's last word on how it ended is known.

        Raises
        ------
        InputError
            When what is told of the job cannot be.
        """
        mark = read_mark(job.comment)
        later = job.submitted is None and self.waiting.concerns(job.scheduler)
        if mark is None and not self.askers.know(job):
            return {"stored": False, "why": "its comment names no application, and no placement was asked for it"}
        if self._known(job):
            return {"stored": False, "why": "it was told before"}
        if mark is None and later:
            self.waiting.add(Pending(job.scheduler, job.job, job))
            return {"stored": False, "why": "its scheduler is asked when it was submitted"}
        concluded = self._concluded(job)
        if concluded is None:
            return {"stored": False, "why": "its comment names no application, and no placement is its own"}
        unsure = not sure and concluded.record.learnable and self.waiting.concerns(job.scheduler)
        record = replace(concluded.record, learnable=concluded.record.learnable and not unsure)
        self.writer.runs([record]).result()
        self.metrics.runs.inc()
        if unsure or (later and concluded.placement is None):
            self.waiting.add(Pending(job.scheduler, job.job, job, record))
        else:
            self._settle(concluded)
        return {"stored": True, "why": "", "learned": record.learnable}

    def confirm(self) -> None:
        """Learn from jobs that seem to have gone well, once their scheduler has said so."""
        self.waiting.confirm(self._confirmed)

    def _confirmed(self, pending: Pending, fate: Fate) -> None:
        if pending.job is None:
            assert pending.stored is not None  # noqa: S101
            concluded: Concluded | None = Concluded(replace(pending.stored, learnable=True), None, {})
        else:
            concluded = self._concluded(replace(pending.job, submitted=fate.submitted))
        if concluded is None:
            return
        if not fate.completed:
            concluded = ended_by_scheduler(concluded)
        if pending.stored is None:
            self.writer.runs([concluded.record]).result()
            self.metrics.runs.inc()
        else:
            self.store.settle_run(concluded.record)
        self._settle(concluded)

    def _concluded(self, job: EndedJob) -> Concluded | None:
        """What is learned from a job; None where neither its comment nor a placement tells what it was."""
        mark = read_mark(job.comment)
        if job.submitted is not None and (mark is None or mark.placement is None):
            near = self.placements.open_between(job.submitted - AFTER, job.submitted + BEFORE)
            advice = match(job, near)
            mark = mark if advice is None else mark_of(advice)
        return None if mark is None else conclude(job, mark, self.board, self.models, self.store)

    def _settle(self, concluded: Concluded) -> None:
        if concluded.placement is not None:
            self.writer.outcome(concluded.placement, concluded.outcome).result()
        if concluded.record.learnable:
            self.models.learn(concluded.record.run)

    def _known(self, job: EndedJob) -> bool:
        """Whether a run of this job is stored. A scheduler's own times are whole seconds, the epilog's are not."""
        near = self.store.recorded_runs(since=job.start - SAME_START, until=job.start + SAME_START)
        return any(
            (each.run.extra.get("scheduler"), each.run.extra.get("job")) == (job.scheduler, job.job) for each in near
        )


def _later(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
