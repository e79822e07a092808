"""All parts of the daemon put together, started and stopped in the right order."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler

from metasched.placement.partition import Partition, Source
from metasched.service.access import Buckets, Doorkeeper
from metasched.service.board import Board
from metasched.service.configuration import Configuration
from metasched.service.metrics import Metrics
from metasched.service.models import Models
from metasched.service.outcomes import conclude
from metasched.service.placing import Placer
from metasched.service.writer import Writer
from metasched.store.database import Store
from metasched.store.descriptions import read_description
from metasched.store.jobs import EndedJob
from metasched.store.placements import Placements
from metasched.store.retention import prune
from metasched.store.tokens import Tokens

_log = logging.getLogger(__name__)

#: How many of the newest loads of each node count after a restart: those of so many seconds.
REMEMBERED = 900.0
DAY = 86_400.0


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
            (self.models.save, periods.models),
            (self.let_go, periods.retention),
        ):
            self._scheduler.add_job(work, "interval", seconds=seconds)
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

    def let_go(self) -> None:
        """Remove what is older than it is to be kept."""
        now, keep = time.time(), self.configuration.keep
        prune(self.store, loads_before=now - DAY * keep.loads, placements_before=now - DAY * keep.placements)

    def take_job(self, job: EndedJob) -> dict[str, Any]:
        """Store a finished job's run, note its outcome, and have it learned; return once it is safely stored.

        Raises
        ------
        InputError
            When what is told of the job cannot be.
        """
        concluded = conclude(job, self.board, self.models, self.store)
        if concluded is None:
            return {"stored": False, "why": "its comment names no application and problem size"}
        record = concluded.record
        new = self.store.add_runs([record])
        if new:
            self.metrics.runs.inc()
            if concluded.placement is not None:
                self.writer.outcome(concluded.placement, concluded.outcome).result()
            if record.learnable:
                self.models.learn(record.run)
        return {"stored": bool(new), "why": "" if new else "it was told before", "learned": record.learnable}
