"""Two tables for the reader: what each committed campaign holds, and the statistics of the loadings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.table import Table

from benchmarks.testbed import catalogue, oracle
from benchmarks.testbed.clusters import CLUSTERS, ClusterModel
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.statistics import describe
from metasched.store.campaigns import read_runs

PERIOD, HORIZON = 120.0, 4 * 86_400.0


def campaigns_table(folder: Path) -> Table:
    """For each campaign: runs, times, how loads slowed it, its minima, and the least error to be hoped for."""
    columns = ["campaign", "runs", "time (s)", "median", "slowdown", "CPU", "Mbit/s", "true form: median", "mean PPE"]
    table = Table(*columns)
    for scenario in catalogue.scenarios():
        runs = read_runs(folder / scenario.name / "runs.csv")
        time, cpu, bandwidth, idle = np.array(
            [
                (run.execution_time, run.min_avg_avail_cpu, run.min_avg_avail_bw, float(run.extra["dedicated_time"]))
                for run in runs
            ]
        ).T
        error = oracle.errors(scenario.application.name, scenario.cluster, runs)
        table.add_row(
            scenario.name,
            str(len(runs)),
            f"{time.min():.1f}-{time.max():.0f}",
            f"{np.median(time):.0f}",
            f"{np.median(time / idle):.2f}",
            f"{np.median(cpu):.2f}",
            f"{np.median(bandwidth):.0f}",
            f"{np.median(error):.1f} %",
            f"{error.mean():.1f} %",
        )
    return table


def loadings_table(loadings: dict[str, Loading], cluster: ClusterModel = CLUSTERS["woodcrest"]) -> Table:
    """Mean, deviation, lag-1 autocorrelation at 2 minutes and dwell time of each loading over four days."""
    table = Table("loading", "of", "mean", "deviation", "autocorrelation", "dwell (s)")
    for name, generator in loadings.items():
        timeline = generator(cluster, 1, HORIZON)
        for kind, series, full in (("CPU", timeline.cpu, 1.0), ("network", timeline.bandwidth, cluster.bandwidth)):
            found = describe(series, PERIOD, HORIZON, full)
            table.add_row(
                name,
                kind,
                f"{found.mean:.2f}",
                f"{found.deviation:.2f}",
                f"{found.autocorrelation:.2f}",
                f"{found.dwell:.0f}",
            )
    return table
