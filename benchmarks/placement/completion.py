"""Mean completion of 500 jobs under each policy, and how the learning ranker compares with an oracle as it goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.grid import APPLICATIONS, Site, sites
from benchmarks.placement.policies import REQUESTED, Ranked, oracle
from benchmarks.placement.stream import Job, jobs, simulate
from benchmarks.testbed.loading import LOADINGS
from metasched.placement.loads.counted import Forecast
from metasched.predictors.contract import Predictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run

JOBS, SEED, INTERVAL = 500, 2008, 90.0
#: Numbers of processors that users may ask for; each other policy is shown with the one that suits it best.
ASKED = (4, 8, 16)
#: Runs that each model is trained on before the stream: sizes as a part of the middle one, numbers of processors.
TRAINED_SIZES, TRAINED_PROCESSORS = (0.5, 0.6, 0.7, 0.85, 1.0), (1, 2, 4, 8)


def trained(grid: Sequence[Site], seed: int) -> dict[str, dict[str, Predictor]]:
    """A robust predictor for each application and cluster, from a few runs on random nodes in the hour before."""
    random = np.random.default_rng(seed)
    predictors: dict[str, dict[str, Predictor]] = {}
    for name, application in APPLICATIONS.items():
        predictors[name] = {}
        for site in grid:
            runs: list[Run] = []
            for part in TRAINED_SIZES:
                for processors in (p for p in TRAINED_PROCESSORS if p <= site.size):
                    nodes = random.choice(site.size, processors, replace=False).tolist()
                    start, n = float(random.uniform(0, 3000)), round(part * application.middle)
                    noise = float(random.lognormal(0, 0.03))
                    runs.append(site.run(name, n, nodes, start, site.finish(application, n, nodes, start, noise)))
            predictors[name][site.name] = RobustPredictor(name, site.name).fit(runs)
    return predictors


def outcomes(stream: Sequence[Job], grid: Sequence[Site]) -> dict[str, np.ndarray]:
    """Completion of each job under each policy; arrays of shape (jobs,)."""
    all_knowing = oracle(grid)
    found = {
        "oracle": simulate(stream, grid, all_knowing),
        "ranker, learning, forecasts": simulate(stream, grid, Ranked(trained(grid, SEED), outlook)),
        "ranker, learning, measured loads": simulate(stream, grid, Ranked(trained(grid, SEED))),
        "ranker, true model, forecasts": simulate(stream, grid, Ranked(all_knowing.predictors, outlook)),
        "ranker, true model, measured loads": simulate(stream, grid, Ranked(all_knowing.predictors)),
    }
    for name, policy in REQUESTED.items():
        tries = {asked: simulate(stream, grid, policy(asked)) for asked in ASKED}
        best = min(tries, key=lambda asked: float(tries[asked].mean()))
        found[f"{name}, {best} asked"] = tries[best]
    return found


def outlook(site: Site, now: float) -> Forecast:
    """Forecasts from what the monitors reported until now."""
    return site.outlook(now)


def main(console: Console, count: int = JOBS) -> None:
    """Print means against the oracle's, over all jobs, the first hundred and the last, for two kinds of loads."""
    for loading in ("grid", "random"):
        grid = sites(SEED, LOADINGS[loading])
        found = outcomes(jobs(count, SEED, INTERVAL), grid)
        ideal = found["oracle"]
        part = min(100, count // 2)
        clusters, applications = len(grid), len(APPLICATIONS)
        table = Table(
            title=f"{count} jobs, {applications} applications, {clusters} clusters, {loading} loads: wait + run"
        )
        for heading in ("policy", "mean s", "median s", "over oracle", f"first {part}", f"last {part}"):
            table.add_column(heading, justify="left" if heading == "policy" else "right")
        for name, completion in sorted(found.items(), key=lambda item: item[1].mean()):
            over = [completion[s].mean() / ideal[s].mean() - 1 for s in (slice(None), slice(part), slice(-part, None))]
            middle = f"{np.median(completion):.1f}"
            table.add_row(name, f"{completion.mean():.1f}", middle, *(f"{each:+.1%}" for each in over))
        console.print(table)


if __name__ == "__main__":
    main(Console(width=120))
