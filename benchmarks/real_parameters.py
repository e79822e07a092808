"""``python -m benchmarks.real_parameters --data DIR``: real jobs with parameters, a few random runs learned.

grep, sort and k-means on Spark clusters of 2 to 12 machines (dos-group/c3o-experiments), of which the project holds no
copy: ``DIR/grep.tsv``, ``sort.tsv`` and ``kmeans.tsv``. Of the runs of each type of machine some are learned, drawn at
random, and the others predicted, beside ridge regression and a Gaussian process that know the parameters, and the form
of Ernest (Venkataraman et al., NSDI 2016): non-negative least squares on 1, N / P, log P and P.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from metasched.predictors.contract import Predictor, under
from metasched.predictors.judging.peers import GaussianProcess, RidgeQuadratic
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import IDLE_BANDWIDTH, IDLE_CPU, PARAMETER, Run

#: Parameters of each application besides the megabytes that it reads.
APPLICATIONS = {"grep": ("p_occurrence",), "sort": ("line_length",), "kmeans": ("k", "features")}
#: Runs learned, seeds of the draws, and runs to predict at least.
TRAINING, SEEDS, FEWEST = (15, 30, 60), (1, 2, 3), 10
OWN, PEERS = "robust", {"ridge": RidgeQuadratic, "gaussian_process": GaussianProcess}


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


def expected(predictor: Predictor, runs: Sequence[Run]) -> np.ndarray:
    """What a predictor expects of some runs (s), shape (n,)."""
    times = np.empty(len(runs))
    for settings in {run.settings for run in runs}:
        here = [place for place, run in enumerate(runs) if run.settings == settings]
        asked = [runs[place].problem_size for place in here], [runs[place].processors for place in here]
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


def errors(runs: Sequence[Run], count: int) -> Mapping[str, float]:
    """Mean percentage error of every method, over the draws."""
    found: dict[str, list[float]] = defaultdict(list)
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(runs))
        learned, asked = [runs[k] for k in order[:count]], [runs[k] for k in order[count:]]
        truth = np.array([run.execution_time for run in asked])
        times = {OWN: expected(RobustPredictor().fit(learned), asked)}
        times |= {name: expected(make().fit(learned), asked) for name, make in PEERS.items()}
        times["ernest"] = ernest(learned, asked)
        for name, time in times.items():
            found[name].append(100.0 * float(np.mean(np.abs(time / truth - 1.0))))
    return {name: float(np.mean(each)) for name, each in found.items()}


def main() -> None:
    """Judge, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with grep.tsv, sort.tsv and kmeans.tsv")
    cases = []
    with threadpool_limits(limits=1):
        for (application, machine), runs in read(parser.parse_args().data).items():
            cases += [
                (f"{application}, {machine}, {count} runs", errors(runs, count))
                for count in TRAINING
                if len(runs) >= count + FEWEST
            ]
    names = list(cases[0][1])
    print(f"{'mean error (%)':32}" + "".join(f"{name:>18}" for name in names))
    for what, each in cases:
        print(f"{what:32}" + "".join(f"{each[name]:18.1f}" for name in names))
    print(f"{'mean':32}" + "".join(f"{np.mean([each[name] for _, each in cases]):18.1f}" for name in names))
    best = sum(each[OWN] <= min(each.values()) for _, each in cases)
    print(f"\n{OWN} has the least error in {best} of {len(cases)} cases")


if __name__ == "__main__":
    main()
