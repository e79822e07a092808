"""The clusters on the dashboard: their available resources now, and their loads over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metasched.placement.clusters.partition import Partition
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.service.dashboard.formats import figure
from metasched.service.state.load_history import LoadHistory, Row

#: Number of listed nodes, those with the least available, and of rows in the table beside a picture.
TIGHTEST, ROWS = 8, 12


@dataclass(frozen=True, slots=True)
class Tight:
    """A loaded node: available share of a processor, bandwidth (Mbit/s), and the age of its sample (s), else NaN."""

    name: str
    cpu: float
    bandwidth: float
    age: float


@dataclass(frozen=True, slots=True)
class Shown:
    """A cluster as the page shows it."""

    name: str
    scheduler: str
    nodes: int
    up: int
    silent: int
    free: int
    chart: dict[str, Any] | None
    rows: Sequence[Row]
    tight: Sequence[Tight]

    @property
    def latest(self) -> Row | None:
        """The row of the latest loads; None where there is none yet."""
        return self.rows[-1] if self.rows else None


def shown(partition: Partition, traces: LoadHistory, *, day: bool) -> Shown:
    """One cluster as the page shows it: nodes, processors, loads now and over time."""
    state = partition.state
    rows = traces.of(state.name, day=day)
    order = np.argsort(np.where(state.up, state.available_cpu, np.inf), kind="stable")[:TIGHTEST].tolist()
    picked = np.unique(np.linspace(0, max(len(rows) - 1, 0), min(ROWS, len(rows))).round().astype(int)).tolist()
    return Shown(
        name=state.name,
        scheduler=partition.scheduler,
        nodes=len(state.nodes),
        up=int(np.count_nonzero(state.up)),
        silent=int(np.count_nonzero(state.age > STALE_AFTER)),
        free=int(state.processors[state.up].sum()),
        chart=_chart(rows) if len(rows) > 1 else None,
        rows=[rows[index] for index in picked],
        tight=[
            Tight(
                state.nodes[index],
                float(state.available_cpu[index]),
                float(state.available_bandwidth[index]),
                float(state.age[index]),
            )
            for index in order
            if state.up[index]
        ],
    )


def _chart(rows: Sequence[Row]) -> dict[str, Any]:
    """The numbers of the picture: times, and for CPU and bandwidth the low end, the middle and the high end."""
    return {
        "time": [round(row.time) for row in rows],
        "cpu": [[figure(row.cpu[end]) for row in rows] for end in range(3)],
        "bandwidth": [[figure(row.bandwidth[end]) for row in rows] for end in range(3)],
    }
