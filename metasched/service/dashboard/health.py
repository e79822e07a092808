"""What the dashboard says of the daemon's own health."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metasched.placement.freshness import STALE_AFTER
from metasched.service.daemon import Daemon
from metasched.service.dashboard.words import ago, count

#: How late the view of placements, and a scheduler's own account, may be, in periods.
LATE, UNHEARD = 10.0, 4.0
#: Batches and runs that may wait before somebody should look.
BATCHES, RUNS = 1000, 500


@dataclass(frozen=True, slots=True)
class Check:
    """One line of health: what is looked at, whether it is well, and what was found."""

    name: str
    well: bool
    found: str


def checks(daemon: Daemon, now: float) -> Iterator[Check]:
    """The daemon's health, line by line."""
    periods, view = daemon.configuration.periods, daemon.board.view
    age = now - view.made_at
    yield Check("view for placements", age <= LATE * periods.loads, f"made {ago(age)}")
    for source in daemon.sources:
        seen = daemon.board.seen_at.get(source.name)
        well = seen is not None and now - seen <= UNHEARD * periods.partitions
        yield Check(f"scheduler {source.name}", well, "never heard" if seen is None else f"heard {ago(now - seen)}")
    silent, nodes = _silent(daemon), sum(len(each.state.nodes) for each in view.partitions)
    yield Check(
        "nodes",
        silent == 0,
        f"{count(nodes, 'node')}, {silent or 'none'} silent for more than {STALE_AFTER / 60:.0f} min",
    )
    waiting = daemon.writer.waiting
    yield Check("database", waiting < BATCHES, f"{count(waiting, 'batch', 'batches')} to write")
    runs, failures = daemon.models.waiting, daemon.models.failures
    yield Check(
        "learning",
        runs < RUNS and not failures,
        f"{count(runs, 'run')} to learn, {count(failures, 'failure') if failures else 'no failures'}",
    )


def _silent(daemon: Daemon) -> int:
    """Nodes that once sent loads and are silent now."""
    return sum(int(np.count_nonzero(each.state.age > STALE_AFTER)) for each in daemon.board.view.partitions)
