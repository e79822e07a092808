"""Judges the cloud predictor on the recorded ground truth: ``python -m benchmarks.cloud``; SimGrid is not needed.

Trained on 2, 4 and 8 processes within one server, then asked for every distribution recorded: accuracy is
100 % - |predicted - measured| / measured, as in the paper, for the paper's network, the refined one and the baseline.
The refined network is asked twice, the second time with the paper's five columns of the profile only.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.cloud.record import HERE, MIXES
from metasched.predictors.analytic.cloud.baseline import ScalabilityAnalysis
from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.model import CloudModel
from metasched.predictors.analytic.cloud.profile import Profile

Row = dict[str, Any]
#: What the programs' authors say of their process grids.
DIMENSIONS = {"ring": 1, "grid": 2}
METHODS = ("synchronous", "five columns", "published", "baseline")


def read() -> list[Row]:
    """The recorded runs."""
    with (HERE / "runs.csv").open(encoding="utf-8") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        for name in ("servers", "cores", "processes"):
            row[name] = int(row[name])
    return rows


def network(cloud: str) -> dict[str, float]:
    """Startup and word times from the probe between two servers."""
    with (HERE / "probe.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["cloud"] == cloud]
    points = np.array([[float(row[name]) for name in ("pairs", "bytes", "seconds")] for row in rows])
    alone, filled = points[points[:, 0] == 1], points[points[:, 0] > 1]
    columns = np.stack([np.ones(len(alone)), alone[:, 1] / 1e6], axis=1) / alone[:, 2:]
    (startup, word), _ = nnls(columns, np.ones(len(alone)))
    # The largest messages fill the link, and what each of its bytes takes is the time over all bytes.
    pairs, size, seconds = filled[np.argmax(filled[:, 1])]
    return {"startup_time": float(startup), "word_time": word / 1e6, "shared_word_time": seconds / (pairs * size)}


def profile(row: Row) -> Profile:
    """What the profiler said of a run, and its author of the process grid."""
    names = ("sends", "message_size", "waiting_time", "execution_time", "mean_distance", "exchanges")
    numbers = {name: float(row[name]) for name in names}
    return Profile(row["processes"], **numbers, dimensions=DIMENSIONS.get(row["application"]))


def accuracies(rows: Sequence[Row]) -> list[Row]:
    """Each predicted run with the accuracy of each method (%)."""
    done = []
    for cloud, application, cores in dict.fromkeys((row["cloud"], row["application"], row["cores"]) for row in rows):
        probed = network(cloud)
        chosen = [
            row for row in rows if (row["cloud"], row["application"], row["cores"]) == (cloud, application, cores)
        ]
        profiles = [profile(row) for row in chosen if row["phase"] == "train"]
        plain = [replace(entry, mean_distance=None, exchanges=None, dimensions=None) for entry in profiles]
        one = Hardware((Server("s0", cores),), **probed)
        models = {
            "synchronous": CloudModel.fit(profiles, one),
            "five columns": CloudModel.fit(plain, one),
            "published": CloudModel.fit(profiles, one, method="published"),
        }
        baseline = ScalabilityAnalysis.fit(profiles)
        for row in chosen:
            if row["phase"] == "train":
                continue
            mix = MIXES[row["mix"]]
            servers = (Server(f"s{i}", cores, mix[i % len(mix)]) for i in range(row["servers"]))
            hardware = Hardware(tuple(servers), **probed)
            spread = hardware.spread(row["processes"])
            predicted = {method: model.execution_time(hardware, spread) for method, model in models.items()}
            predicted["baseline"] = float(baseline.execution_time(hardware, row["processes"]))
            measured = float(row["execution_time"])
            done.append(row | {m: 100.0 * (1.0 - abs(predicted[m] / measured - 1.0)) for m in METHODS})
    return done


def report(results: Sequence[Row], *keys: str) -> None:
    """Mean accuracy in groups."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in results:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    print(f"\n{' '.join(f'{key:>11}' for key in keys)} {'runs':>5}", *(f"{method:>12}" for method in METHODS))
    for group, rows in groups.items():
        means = [np.mean([row[method] for row in rows]) for method in METHODS]
        flag = "" if means[0] > means[-1] else "   baseline better"
        print(" ".join(f"{value!s:>11}" for value in group), f"{len(rows):5d}", *(f"{m:11.1f}%" for m in means), flag)


def main() -> int:
    """Print the judgement; status 1 where a target is missed."""
    results = accuracies(read())
    reached = True
    for cloud in dict.fromkeys(row["cloud"] for row in results):
        here = [row for row in results if row["cloud"] == cloud]
        print(f"== {cloud}:", ", ".join(f"{name} {value:.4g} s" for name, value in network(cloud).items()))
        for keys in (("application",), ("servers", "cores"), ("mix",), ("processes",)):
            report(here, *keys)
        overall = {method: float(np.mean([row[method] for row in here])) for method in METHODS}
        print(f"\nmean accuracy over {len(here)} runs:", ", ".join(f"{m} {a:.1f} %" for m, a in overall.items()))
        patterns = sorted({(row["application"],) for row in here})
        cells = sorted({(row["application"], row["servers"], row["cores"]) for row in here})
        behind, behind_at = ([each for each in many if _lead(here, each) <= 0] for many in (patterns, cells))
        print(f"at least 90 %: {overall['synchronous'] >= 90}; better than the baseline on each pattern: {not behind}")
        where = "".join(f": {' '.join(map(str, cell))}" for cell in behind_at)
        print(f"behind it on {len(behind_at)} of {len(cells)} (pattern, servers, cores){where}\n")
        reached &= overall["synchronous"] >= 90 and not behind
    return 0 if reached else 1


def _lead(rows: Sequence[Row], kind: tuple[Any, ...]) -> float:
    """Points of accuracy that we are ahead of the baseline by, for a pattern, or for one on one kind of cluster."""
    keys = ("application", "servers", "cores")[: len(kind)]
    chosen = [row for row in rows if tuple(row[key] for key in keys) == kind]
    return float(np.mean([row["synchronous"] - row["baseline"] for row in chosen]))


if __name__ == "__main__":
    sys.exit(main())
