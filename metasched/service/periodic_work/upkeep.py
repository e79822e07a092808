"""The upkeep of the database: means of loads, retention, its soundness, and what it holds of before the start."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator

from metasched.service.clock import Clock
from metasched.service.configuration import Keep
from metasched.service.learning.accounting import REACH
from metasched.service.learning.finished_jobs import EndedJobs
from metasched.service.periodic_work.views import REST
from metasched.service.state import memory_use
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.load_history import LoadHistory
from metasched.service.state.models import Models
from metasched.store.database.integrity import damage
from metasched.store.database.load_means import mean_loads, update_means
from metasched.store.database.retention import prune
from metasched.store.database.store import Store
from metasched.store.database.tables import FIVE_MINUTES
from metasched.store.files.loads import Loads

_log = logging.getLogger(__name__)

DAY = 86_400.0


class Upkeep:
    """Upkeep; each method does one kind of work once.

    Parameters
    ----------
    store, keep, clock : the database, and how long things stay in it.
    clusters, history, models, jobs : what is restored from it.

    Attributes
    ----------
    history_restored : whether the loads of the day before the start are shown.
    damage : what is wrong with the database, in one line; empty where nothing is known to be.
    """

    def __init__(
        self,
        store: Store,
        keep: Keep,
        clock: Clock,
        clusters: LiveClusters,
        history: LoadHistory,
        models: Models,
        jobs: EndedJobs,
    ) -> None:
        self._store, self._keep, self._clock = store, keep, clock
        self._clusters, self._history, self._models = clusters, history, models
        self._jobs = jobs
        self._before = clock.now()
        self.history_restored, self.damage = False, ""

    def check(self) -> None:
        """Look whether the database is sound."""
        self.damage = damage(self._store)
        if self.damage:
            _log.error("%s is damaged, restore it from a backup: %s", self._store.name, self.damage)

    def restore_outcomes(self) -> None:
        """Restore how good predictions, advice and moves were before the start."""
        self._models.recent.restore(self._jobs.remember())

    def restore_history(self) -> None:
        """Restore the loads of the day before the start."""
        self._history.restore(self._clusters.view.load_names(), self._last_day())
        self.history_restored = True

    def _last_day(self) -> Iterator[Loads]:
        """The means of the day before the start, slot by slot, each followed by a rest as long as it took."""
        first = math.ceil((self._before - DAY) / FIVE_MINUTES) * FIVE_MINUTES
        for slot in range(first, math.ceil(self._before), FIVE_MINUTES):
            began = time.monotonic()
            yield mean_loads(self._store, FIVE_MINUTES, since=slot, until=min(slot + FIVE_MINUTES, self._before))
            time.sleep(time.monotonic() - began)

    def update_means(self) -> None:
        """Make the means of the loads that came in, and pack them."""
        update_means(self._store, self._clock.now(), pause=REST)
        memory_use.give_back()

    def apply_retention(self) -> None:
        """Remove what is older than it is to be kept; nothing while the clock is in doubt, since it could be all."""
        if fault := self._clock.fault():
            _log.warning("nothing is removed for its age: %s", fault)
            return
        now = self._clock.now()
        prune(
            self._store, now=now, loads_before=now - DAY * self._keep.loads,
            placements_before=now - DAY * self._keep.placements, past_jobs_before=now - DAY * self._keep.past_jobs,
        )  # fmt: skip
        self._store.waiting.forget(now - REACH)
