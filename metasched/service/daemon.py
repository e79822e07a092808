"""All parts of the daemon put together, started and stopped in the right order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock, Timer

from apscheduler.schedulers.background import BackgroundScheduler

from metasched.records import InputError
from metasched.service import memory
from metasched.service.access import Buckets, Doorkeeper, Sessions
from metasched.service.ahead import Ahead
from metasched.service.board import Board
from metasched.service.configuration import Configuration, Mode
from metasched.service.described import Described
from metasched.service.ended import EndedJobs
from metasched.service.metrics import Metrics
from metasched.service.models import Models
from metasched.service.placing import Placer
from metasched.service.sources import Source
from metasched.service.switching import Switch
from metasched.service.traces import Traces
from metasched.service.writer import Writer
from metasched.store.database import Store
from metasched.store.descriptions import read_description
from metasched.store.downsampling import keep_up, mean_loads
from metasched.store.modes import Modes
from metasched.store.placements import Placements
from metasched.store.retention import prune
from metasched.store.tables import FIVE_MINUTES
from metasched.store.tokens import Tokens
from monitors.sources.screening import Rules

_log = logging.getLogger(__name__)

#: How many of the newest loads of each node count after a restart: those of so many seconds.
REMEMBERED = 900.0
DAY = 86_400.0
#: How long after its start the daemon asks for jobs that ended while it was down (s): what epilogs have kept is more
#: exact and should come first.
CATCH_UP_AFTER = 5.0
#: Rest between pieces of long work beside (s): who asks for a placement meanwhile hardly waits.
REST = 0.04


class Daemon:
    """The parts of the daemon.

    Parameters
    ----------
    configuration : what the administrator has configured; ``mode`` as it was set last.
    store : the database; it stays the caller's to close.
    sources : batch schedulers to ask for their partitions.
    """

    def __init__(self, configuration: Configuration, store: Store, sources: Sequence[Source] = ()) -> None:
        self.switch, self._switching = Switch(configuration.mode, Modes(store)), Lock()
        self.configuration = configuration = configuration.model_copy(update={"mode": self.switch.mode})
        self.store = store
        self.sources = tuple(sources)
        self.placements = Placements(store)
        self.tokens = Tokens(store)
        self.doorkeeper = Doorkeeper()
        self.sessions = Sessions()
        self.buckets = Buckets(configuration.limits.requests_per_second, configuration.limits.burst)
        self.board = Board()
        self.models = Models(store)
        self.ahead = Ahead()
        self.placer = Placer(configuration, self.board, self.models, self.ahead)
        self.writer = Writer(store)
        #: Whether what is told of the time before the daemon started was taken up.
        self.remembered = False
        self.traces = Traces()
        self.described: Described | None = None
        self.metrics = Metrics(self.board, self.models, self.writer)
        self.jobs = EndedJobs(store, self.writer, self.board, self.models, self.metrics, self.sources)
        limits, oldest = configuration.limits, DAY * configuration.keep.loads
        self._rules = Rules(ahead=limits.clock, oldest=oldest, bandwidth=limits.bandwidth)
        self._links: dict[str, float] = limits.link_of_each()
        self.started_at = time.time()
        self._tokens_read = Lock()
        # Work done once is not on the schedule: one that ends while a job is taken off it misses the job.
        self._once: tuple[Timer, ...] = ()
        #: Held by whoever has something longer computed, so that placements are answered beside it.
        self.consulting = asyncio.Lock()
        self._scheduler = BackgroundScheduler(job_defaults={"coalesce": True, "max_instances": 1}, timezone="UTC")

    def start(self) -> None:
        """Read what is kept, and begin the periodic work.

        Raises
        ------
        InputError
            When the description of the clusters is wrong.
        """
        if self.configuration.clusters is not None:
            description = read_description(self.configuration.clusters)
            self.described = Described(description, time.time())
            self.placer.demands = description.constraints
            self._links = {**description.links, **self._links}
        self.jobs.expect()
        self.models.start()
        self.writer.start()
        now = time.time()
        self.board.note(self.store.recent_loads(since=now - REMEMBERED))
        self.show_described()
        self.ask_sources()
        self.refresh()
        self.learn_tokens()
        periods = self.configuration.periods
        for work, seconds in (
            (self.refresh, periods.loads),
            (self.learn_tokens, periods.loads),
            (self.ask_sources, periods.partitions),
            (self.show_described, periods.partitions),
            (self.jobs.confirm, periods.confirm),
            (self.models.save, periods.models),
            (self.keep_up, periods.means),
            (self.forecast, periods.forecasts),
            (self.let_go, periods.retention),
        ):
            self._scheduler.add_job(work, "interval", seconds=seconds)
        self._scheduler.start()
        self._once = (Timer(0.0, self.remember, args=(now,)), Timer(CATCH_UP_AFTER, self.jobs.catch_up, args=(now,)))
        for once in self._once:
            once.start()

    def stop(self) -> None:
        """End the periodic work; write and save what is waiting."""
        self._scheduler.shutdown(wait=True)
        for once in self._once:
            once.cancel()
            once.join()
        self.writer.stop()
        self.models.stop()

    def set_mode(self, mode: Mode, by: str) -> None:
        """Be in another mode from the next answer on, and after a restart too.

        Raises
        ------
        RuntimeError
            When that could not be noted; nothing has changed then.
        """
        with self._switching:
            self.switch.set(mode, by)
            self.configuration = self.configuration.model_copy(update={"mode": self.switch.mode})
            self.placer.configure(self.configuration)

    def knows(self, node: str) -> bool:
        """Whether there is such a node: a scheduler or a description names it, or an agent's token was made for it.

        While a scheduler was not heard yet, or none is set up, every node may be.
        """
        heard = all(source.name in self.board.seen_at for source in self.sources)
        named = node in self.board.nodes or self.doorkeeper.speaks_for(node)
        return named or not heard or not self.board.nodes

    def rules(self, node: str) -> Rules:
        """What is believed of a node: no more bandwidth than its own link has, where that is known."""
        link = self._links.get(node)
        return self._rules if link is None else replace(self._rules, bandwidth=link)

    def refresh(self) -> None:
        """Put up a view of this moment for placements."""
        view = self.board.refresh(time.time())
        self.traces.note(view.partitions, view.made_at)
        self.ahead.note(dict(self.board.latest).values(), view.made_at)

    def forecast(self) -> None:
        """Forecast the loads that placements count with."""
        self.ahead.forecast(time.time(), pause=REST)

    def learn_tokens(self) -> None:
        """Take notice of tokens that were made or revoked."""
        with self._tokens_read:  # Else what was read before a token was made could be taken notice of after it.
            self.doorkeeper.learn(self.tokens.all())

    def show_described(self) -> None:
        """Put up the described clusters with the jobs that should still run there."""
        if self.described is not None:
            self.described.show(self.board, lambda platform, name: self.models.predictor(name, platform), time.time())

    def ask_sources(self) -> None:
        """Ask the schedulers for partitions and running jobs; what one that does not answer said before stays."""
        for source in self.sources:
            asked_at = time.time()
            try:
                self.board.put(source.name, source.partitions(), asked_at)
                self.board.put_running(source.name, source.running(), asked_at)
            except Exception as error:
                self.metrics.source_failures.labels(source.name).inc()
                _log.warning("%s was not heard: %s", source.name, error)

    def remember(self, now: float) -> None:
        """Take up what the dashboard and the status tell of the time before the daemon started."""
        self.models.track.remember(self.jobs.remember())
        self.traces.remember(
            self.board.view.partitions, mean_loads(self.store, FIVE_MINUTES, since=now - DAY, until=now)
        )
        self.remembered = True

    def keep_up(self) -> None:
        """Make the means of the loads that came in, and pack them."""
        try:
            keep_up(self.store, pause=REST)
        except InputError as error:  # such as a lock that others hold: the next time makes up for it
            _log.warning("loads were not rolled up: %s", error)
        memory.give_back()

    def let_go(self) -> None:
        """Remove what is older than it is to be kept."""
        now, keep = time.time(), self.configuration.keep
        prune(self.store, loads_before=now - DAY * keep.loads, placements_before=now - DAY * keep.placements)
