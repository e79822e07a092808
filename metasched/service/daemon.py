"""Assembles the parts of the daemon, and starts and stops them in the right order."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

# Models load what they need of scipy when they first need it: not while a hook waits for its answer.
import scipy.linalg
import scipy.optimize
import scipy.special  # noqa: F401

from metasched import __version__
from metasched.history.problem_sizes import SizeRule
from metasched.records import InputError
from metasched.schedulers.contract import MovesJobs, RecordsFailures, Source
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.service.advice.advisor import Placer
from metasched.service.advice.moving import RunningAdvisor
from metasched.service.advice.release import release
from metasched.service.analytic_models import analytic_models
from metasched.service.authentication import Access
from metasched.service.clock import Clock
from metasched.service.configuration import Configuration
from metasched.service.learning.accounting import Accounting
from metasched.service.learning.finished_jobs import EndedJobs
from metasched.service.learning.moves import Moves
from metasched.service.learning.run_outcome import observed
from metasched.service.load_intake import DAY, LoadIntake
from metasched.service.metrics import Metrics
from metasched.service.periodic_work.upkeep import Upkeep
from metasched.service.periodic_work.views import Views
from metasched.service.simulations import Simulations
from metasched.service.state.described_clusters import DescribedClusters
from metasched.service.state.fit_workers import FitWorkers
from metasched.service.state.job_history import JobHistory
from metasched.service.state.lent_models import LentModels
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.load_forecasts import LoadForecaster
from metasched.service.state.load_history import LoadHistory
from metasched.service.state.load_names import LoadNames
from metasched.service.state.load_sources import LoadSources
from metasched.service.state.mode_switch import ModeSwitch
from metasched.service.state.models import Models
from metasched.service.state.queues import Queues
from metasched.service.state.sized_jobs import SizedJobs
from metasched.service.state.write_queue import WriteQueue
from metasched.sites.grid import Sites
from metasched.store.database.leadership import SETTLED, Leadership
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from metasched.store.files.descriptions import read_description
from monitors.schedule import Schedule
from monitors.sources.settings import SourceTable

_log = logging.getLogger(__name__)

#: Time after becoming the leader when the daemon asks for jobs that ended before (s): reports of epilogs are more
#: exact and should come first.
CATCH_UP_AFTER = 5.0
#: How often the leadership is checked (s), and the age of the view for placements from which on it is a fault.
LEAD, LATE = 1.0, 10.0
#: How often schedulers are asked which nodes failed (s): records of a year hardly change.
FAILURES = 3600.0
#: Of so many seconds a daemon that follows reads the newest loads.
FOLLOWED = 60.0


class Daemon:
    """The parts of the daemon; a route takes those that it needs (``api/dependencies.py``), never all of them.

    Parameters
    ----------
    configuration : what the administrator has configured.
    store : the database; it stays the caller's to close.
    sources : batch schedulers to ask for their partitions.
    wall : the time of day (s).

    Attributes
    ----------
    leads : whether it learns, and takes what is to be stored; of several daemons on one server's database one does.
    """

    def __init__(
        self,
        configuration: Configuration,
        store: Store,
        sources: Sequence[Source] = (),
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.configuration, self.store, self.sources = configuration, store, tuple(sources)
        self.clock = Clock(wall, ahead=configuration.limits.clock)
        self.started_at, self.leads = self.clock.now(), False
        #: Whether the database could not be asked who leads the last time, or does not let this leader lead.
        self._cut_off = False
        self.leadership = Leadership(store.engine)
        limits = configuration.limits
        self.access = Access(store.tokens, limits.requests_per_second, limits.burst, configuration.authentication)
        self.mode = ModeSwitch(configuration.mode, store.modes, self.clock.now)
        names = LoadNames(configuration.prefixes, configuration.shared)
        self.clusters, self.history, self.load_forecaster = LiveClusters(names), LoadHistory(), LoadForecaster()
        workers = FitWorkers(configuration.fitting) if configuration.fitting.elsewhere else None
        self.models, self.writes = Models(store, workers), WriteQueue(store)
        self.lent_models = LentModels(self.models)
        self.job_history, self.simulations = JobHistory(store), Simulations()
        kept = DAY * configuration.keep.past_jobs
        self.queues = Queues(self.job_history, store.wait_errors)
        self.accounting = Accounting(self.job_history, self.queues, self.clock, kept)
        self.metrics = Metrics(self.clusters, self.models, self.writes)
        self.intake = LoadIntake(
            configuration, self.clusters, self.writes, self.metrics, self.access.known.has_agent_of,
            [source.name for source in self.sources], self.clock,
        )  # fmt: skip
        self.load_sources = self._load_sources(())
        self.placer = Placer(configuration, self.clusters, self.models, self.load_forecaster)
        self.mode.on_change = lambda mode: self.placer.configure(configuration.model_copy(update={"mode": mode}))
        self.mode.on_change(self.mode.mode)
        self.running_advisor = RunningAdvisor(self.placer, self.models, self._observed, configuration.moving)
        sizes = [SizeRule(each.name, each.place, each.application) for each in configuration.problem_size]
        self.sized_jobs = SizedJobs(sizes, self.models, self.clusters)
        self.moves = Moves(self.running_advisor, self.writes, self._observed, self.models, self.metrics)
        self.jobs = EndedJobs(
            store, self.writes, self.clusters, self.models, self.metrics, self.sources, self.clock,
            self.accounting.ended, self.sized_jobs, self.moves.judge,
        )  # fmt: skip
        self.views = Views(
            store, self.sources, self.clock, self.clusters, self.history, self.load_forecaster, self.models,
            self.metrics, self.queues, self.placer.prepare,
        )  # fmt: skip
        self.upkeep = Upkeep(
            store, configuration.keep, self.clock, self.clusters, self.history, self.models, self.jobs
        )  # fmt: skip
        self.sites = Sites(
            configuration.site, __version__, wall=self.clock.now, kept=store.sent_jobs,
            rested=configuration.periods.resend, routing=configuration.routing,
        )  # fmt: skip
        self.work = Schedule()
        #: Held by whoever has something longer computed, so that placements are answered beside it.
        self.long_questions = asyncio.Lock()

    def start(self) -> None:
        """Read the stored data, and begin the periodic work.

        Raises
        ------
        InputError : when the description of the clusters is wrong, or another daemon leads on the same SQLite file.
        StoreError : when the database cannot be read.
        """
        leads = self.leadership.take()
        if not leads and not self.leadership.shared:
            raise InputError("another daemon uses it, expected one daemon for each SQLite file", where=self.store.name)
        self.leadership.guard()
        tables = list(self.configuration.source)
        if self.configuration.clusters is not None:
            description = read_description(self.configuration.clusters)
            self.views.described = DescribedClusters(description, self.clock.now())
            self.placer.demands = description.constraints
            self.intake.describe_links(description.links)
            tables += description.sources
        self.models.assume(analytic_models(self.configuration))
        self.load_sources = self._load_sources(tables)
        self.jobs.energies.meters = tuple(each for table in tables if (each := table.power_history()) is not None)
        names = *self.configuration.schedulers, *self.load_sources.names
        self.metrics.show(self.possible_faults, lambda: self.leads, self._heard, names)
        self.queues.restore()
        self.views.make()
        self.access.refresh()
        if leads:
            self._lead()
        else:
            _log.warning(
                "%s: another daemon leads (%s); this one answers reads", self.store.name, self.leadership.leader()
            )
            self.follow()
            self.work.every(self.configuration.periods.partitions, self.follow)
            self.work.every(self.configuration.periods.loads, self.follow_loads)
        self.models.warm()
        periods = self.configuration.periods
        self.work.every(periods.accounting, self.job_history.follow)
        self.work.every(periods.loads, self.views.refresh)
        self.work.every(periods.loads, self.access.refresh)
        for source in self.sources:  # each separately, so that a slow one does not delay the others
            self.work.every(periods.partitions, partial(self.views.ask, source))
            if isinstance(source, RecordsFailures):
                failures = partial(self.views.learn_failures, source)
                self.work.once(failures, left=True)
                self.work.every(FAILURES, failures)
        self.work.every(periods.partitions, self.views.show_described)
        self.work.every(periods.forecasts, self.views.forecast)
        upkeep = self.upkeep
        for reading in (
            self.views.restore_forecasts, upkeep.restore_outcomes, upkeep.restore_history, upkeep.check,
            self.job_history.restore,
        ):  # fmt: skip
            self.work.once(reading, left=True)
        if self.leadership.shared:
            self.work.every(LEAD, self.look_after_lead)

    def stop(self) -> None:
        """End the periodic work, and write all unsaved data."""
        self.load_sources.stop()
        self.work.stop()
        self.sites.stop()
        if self.leads:
            self.writes.stop()
            self.models.stop()
            with suppress(StoreError):  # what was learned since the last time is learned again
                self.save_waits()
        self.leadership.release()

    def follow(self) -> None:
        """Read what the leading daemon has learned and received."""
        if not self.leads:
            self.models.read()
            self.mode.read()
            self.sites.sent.restore()

    def follow_loads(self) -> None:
        """Read the loads that the leading daemon has stored."""
        if not self.leads:
            self.views.read_loads(FOLLOWED)

    def look_after_lead(self) -> None:
        """Become the leader if there is none; exit where the database has changed without this one."""
        if self.leads and self.leadership.holds():
            return
        self.models.saving = False
        try:
            taken = self.leadership.take()
        except StoreError:
            self._cut_off = True
            raise
        self._cut_off = self.leads and not taken
        if not taken:
            if self.leads and self.leadership.superseded():
                self._end("another daemon is now the leader")
        elif not self.leads:
            time.sleep(SETTLED)
            self.follow()
            self._lead()
        elif not self.leadership.note():
            self._end("another daemon has been the leader in the meantime, or a standby has replaced its server")
        else:
            self.models.saving = True

    def save_waits(self) -> None:
        """Store what forecasts of waits have missed, unless another daemon may lead and have learned more of them."""
        if self.models.saving:
            self.queues.save()

    def release(self, source: Source) -> None:
        """Release the pending jobs of a scheduler that are bound to nodes."""
        if not any(each.releases for each in self.clusters.view.partitions if each.scheduler == source.name):
            return
        try:
            before = self.clock.now() + self.jobs.askers.clock_offset(source.name) - self.configuration.periods.release
            release(source, self.store.placements, self.clusters.view, before)
        except Exception as error:
            self.metrics.unheard(source.name, error)

    def faults(self) -> dict[str, str]:
        """The faults of the daemon by keyword, the worst first, each one line without names of users."""
        return {name: fault for name, fault in self.possible_faults().items() if fault}

    def possible_faults(self) -> dict[str, str]:
        """The faults that there may be, as :meth:`faults` has them; a line is empty where the fault is not there."""
        age = self.clock.now() - self.clusters.view.made_at
        late = f"the view for placements is {age:.0f} s old" if age > LATE * self.configuration.periods.loads else ""
        damaged = "the database is damaged: metasched db check shows where" if self.upkeep.damage else ""
        refused = "the database stored nothing the last time, the log says why" if self.writes.failing else ""
        refused = refused or ("the database cannot be reached, the log says why" if self._cut_off else "")
        faults = {"damaged": damaged, "database": refused, "late": late, "clock": self.clock.fault()}
        return faults | {"nodes": self.clusters.names.fault()}

    def move(self, source: MovesJobs) -> None:
        """If configured, move the running jobs of a scheduler that allow it and benefit from it."""
        if self.mode.mode == "act":
            self.moves.look(source, self.clusters.view, self.clock.now())

    def look(self, source: Source) -> None:
        """Learn the recently ended jobs of a scheduler without an epilog."""
        self.jobs.look(source, self.clock.now())

    def _observed(
        self, scheduler: str, nodes: tuple[str, ...], start: float, end: float, own: float = 0.0
    ) -> tuple[float, float]:
        return observed(self.clusters.view.names.of(scheduler, nodes), start, end, self.store, own)

    def _heard(self) -> dict[str, tuple[float, float]]:
        """How long ago each scheduler and each source of loads answered, infinite where never, and its period (s)."""
        now, seen, period = self.clock.now(), self.clusters.seen_at, self.configuration.periods.partitions
        return {name: (now - seen.get(name, -math.inf), period) for name in self.configuration.schedulers} | {
            each.name: (math.inf if each.answered_at is None else now - each.answered_at, each.period)
            for each in self.load_sources.reports()
        }

    def _lead(self) -> None:
        self.leadership.note()
        self.jobs.expect()
        self.models.start()
        self.writes.start()
        periods = self.configuration.periods
        for source in self.sources:
            self.work.every(periods.confirm, partial(self.jobs.confirm, source))
            self.work.every(periods.release, partial(self.release, source))
            self.work.every(periods.accounting, partial(self.accounting.catch_up, source))
            if isinstance(source, ListedCluster) and not source.epilog:
                self.work.every(periods.accounting, partial(self.look, source))
            if self.configuration.moving.act and isinstance(source, MovesJobs):
                self.work.every(self.configuration.moving.every, partial(self.move, source))
        self.work.every(periods.models, self.models.save)
        self.work.every(periods.models, self.models.sweep)
        self.work.every(periods.models, self.save_waits)
        self.work.every(periods.means, self.upkeep.update_means)
        self.work.every(periods.retention, self.upkeep.apply_retention)
        if self.sites.tables:
            self.sites.sent.restore()
            self.work.every(periods.sites, self.sites.outcomes.look)
        self.work.once(partial(self.jobs.catch_up, self.clock.now()), after=CATCH_UP_AFTER)
        self.load_sources.start()
        self.leads = self.models.saving = True
        if self.leadership.shared:
            _log.warning("%s: this daemon leads", self.store.name)

    def _end(self, why: str) -> None:
        _log.error("%s: %s; this one exits, and follows when it is started again", self.store.name, why)
        os.kill(os.getpid(), signal.SIGTERM)

    def _load_sources(self, tables: Sequence[SourceTable]) -> LoadSources:
        return LoadSources(tables, self.intake.take_from_source, self.metrics.source_failed, self.clock.now)
