"""``python -m benchmarks.real_parameters --data DIR``: real jobs with parameters, a few random runs learned.

grep, sort and k-means on Spark clusters of 2 to 12 machines (dos-group/c3o-experiments), of which the project holds no
copy: ``DIR/grep.tsv``, ``sort.tsv`` and ``kmeans.tsv``. Every configuration (size, machines and parameters) was run
several times. Of the runs on each type of machine some are drawn at random and learned and the others predicted, beside
ridge regression and a Gaussian process that know the parameters, and the form of Ernest (Venkataraman et al., NSDI
2016): non-negative least squares on 1, N / P, log P and P. Then whole configurations are drawn, with all their runs, so
that none is predicted of which a run was learned.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from metasched.predictors.abilities import under
from metasched.predictors.contract import Predictor
from metasched.predictors.judging.peers import GaussianProcess, RidgeQuadratic
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import IDLE_BANDWIDTH, IDLE_CPU, PARAMETER, InputError, Request, Run

#: Parameters of each application besides the megabytes that it reads.
APPLICATIONS = {"grep": ("p_occurrence",), "sort": ("line_length",), "kmeans": ("k", "features")}
#: Runs learned, seeds of the draws, and configurations to predict at least.
TRAINING, SEEDS, FEWEST = (15, 30, 60), (1, 2, 3), 10
DRAWN = ("runs", "configurations")
OWN, REFUSED = "robust", "refused"
PEERS = {"ridge": RidgeQuadratic, "gaussian_process": GaussianProcess}


def read(folder: Path) -> dict[tuple[str, str], list[Run]]:
    """The runs by application and type of machine."""
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for application, parameters in APPLICATIONS.items():
        with (folder / f"{application}.tsv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                key = application, row["machine_type"]
                size, machines, seconds = (row[name] for name in ("data_size_MB", "instance_count", "gross_runtime"))
                extra = {f"{PARAMETER}{name}": row[name] for name in parameters}
                run = Run(*key, float(size), int(machines), IDLE_CPU, IDLE_BANDWIDTH, float(seconds), extra=extra)
                found[key].append(run)
    return found


def configurations(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs by what was asked of them: those of one configuration together."""
    found: dict[Request, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.request].append(run)
    return list(found.values())


def split(runs: Sequence[Run], count: int, seed: int, drawn: str) -> tuple[list[list[Run]], list[list[Run]]]:
    """What is learned, single runs or configurations drawn at random until they have ``count`` runs, and predicted."""
    alike = configurations(runs) if drawn == "configurations" else [[run] for run in runs]
    order = [alike[k] for k in np.random.default_rng(seed).permutation(len(alike))]
    before = np.cumsum([0, *map(len, order)])
    end = int(np.searchsorted(before, count))
    return order[:end], order[end:]


def expected(predictor: Predictor, runs: Sequence[Run]) -> np.ndarray:
    """What a predictor expects of some runs (s), shape (n,); NaN where it refuses their parameters."""
    times = np.full(len(runs), np.nan)
    for settings in {run.settings for run in runs}:
        here = [place for place, run in enumerate(runs) if run.settings == settings]
        asked = [runs[place].problem_size for place in here], [runs[place].processors for place in here]
        with suppress(InputError):
            times[here] = under(predictor, settings).expect_many(*asked, IDLE_CPU, IDLE_BANDWIDTH)
    return times


def ernest(learned: Sequence[Run], asked: Sequence[Run]) -> np.ndarray:
    """What Ernest's form, fitted to some runs, says of others (s), shape (n,)."""

    def columns(runs: Sequence[Run]) -> np.ndarray:
        n, p = (np.array([getattr(run, name) for run in runs], float) for name in ("problem_size", "processors"))
        return np.stack([np.ones(len(n)), n / p, np.log(p), p], axis=1)

    time = np.array([run.execution_time for run in learned])
    weights, _ = scipy.optimize.nnls(columns(learned) / time[:, None], np.ones(len(time)))
    return np.asarray(columns(asked) @ weights)


def errors(runs: Sequence[Run], count: int, drawn: str) -> Mapping[str, float]:
    """Mean percentage error of every method, over the draws, and percentage of the runs that one of them refuses.

    They refuse a parameter of 0 where none was learned, and none is judged by these runs.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for seed in SEEDS:
        learned, asked = ([run for alike in part for run in alike] for part in split(runs, count, seed, drawn))
        truth = np.array([run.execution_time for run in asked])
        times = {OWN: expected(RobustPredictor().fit(learned), asked)}
        times |= {name: expected(make().fit(learned), asked) for name, make in PEERS.items()}
        times["ernest"] = ernest(learned, asked)
        off = {name: np.abs(time / truth - 1.0) for name, time in times.items()}
        answered = np.isfinite(list(off.values())).all(axis=0)
        for name, each in (*((name, each[answered]) for name, each in off.items()), (REFUSED, ~answered)):
            found[name].append(100.0 * float(np.mean(each)))
    return {name: float(np.mean(each)) for name, each in found.items()}


def judge(data: Mapping[tuple[str, str], list[Run]], drawn: str) -> None:
    """Print the errors of all methods where ``drawn``, runs or configurations, are drawn."""
    cases = [
        (f"{application}, {machine}, {count} runs", errors(runs, count, drawn))
        for (application, machine), runs in data.items()
        for count in TRAINING
        if len(split(runs, count, SEEDS[0], drawn)[1]) >= FEWEST
    ]
    names = list(cases[0][1])
    print(f"{f'{drawn} drawn: mean error (%)':32}" + "".join(f"{name:>18}" for name in names))
    for what, each in cases:
        print(f"{what:32}" + "".join(f"{each[name]:18.1f}" for name in names))
    print(f"{'mean':32}" + "".join(f"{np.mean([each[name] for _, each in cases]):18.1f}" for name in names))
    best = sum(each[OWN] <= min(error for name, error in each.items() if name != REFUSED) for _, each in cases)
    print(f"\n{OWN} has the least error in {best} of {len(cases)} cases\n")


def main() -> None:
    """Judge, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with grep.tsv, sort.tsv and kmeans.tsv")
    data = read(parser.parse_args().data)
    with threadpool_limits(limits=1):
        for drawn in DRAWN:
            judge(data, drawn)


if __name__ == "__main__":
    main()
