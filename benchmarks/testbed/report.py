"""Two tables for the reader: what each committed campaign holds, and the statistics of the loadings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.box import MARKDOWN
from rich.table import Table

from benchmarks.testbed import catalogue, oracle
from benchmarks.testbed.checking import Check
from benchmarks.testbed.clusters import CLUSTERS, ClusterModel
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.statistics import describe
from metasched.store.files.runs import read_runs

PERIOD, HORIZON = 120.0, 4 * 86_400.0
#: Columns that the tables may take.
WIDTH = 118


def summary(collection: catalogue.Collection) -> tuple[Table, ...]:
    """What the campaigns of a collection hold, and of the design what the co-scheduled ones do."""
    pairings = (pairings_table(collection.folder),) if collection == catalogue.DESIGN else ()
    return campaigns_table(collection), *pairings


def _table(*columns: str) -> Table:
    """A table whose figures stand to the right, and which can be put into a page as it is."""
    table = Table(box=MARKDOWN)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def campaigns_table(collection: catalogue.Collection) -> Table:
    """For each campaign: runs, times, how loads slowed it, its minima, and the least error to be hoped for."""
    table = _table(
        "campaign", "runs", "time (s)", "median", "slowdown", "CPU", "Mbit/s", "true form: median", "mean PPE"
    )
    for scenario in catalogue.scenarios(collection):
        runs = read_runs(collection.folder / scenario.name / "runs.csv")
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


def pairings_table(folder: Path) -> Table:
    """For each co-scheduled campaign and kind of sharing: pairs, and how much longer a job took than by itself."""
    table = _table("co-scheduled campaign", "sharing", "pairs", "slowdown: median", "mean", "largest")
    for pairing in catalogue.pairings():
        runs = read_runs(folder / pairing.name / "runs.csv")
        for sharing in dict.fromkeys(run.extra["sharing"] for run in runs):
            slower = [
                run.execution_time / float(run.extra["alone_time"]) for run in runs if run.extra["sharing"] == sharing
            ]
            figures = (np.median(slower), np.mean(slower), np.max(slower))
            table.add_row(pairing.name, sharing, str(len(slower) // 2), *(f"{figure:.2f}" for figure in figures))
    return table


def checks_table(checks: dict[str, Check]) -> Table:
    """For each campaign that was checked: how far the runs simulated again are off."""
    table = _table("campaign", "runs", "idle", "loaded", "starts (s)", "same plan", "CPU s / run", "as committed")
    for name, one in checks.items():
        table.add_row(
            name,
            str(one.compared),
            f"{one.idle:.0e}",
            f"{one.loaded:.0e}",
            f"{one.starts:.3f}",
            "yes" if one.same_plan else "no",
            f"{one.seconds:.2f}",
            "yes" if one.passed else "NO",
        )
    return table


def loadings_table(loadings: dict[str, Loading], cluster: ClusterModel = CLUSTERS["woodcrest"]) -> Table:
    """Mean, deviation, lag-1 autocorrelation at 2 minutes and dwell time of each loading over four days."""
    table = _table("loading", "of", "mean", "deviation", "autocorrelation", "dwell (s)")
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
