"""What the daemon tells Prometheus of itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from metasched import __version__
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Models
from metasched.service.state.write_queue import WriteQueue
from monitors.one_line import one_line
from monitors.sources.screening import REFUSALS, REPAIRS, Screened

_log = logging.getLogger(__name__)

#: Upper ends of the latency histogram (s): a hook waits a fifth of a second at most.
LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
#: Requests with reports, and keys of theirs that are named in the log, each once.
REPORTS, MOST_NAMED = ("/v1/jobs", "/v1/loads", "/v1/sites/links"), 100
#: Characters of a key that are logged.
LONGEST_KEY = 60


class _LearnedRuns(Collector):
    """How many runs each model has learned, read again at each scrape: models come while the daemon runs."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "metasched_learned_runs", "Runs that models have learned, by whether their loads were measured.",
            labels=["application", "platform", "measured"],
        )  # fmt: skip
        for key, learned in self._models.learned().items():
            family.add_metric([*key, "yes"], learned.runs - learned.unmeasured)
            family.add_metric([*key, "no"], learned.unmeasured)
        yield family


class _State(Collector):
    """Gauges of one label whose values, and the labels that there are, are read again at each scrape.

    Parameters
    ----------
    name, help_text, label : of the gauges.
    read : their values by their labels.
    """

    def __init__(self, name: str, help_text: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
        self._about, self._read = (name, help_text), (label, read)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        label, read = self._read
        family = GaugeMetricFamily(*self._about, labels=[label])
        for key, value in read().items():
            family.add_metric([key], value)
        yield family


class Metrics:
    """Counters and gauges of one daemon, in a registry of their own."""

    def __init__(self, clusters: LiveClusters, models: Models, writes: WriteQueue) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "metasched_requests_total", "Requests answered.", ["method", "path", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "metasched_request_seconds", "Response time.", ["path"], buckets=LATENCIES, registry=self.registry
        )
        #: The counters of each method, route and status, which take longer to find than to raise.
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.placements = Counter(
            "metasched_placements_total", "Requests for a placement.", ["answer"], registry=self.registry
        )
        self.loads = Counter("metasched_loads_total", "Loads stored.", registry=self.registry)
        self._refused = Counter(
            "metasched_loads_refused_total", "Loads that were refused, by reason.", ["reason"], registry=self.registry
        )
        self._repaired = Counter(
            "metasched_loads_repaired_total", "Loads that were repaired, by rule.", ["rule"], registry=self.registry
        )
        self._newer = Counter(
            "metasched_newer_reports_total", "Reports with keys that this version does not know.", ["path"],
            registry=self.registry,
        )  # fmt: skip
        #: The keys that were named in the log.
        self._named: set[tuple[str, str]] = set()
        for counter, labels in (
            (self._refused, (*REFUSALS, "too many")), (self._repaired, REPAIRS), (self._newer, REPORTS)
        ):  # fmt: skip
            for label in labels:  # all are shown from the start: an alert on an increase needs the zero before it
                counter.labels(label)
        self.runs = Counter("metasched_runs_total", "Runs stored.", registry=self.registry)
        self.moves = Counter(
            "metasched_moves_total", "Moves of running jobs, and how many of the ended ones were worthwhile.", ["what"],
            registry=self.registry,
        )  # fmt: skip
        for what in ("moved", "failed", "paid", "regretted"):
            self.moves.labels(what)
        self.source_failures = Counter(
            "metasched_source_failures_total", "Failures of schedulers and of sources of loads.", ["source"],
            registry=self.registry,
        )  # fmt: skip
        for name, help_text, value in (
            ("metasched_models", "Models in memory.", lambda: len(models.all())),
            ("metasched_runs_to_learn", "Runs that wait to be learned.", lambda: models.waiting),
            ("metasched_learning_failures", "Runs and searches that failed.", lambda: models.failures),
            ("metasched_batches_to_write", "Batches that wait for the database.", lambda: writes.waiting),
            ("metasched_nodes_with_loads", "Nodes that have reported loads.", lambda: len(clusters.latest)),
            ("metasched_nodes_silent", "Nodes with a load that is stale.", lambda: clusters.view.silent()),
            (
                "metasched_view_timestamp_seconds",
                "Time when the view for placements was made.",
                lambda: clusters.view.made_at,
            ),
        ):
            Gauge(name, help_text, registry=self.registry).set_function(value)

        self.registry.register(_LearnedRuns(models))

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an answer.

        Parameters
        ----------
        method, path : of the request; the path of its route.
        status, seconds : of the answer, and how long it took.
        """
        which = method, path, status
        if which not in self._answered:
            self._answered[which] = self.requests.labels(method, path, f"{status}"), self.latency.labels(path)
        count, latency = self._answered[which]
        count.inc()
        latency.observe(seconds)

    def source_failed(self, name: str) -> None:
        """Count that a source did not answer, or not soundly."""
        self.source_failures.labels(name).inc()

    def unheard(self, scheduler: str, error: Exception) -> None:
        """Count, and log, that a scheduler did not answer."""
        self.source_failed(scheduler)
        _log.warning("scheduler %s did not answer: %s", scheduler, error)

    def reported(self, path: str, unknown: Sequence[str]) -> None:
        """Count a report with keys that this version does not know, if it has any, and log each of them once.

        Parameters
        ----------
        path, unknown : of the request, one of :data:`REPORTS`; the keys.
        """
        if not unknown:
            return
        self._newer.labels(path).inc()
        for key in (one_line(each, LONGEST_KEY) for each in unknown):
            if len(self._named) < MOST_NAMED and (path, key) not in self._named:
                self._named.add((path, key))
                _log.warning(
                    "%s: %s is not known to version %s and is ignored: its sender is newer, upgrade the daemon",
                    path, key, __version__,
                )  # fmt: skip

    def show(
        self,
        faults: Callable[[], Mapping[str, str]],
        leads: Callable[[], bool],
        heard: Callable[[], Mapping[str, tuple[float, float]]],
        sources: Iterable[str],
    ) -> None:
        """Show the daemon's faults, whether it leads, and how long ago its schedulers and sources were heard.

        Parameters
        ----------
        faults : each fault that there may be, empty where it is not there.
        leads : whether the daemon leads.
        heard : for each scheduler and source that is asked its age, infinite where it never answered, and period (s).
        sources : names of all of them, whose failures are shown from none on.
        """
        for source in sources:
            self.source_failures.labels(source)
        Gauge("metasched_leads", "Whether this daemon leads.", registry=self.registry).set_function(leads)
        for collector in (
            _State(
                "metasched_fault", "Whether the daemon has a fault, as its health says.", "fault",
                lambda: {name: float(bool(fault)) for name, fault in faults().items()},
            ),
            _State(
                "metasched_source_age_seconds",
                "How long ago a scheduler or source of loads answered; infinite where it never did.", "source",
                lambda: {name: age for name, (age, _) in heard().items()},
            ),
            _State(
                "metasched_source_period_seconds", "How often a scheduler or source of loads is asked.", "source",
                lambda: {name: period for name, (_, period) in heard().items()},
            ),
        ):  # fmt: skip
            self.registry.register(collector)

    def screened(self, screened: Screened) -> None:
        """Count the loads that were refused and repaired."""
        for reason, count in screened.refused.items():
            self._refused.labels(reason).inc(count)
        for rule, count in screened.repaired.items():
            self._repaired.labels(rule).inc(count)

    def refuse_loads(self, reason: str, count: int) -> None:
        """Count loads that were refused for another reason."""
        self._refused.labels(reason).inc(count)

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
