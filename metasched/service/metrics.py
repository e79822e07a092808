"""What the daemon tells Prometheus of itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from metasched.service.board import Board
from metasched.service.models import Models
from metasched.service.writer import Writer
from monitors.sources.screening import REFUSALS, REPAIRS, Screened

#: Upper ends of the latency histogram (s): a hook waits a fifth of a second at most.
LATENCIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics:
    """Counters and gauges of one daemon, in a registry of their own."""

    def __init__(self, board: Board, models: Models, writer: Writer) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "metasched_requests_total", "Requests answered.", ["method", "path", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "metasched_request_seconds", "Time to answer.", ["path"], buckets=LATENCIES, registry=self.registry
        )
        self.placements = Counter(
            "metasched_placements_total", "Questions for a placement.", ["answer"], registry=self.registry
        )
        self.loads = Counter("metasched_loads_total", "Loads stored.", registry=self.registry)
        self._refused = Counter(
            "metasched_loads_refused_total", "Loads that could not be.", ["reason"], registry=self.registry
        )
        self._repaired = Counter(
            "metasched_loads_repaired_total", "Loads that were put right.", ["rule"], registry=self.registry
        )
        for counter, labels in ((self._refused, REFUSALS), (self._repaired, REPAIRS)):
            for label in labels:  # all are shown from the start: an alert on an increase needs the zero before it
                counter.labels(label)
        self.runs = Counter("metasched_runs_total", "Runs stored.", registry=self.registry)
        self.source_failures = Counter(
            "metasched_source_failures_total", "Times that a scheduler was not heard.", ["source"],
            registry=self.registry,
        )  # fmt: skip
        for name, help_text, value in (
            ("metasched_models", "Models in memory.", lambda: len(models.all())),
            ("metasched_runs_to_learn", "Runs that wait to be learned.", lambda: models.waiting),
            ("metasched_learning_failures", "Runs and searches that failed.", lambda: models.failures),
            ("metasched_batches_to_write", "Batches that wait for the database.", lambda: writer.waiting),
            ("metasched_nodes_with_loads", "Nodes that were heard of.", lambda: len(board.latest)),
            ("metasched_view_timestamp_seconds", "When placements' view was made.", lambda: board.view.made_at),
        ):
            Gauge(name, help_text, registry=self.registry).set_function(value)

    def screened(self, screened: Screened) -> None:
        """Count the loads that were refused and repaired."""
        for reason, count in screened.refused.items():
            self._refused.labels(reason).inc(count)
        for rule, count in screened.repaired.items():
            self._repaired.labels(rule).inc(count)

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
