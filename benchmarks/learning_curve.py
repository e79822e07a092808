"""``python -m benchmarks.learning_curve`` (``make learning-curve``): how good a model is that has seen k runs.

Of every judged campaign k training runs are drawn several times, as ``metasched evaluate --training K --seed S`` draws
them; the model and its peers are fitted to these and predict the rest, loads as observed, without learning. A second
table follows models that start from few runs and learn every run after it was predicted. Writes docs/learning-curve.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from benchmarks.testbed.catalogue import JUDGED, TABLE_3, TABLE_4
from benchmarks.verdicts import Target, table
from metasched.predictors.contract import Predictor
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Evaluation, evaluate
from metasched.predictors.judging.groups import groups
from metasched.predictors.judging.peers import PEERS
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.store.files.campaigns import read_campaign

ROOT = Path(__file__).resolve().parents[1]
#: Training runs: mean over campaigns of mean PPE (%), median of medians (%), and width of intervals to reach.
TARGETS = {
    3: (33.0, 23.0, 4.5),
    5: (23.0, 14.0, 2.5),
    8: (14.5, 9.5, 1.9),
    12: (11.0, 7.7, 1.6),
    20: (9.5, 6.3, 1.45),
    40: (7.8, 5.0, 1.45),
    60: (7.2, 4.8, 1.36),
}
HELD = (0.88, 0.93)  # share of 90 % intervals that shall hold, at every number of runs
#: Learning as one goes: training runs to start from, and the predictions judged (from, to) with the mean PPE to reach.
START = 5
STRETCHES = {(0, 10): 11.0, (10, 30): 6.5}
#: Of several draws the first has this seed.
FIRST_SEED = 1
DRAWS = 3

OWN = "robust"
CONTENDERS: dict[str, Callable[[], Predictor]] = {OWN: RobustPredictor, **{peer.name: peer for peer in PEERS}}


@dataclass(frozen=True)
class Case:
    """What one contender did on one campaign with one draw.

    Parameters
    ----------
    name : the contender.
    training : how many runs it was fitted to.
    summary : see ``Evaluation.summary``.
    """

    name: str
    training: int
    summary: dict[str, float]


@dataclass(frozen=True)
class Curve:
    """Cases without learning; and mean PPE (%) of each stretch by contender, learning as one goes, case by case."""

    cases: tuple[Case, ...]
    learning: dict[str, list[tuple[float, ...]]]


def judge(folder: Path, draws: int, counts: Sequence[int]) -> Curve:
    """Every contender on one campaign."""
    runs = read_campaign(folder).runs
    cases: list[Case] = []
    learning: dict[str, list[tuple[float, ...]]] = {name: [] for name in CONTENDERS}
    with threadpool_limits(limits=1):
        for seed in range(FIRST_SEED, FIRST_SEED + draws):
            for name, make in CONTENDERS.items():
                for count in counts:
                    found = evaluate(lambda _, make=make: make(), groups(runs, count, seed), observed, learning=False)
                    cases.append(Case(name, count, found.summary()))
                (group,) = groups(runs, START, seed)
                short = replace(group, rest=group.rest[: max(end for _, end in STRETCHES)])
                outcomes = evaluate(lambda _, make=make: make(), [short], observed).outcomes
                parts = (Evaluation(outcomes[begin:end]).summary()["ppe_mean"] for begin, end in STRETCHES)
                learning[name].append(tuple(parts))
    return Curve(tuple(cases), learning)


def page(curves: Sequence[Curve], names: str, draws: int, took: str) -> str:
    """docs/learning-curve.md."""
    counts = list(dict.fromkeys(case.training for curve in curves for case in curve.cases))
    found = {
        (name, count): [
            case.summary for curve in curves for case in curve.cases if (case.name, case.training) == (name, count)
        ]
        for name in CONTENDERS
        for count in counts
    }

    def mean(name: str, count: int) -> float:
        return float(np.mean([one["ppe_mean"] for one in found[name, count]]))

    def median(name: str, count: int, key: str) -> float:
        return float(np.median([one[key] for one in found[name, count]]))

    def held(count: int) -> float:
        return float(np.mean([one["interval_coverage"] for one in found[OWN, count]]))

    head = "| runs | " + " | ".join(CONTENDERS) + " | 90 % coverage | width | fit (s) |"
    lines = [head, "|---:|" + "---:|" * (len(CONTENDERS) + 3)]
    for count in counts:
        cells = [f"{mean(name, count):.1f} / {median(name, count, 'ppe_median'):.1f}" for name in CONTENDERS]
        width, fit = (median(OWN, count, key) for key in ("interval_width_median", "fit_seconds"))
        lines.append(f"| {count} | {' | '.join(cells)} | {held(count):.0%} | {width:.4g} | {fit:.2f} |")
    stretches = [f"predictions {begin + 1} to {end}" for begin, end in STRETCHES]
    learned = {
        name: np.mean([case for curve in curves for case in curve.learning[name]], axis=0) for name in CONTENDERS
    }
    going = ["| method | " + " | ".join(stretches) + " |", "|---|" + "---:|" * len(stretches)]
    going += [
        f"| {name} | " + " | ".join(f"{error:.1f}" for error in errors) + " |" for name, errors in learned.items()
    ]

    targets = []
    for count in counts:
        best = min(mean(name, count) for name in CONTENDERS if name != OWN)
        here, middle, width = (
            mean(OWN, count),
            median(OWN, count, "ppe_median"),
            median(OWN, count, "interval_width_median"),
        )
        least, most = HELD
        if count in TARGETS:
            asked = TARGETS[count]
            targets += [
                Target(
                    f"{count} runs, mean / median PPE",
                    f"<= {asked[0]:g} / {asked[1]:g} %",
                    f"{here:.1f} / {middle:.1f} %",
                    here <= asked[0] and middle <= asked[1],
                ),
                Target(f"{count} runs, interval width", f"<= {asked[2]:g}", f"{width:.4g}", width <= asked[2]),
            ]
        targets += [
            Target(
                f"{count} runs, coverage of 90 % intervals",
                f"{least:.0%} to {most:.0%}",
                f"{held(count):.1%}",
                least <= held(count) <= most,
            ),
            Target(f"{count} runs, against the best peer", f"< {best:.1f} %", f"{here:.1f} %", here < best),
        ]
    targets += [
        Target(f"learning from {START} runs, {what}", f"<= {limit:g} %", f"{error:.1f} %", error <= limit)
        for what, limit, error in zip(stretches, STRETCHES.values(), learned[OWN], strict=True)
    ]
    parts = [
        "# Learning from few runs",
        f"Written by `make learning-curve` from {names} of the testbed's judged seed, on which no choice in any "
        f"model was based ([testbed](testbed.md)); training sets drawn from each: {draws}. {took}",
        "## By number of training runs, without learning",
        "Mean over campaigns and draws of the mean PPE / median of the median PPE (%), loads as observed; for "
        f"{OWN}, the coverage of 90 % intervals, the ratio of their upper to their lower end, and the "
        "time of a fit in seconds (medians).",
        "\n".join(lines),
        f"## Learning after every run, from {START} runs",
        "Mean PPE (%) of successive predictions; each run is learned once it has been predicted.",
        "\n".join(going),
        "## Targets",
        table(targets),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Judge, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=Path, default=JUDGED.folder, help="folder with the campaigns")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "learning-curve.md", help="page to write")
    parser.add_argument("--only", default="", help="only campaigns whose name holds this")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of training runs of each campaign")
    parser.add_argument("--counts", type=int, nargs="+", default=[*TARGETS], help="numbers of training runs")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    arguments = parser.parse_args()
    names = ["-".join(row) for row in [*TABLE_3, *TABLE_4]]
    folders = [arguments.campaigns / name for name in names if arguments.only in name]
    begin = time.monotonic()
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(judge, folder, arguments.draws, arguments.counts) for folder in folders]
        console = Console(stderr=True)
        for future in track(waiting, console=console, disable=not console.is_terminal):
            future.result()
    which = "all rows of Tables 3 and 4" if len(folders) == len(names) else ", ".join(one.name for one in folders)
    minutes = (time.monotonic() - begin) / 60.0
    took = f"It took {minutes:.1f} minutes with {arguments.workers} workers."
    text = page([future.result() for future in waiting], which, arguments.draws, took)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
