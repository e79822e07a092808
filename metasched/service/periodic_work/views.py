"""What placements use, kept up to date: the partitions with their newest loads, and forecasts of these."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Thread

import numpy as np

from metasched.history.queue import QueuedJob
from metasched.schedulers.contract import RecordsFailures, Source
from metasched.service.clock import Clock
from metasched.service.metrics import Metrics
from metasched.service.state.described_clusters import DescribedClusters
from metasched.service.state.live_clusters import LiveClusters, View
from metasched.service.state.load_forecasts import ROWS, STEP, LoadForecaster
from metasched.service.state.load_history import LoadHistory
from metasched.service.state.models import Models
from metasched.service.state.queues import Queues
from metasched.store.database.load_blocks import MINUTE
from metasched.store.database.store import Store
from metasched.store.files.loads import Loads

_log = logging.getLogger(__name__)

#: How long the start waits for the schedulers (s); one that takes longer is heard later.
FIRST_ANSWERS = 5.0
#: Runs stored last that tell which nodes a scheduler has that does not answer yet.
LAST_RUNS = 10_000
#: Rest between pieces of long background work (s), so that placements are answered without delay.
REST = 0.04


class Views:
    """Views; each method does one kind of work once.

    Parameters
    ----------
    store, sources, clock, clusters, history, load_forecaster, models, metrics, queues : what they are made of, and go
        to.
    prepare : called with each view for placements before it is put up.

    Attributes
    ----------
    described : the clusters that a file describes; None where none does.
    """

    def __init__(
        self,
        store: Store,
        sources: Sequence[Source],
        clock: Clock,
        clusters: LiveClusters,
        history: LoadHistory,
        load_forecaster: LoadForecaster,
        models: Models,
        metrics: Metrics,
        queues: Queues,
        prepare: Callable[[View], object],
    ) -> None:
        self._store, self._sources, self._clock, self._clusters = store, sources, clock, clusters
        self._queues = queues
        self._history, self._load_forecaster, self._models, self._metrics = history, load_forecaster, models, metrics
        self._prepare = prepare
        self.described: DescribedClusters | None = None

    def make(self) -> None:
        """Make the first view: read loads, ask all schedulers at once, and wait for them for a bounded time."""
        self.read_loads()
        self.show_described()
        first = [Thread(target=self.ask, args=(each,), daemon=True) for each in self._sources]
        for asking in first:
            asking.start()
        end = time.monotonic() + FIRST_ANSWERS
        for asking in first:
            asking.join(max(0.0, end - time.monotonic()))
        self._expect()
        self.refresh()

    def _expect(self) -> None:
        """Count the nodes of their last runs as those of schedulers that do not answer yet.

        If another scheduler has a node of such a name, it is not known whose loads are reported under it.
        """
        nodes: dict[str, set[str]] = {each.name: set() for each in self._sources}
        silent = nodes.keys() - self._clusters.seen_at.keys()
        for record in self._store.runs.all(last=LAST_RUNS) if silent else ():
            nodes.get(record.run.extra.get("scheduler", ""), set()).update(record.run.nodes)
        for name in silent:
            self._clusters.expect(name, nodes[name])

    def refresh(self) -> None:
        """Make the view of this moment for placements."""
        self._clock.mind()
        view = self._clusters.refresh(self._clock.now(), self._prepare)
        self._history.note(view.partitions, view.made_at)
        self._load_forecaster.note(self._clusters.newest_loads(), view.made_at)

    def read_loads(self, within: float = math.inf) -> None:
        """Read the newest load of each node from the database, if it is at most so old (s).

        A node that was silent for long is stale after a restart, too; unread, it would count as idle.
        """
        self._clusters.note(self._store.loads.newest(since=self._clock.now() - within))

    def restore_forecasts(self) -> None:
        """Restore the loads before the start that forecasts are learned from, minute by minute."""
        self._load_forecaster.restore(self._last_hours())

    def _last_hours(self) -> Iterator[Loads]:
        """The samples before the start, each minute followed by a rest as long as it took."""
        until = self._clock.now()
        for since in np.arange(MINUTE * math.floor((until - ROWS * STEP) / MINUTE), until, MINUTE).tolist():
            began = time.monotonic()
            yield self._store.loads.all(since=since, until=min(since + MINUTE, until))
            time.sleep(time.monotonic() - began)

    def forecast(self) -> None:
        """Forecast the loads that placements count with."""
        view = self._clusters.view
        clusters, names = [each.state for each in view.partitions], view.load_names()
        self._load_forecaster.forecast(clusters, self._clock.now(), names=names, pause=REST)

    def show_described(self) -> None:
        """Update the described clusters by the jobs that should still run there."""
        if self.described is not None:
            models, now = self._models, self._clock.now()
            self.described.show(self._clusters, lambda platform, name: models.predictor(name, platform), now)

    def ask(self, source: Source) -> None:
        """Ask a scheduler for partitions and running jobs; its last answer stays where it does not answer."""
        asked_at = self._clock.now()
        try:
            partitions = source.partitions()
            waiting = self._queues.put(source.name, partitions, self._queue(source), asked_at)
            self._clusters.put(source.name, waiting, asked_at)
            self._clusters.put_running(source.name, source.running(), asked_at)
        except Exception as error:
            self._metrics.unheard(source.name, error)

    def learn_failures(self, source: RecordsFailures) -> None:
        """Let a scheduler learn how often its nodes fail; what it learned last holds where it does not answer."""
        try:
            source.learn_failures()
        except Exception as error:
            self._metrics.unheard(source.name, error)

    def _queue(self, source: Source) -> Sequence[QueuedJob] | None:
        """The queue of a scheduler; None where it does not tell of it."""
        try:
            return source.queue()
        except RuntimeError as error:
            _log.warning("the queue of %s is unknown: %s", source.name, error)
            return None
