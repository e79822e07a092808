"""The daemon's own health on the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metasched.placement.loads.staleness import STALE_AFTER
from metasched.service.daemon import Daemon
from metasched.service.dashboard.formats import ago, count

#: How old a scheduler's report may be, in periods.
UNHEARD = 4.0
#: Waiting batches and runs from which on the check fails.
BATCHES, RUNS = 1000, 500


@dataclass(frozen=True, slots=True)
class Check:
    """One line of health: the subject, whether it is well, and the findings."""

    name: str
    well: bool
    found: str


def checks(daemon: Daemon, now: float) -> Iterator[Check]:
    """The daemon's health, line by line."""
    periods, view, faults = daemon.configuration.periods, daemon.clusters.view, daemon.faults()
    yield Check("view for placements", "late" not in faults, f"updated {ago(now - view.made_at)}")
    if "clock" in faults:
        yield Check("clock", False, faults["clock"])
    if not daemon.leads:
        yield Check("lead", True, "another daemon leads; this one only answers reads")
    for source in daemon.sources:
        seen = daemon.clusters.seen_at.get(source.name)
        well = seen is not None and now - seen <= UNHEARD * periods.partitions
        yield Check(
            f"scheduler {source.name}", well, "no report yet" if seen is None else f"last report {ago(now - seen)}"
        )
    for report in daemon.load_sources.reports():
        answered = "never answered" if report.answered_at is None else f"answered {ago(now - report.answered_at)}"
        newest = "" if report.newest is None else f", newest sample {ago(now - report.newest)}"
        wrong = f", {count(report.failures, 'failure')}" if report.failures else ""
        wrong += f": {report.fault}" if report.fault else ""
        found = f"{answered}{newest}, {count(report.nodes, 'node')}{wrong}"
        yield Check(f"source {report.name}", report.well(now) and not report.fault, found)
    silent, nodes = view.silent(), len(view.ages())
    yield Check(
        "nodes",
        silent == 0,
        f"{count(nodes, 'node')}, {silent or 'none'} silent for more than {STALE_AFTER / 60:.0f} min",
    )
    waiting = daemon.writes.waiting
    fault = faults.get("damaged") or faults.get("database")
    yield Check("database", waiting < BATCHES and not fault, fault or f"{count(waiting, 'batch', 'batches')} to write")
    runs, failures = daemon.models.waiting, daemon.models.failures
    yield Check(
        "learning",
        runs < RUNS and not failures,
        f"{count(runs, 'run')} to learn, {count(failures, 'failure') if failures else 'no failures'}",
    )
