"""Jobs that have ended: stored, matched with the advice given for them, confirmed by their scheduler, and learned."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metasched.records import InputError
from metasched.service.board import Board
from metasched.service.confirming import Pending, Waiting, ended_by_scheduler
from metasched.service.matching import AFTER, BEFORE, Askers, mark_of, match
from metasched.service.metrics import Metrics
from metasched.service.models import Models
from metasched.service.outcomes import Concluded, conclude
from metasched.service.quality import Ledger, settled
from metasched.service.sources import Source
from metasched.service.writer import Writer
from metasched.store.database import Store
from metasched.store.jobs import EndedJob, Fate, read_mark
from metasched.store.placements import Advice, Placements

_log = logging.getLogger(__name__)

#: Placements without an outcome that are looked for after a restart, the newest first.
MOST_OPEN = 10_000
#: Finished jobs from before a restart that tell how good the advice is.
REMEMBERED_JOBS = 2000
#: How far back a scheduler is asked for jobs that ended while the daemon was down (s).
REACH = 7 * 86_400.0
#: Two accounts of the same start of a job differ by less than this (s).
SAME_START = 2.0


class EndedJobs:
    """What becomes of jobs that have ended.

    Parameters
    ----------
    store, writer : where runs and outcomes go.
    board : the loads that the jobs' nodes had.
    models : that learn.
    metrics : that count.
    sources : schedulers that know how a job really ended.

    Attributes
    ----------
    askers : users and job names that placements were asked for.
    ledger : how good the advice was.
    """

    def __init__(
        self, store: Store, writer: Writer, board: Board, models: Models, metrics: Metrics, sources: Sequence[Source]
    ) -> None:
        self._store, self._writer, self._board = store, writer, board
        self._models, self._metrics, self._sources = models, metrics, tuple(sources)
        self._placements = Placements(store)
        self._waiting = Waiting(self._sources)
        self.askers = Askers()
        self.ledger = Ledger()
        # Placements settled before the past was remembered, so that none is counted twice; None from then on.
        self._settled_meanwhile: set[str] | None = set()

    def expect(self) -> None:
        """Look out for the jobs of placements made before the daemon started."""
        for advice in self._placements.recent(MOST_OPEN, settled=False):
            self.askers.note(advice.question)

    def remember(self) -> list[Advice]:
        """Take up how good the advice was before the daemon started; return what became of it, newest first."""
        recent = self._placements.recent(REMEMBERED_JOBS, settled=True)
        meanwhile, self._settled_meanwhile = self._settled_meanwhile or set(), None
        finished = [advice for advice in recent if advice.uid not in meanwhile]
        for advice in reversed(finished):
            self.ledger.add(settled(advice))
        return finished

    def take(self, job: EndedJob, *, sure: bool = False) -> dict[str, Any]:
        """Store a finished job's run, note its outcome, and have it learned; return once it is safely stored.

        ``sure`` says that the scheduler's last word on how it ended is known.

        Raises
        ------
        InputError
            When what is told of the job cannot be.
        """
        mark = read_mark(job.comment)
        later = job.submitted is None and self._waiting.concerns(job.scheduler)
        if mark is None and not self.askers.know(job):
            return {"stored": False, "why": "its comment names no application, and no placement was asked for it"}
        if self._known(job):
            return {"stored": False, "why": "it was told before"}
        if mark is None and later:
            self._waiting.add(Pending(job.scheduler, job.job, job))
            return {"stored": False, "why": "its scheduler is asked when it was submitted"}
        concluded = self._concluded(job)
        if concluded is None:
            return {"stored": False, "why": "its comment names no application, and no placement is its own"}
        unsure = not sure and concluded.record.learnable and self._waiting.concerns(job.scheduler)
        record = replace(concluded.record, learnable=concluded.record.learnable and not unsure)
        self._writer.runs([record]).result()
        self._metrics.runs.inc()
        if unsure or (later and concluded.placement is None):
            self._waiting.add(Pending(job.scheduler, job.job, job, record))
        else:
            self._settle(concluded)
        return {"stored": True, "why": "", "learned": record.learnable}

    def confirm(self) -> None:
        """Learn from jobs that seem to have gone well, once their scheduler has said so."""
        self._waiting.confirm(self._confirmed)

    def catch_up(self, now: float) -> None:
        """Take the jobs that ended while the daemon was down: once, soon after it has started."""
        for record in self._store.recorded_runs(learnable=False, since=now - REACH):
            if record.exit_status == 0 and self._waiting.concerns(record.run.extra.get("scheduler", "")):
                told = record.run.extra
                self._waiting.add(Pending(told["scheduler"], told["job"], stored=record))
        for source in self._sources:
            try:
                jobs = source.finished(now - REACH)
            except Exception as error:
                self._metrics.source_failures.labels(source.name).inc()
                _log.warning("%s was not heard: %s", source.name, error)
                continue
            taken = 0
            for job in jobs:
                try:
                    taken += self.take(job, sure=True)["stored"]
                except InputError as error:
                    _log.warning("job %s of %s was passed over: %s", job.job, source.name, error)
            if taken:
                _log.info("%d jobs of %s ended while nobody listened", taken, source.name)

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
            self._writer.runs([concluded.record]).result()
            self._metrics.runs.inc()
        else:
            self._store.settle_run(concluded.record)
        self._settle(concluded)

    def _concluded(self, job: EndedJob) -> Concluded | None:
        """What is learned from a job; None where neither its comment nor a placement tells what it was."""
        mark = read_mark(job.comment)
        if job.submitted is not None and (mark is None or mark.placement is None):
            near = self._placements.open_between(job.submitted - AFTER, job.submitted + BEFORE)
            advice = match(job, near)
            mark = mark if advice is None else mark_of(advice)
        return None if mark is None else conclude(job, mark, self._board, self._models, self._store)

    def _settle(self, concluded: Concluded) -> None:
        if concluded.placement is not None:
            if (meanwhile := self._settled_meanwhile) is not None:
                meanwhile.add(concluded.placement)  # Before it is stored, where it might be remembered from.
            self._writer.outcome(concluded.placement, concluded.outcome).result()
            if (advice := self._placements.find(concluded.placement)) is not None:
                self.ledger.add(settled(advice))
        if concluded.record.learnable:
            self._models.learn(concluded.record)

    def _known(self, job: EndedJob) -> bool:
        """Whether a run of this job is stored. A scheduler's own times are whole seconds, the epilog's are not."""
        near = self._store.recorded_runs(since=job.start - SAME_START, until=job.start + SAME_START)
        return any(
            (each.run.extra.get("scheduler"), each.run.extra.get("job")) == (job.scheduler, job.job) for each in near
        )
