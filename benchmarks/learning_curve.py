"""``python -m benchmarks.learning_curve`` (``make learning-curve``): how good a model is that has seen k runs.

Of every judged campaign k training runs are drawn several times, as ``metasched evaluate --training K --seed S`` draws
them, or once where it has no more than k; the model and its peers are fitted to these and predict the rest, loads as
observed, without learning. A second table follows models that start from few runs and learn every run after it was
predicted. Writes docs/learning-curve.md.
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

from benchmarks.testbed.catalogue import JUDGED, NEW, NEW_PROGRAMS, TABLE_3, TABLE_4
from benchmarks.verdicts import Target, table
from metasched.plain_numbers import number_of
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
    trainable = sum(run.phase == "train" for run in runs)
    cases: list[Case] = []
    learning: dict[str, list[tuple[float, ...]]] = {name: [] for name in CONTENDERS}
    with threadpool_limits(limits=1):
        for seed in range(FIRST_SEED, FIRST_SEED + draws):
            for name, make in CONTENDERS.items():
                for count in counts:
                    if count >= trainable and seed > FIRST_SEED:
                        continue  # the same runs again
                    found = evaluate(lambda _, make=make: make(), groups(runs, count, seed), observed, learning=False)
                    cases.append(Case(name, count, found.summary()))
                (group,) = groups(runs, START, seed)
                short = replace(group, rest=group.rest[: max(end for _, end in STRETCHES)])
                outcomes = evaluate(lambda _, make=make: make(), [short], observed).outcomes
                parts = (Evaluation(outcomes[begin:end]).summary()["ppe_mean"] for begin, end in STRETCHES)
                learning[name].append(tuple(parts))
    return Curve(tuple(cases), learning)


class Found:
    """What every contender came to on some campaigns.

    Parameters
    ----------
    curves : of the campaigns.
    """

    def __init__(self, curves: Sequence[Curve]) -> None:
        self.counts = list(dict.fromkeys(case.training for curve in curves for case in curve.cases))
        self._summaries: dict[tuple[str, int], list[dict[str, float]]] = {}
        for case in (case for curve in curves for case in curve.cases):
            self._summaries.setdefault((case.name, case.training), []).append(case.summary)
        self._learned = {
            name: np.mean([case for curve in curves for case in curve.learning[name]], axis=0) for name in CONTENDERS
        }

    def mean(self, name: str, count: int, key: str = "ppe_mean") -> float:
        """The mean of an entry of the summaries."""
        return float(np.mean([one[key] for one in self._summaries[name, count]]))

    def median(self, name: str, count: int, key: str) -> float:
        """The median of an entry of the summaries."""
        return float(np.median([one[key] for one in self._summaries[name, count]]))

    def by_count(self) -> str:
        """A row for each number of training runs, without learning."""
        lines = ["| runs | " + " | ".join(CONTENDERS) + " | 90 % coverage | width | fit (s) |"]
        lines.append("|---:|" + "---:|" * (len(CONTENDERS) + 3))
        for count in self.counts:
            cells = [f"{self.mean(one, count):.1f} / {self.median(one, count, 'ppe_median'):.1f}" for one in CONTENDERS]
            cells.append(f"{self.mean(OWN, count, 'interval_coverage'):.0%}")
            cells.append(f"{self.median(OWN, count, 'interval_width_median'):.4g}")
            lines.append(f"| {count} | {' | '.join(cells)} | {self.median(OWN, count, 'fit_seconds'):.2f} |")
        return "\n".join(lines)

    def learning(self) -> str:
        """A row for each contender that learned every run once it had predicted it."""
        lines = ["| method | " + " | ".join(map(_spoken, STRETCHES)) + " |", "|---|" + "---:|" * len(STRETCHES)]
        lines += [
            f"| {name} | " + " | ".join(f"{error:.1f}" for error in errors) + " |"
            for name, errors in self._learned.items()
        ]
        return "\n".join(lines)

    def targets(self) -> list[Target]:
        """What was asked of all this."""
        found = []
        for count in self.counts:
            best = min(self.mean(name, count) for name in CONTENDERS if name != OWN)
            here, held = self.mean(OWN, count), self.mean(OWN, count, "interval_coverage")
            middle, width = (self.median(OWN, count, key) for key in ("ppe_median", "interval_width_median"))
            if count in TARGETS:
                mean, median, widest = TARGETS[count]
                found += [
                    Target(
                        f"{count} runs, mean / median PPE",
                        f"<= {mean:g} / {median:g} %",
                        f"{here:.1f} / {middle:.1f} %",
                        here <= mean and middle <= median,
                    ),
                    Target(f"{count} runs, interval width", f"<= {widest:g}", f"{width:.4g}", width <= widest),
                ]
            least, most = HELD
            found += [
                Target(
                    f"{count} runs, coverage of 90 % intervals",
                    f"{least:.0%} to {most:.0%}",
                    f"{held:.1%}",
                    least <= held <= most,
                ),
                Target(f"{count} runs, against the best peer", f"< {best:.1f} %", f"{here:.1f} %", here < best),
            ]
        return found + [
            Target(f"learning from {START} runs, {_spoken(part)}", f"<= {limit:g} %", f"{error:.1f} %", error <= limit)
            for (part, limit), error in zip(STRETCHES.items(), self._learned[OWN], strict=True)
        ]


def _spoken(stretch: tuple[int, int]) -> str:
    return f"predictions {stretch[0] + 1} to {stretch[1]}"


def page(judged: Sequence[Curve], new: Sequence[Curve], names: str, draws: int, took: str) -> str:
    """docs/learning-curve.md, from the judged campaigns and those of programs that the design does not have."""
    parts = [
        "# Learning from few runs",
        f"Written by `make learning-curve` from {names} of the testbed's judged seed, on which no choice in any "
        f"model was based ([testbed](testbed.md)); training sets drawn from each: {draws}, or one where all of its "
        f"training runs are learned. {took}",
    ]
    for curves, title, of in (
        (judged, "", ""),
        (new, "A program that is not part of the design", ", a program that is not part of the design"),
    ):
        if not curves:
            continue
        found, below = Found(curves), "#" if title else ""
        if title:
            parts += [
                f"## {title}",
                f"{len(curves)} campaigns of a program that no other campaign runs.",
            ]
        parts += [
            f"##{below} By number of training runs, without learning",
            "Mean over campaigns and draws of the mean PPE / median of the median PPE (%), loads as observed; for "
            f"{OWN}, the coverage of 90 % intervals, the ratio of their upper to their lower end, and the "
            "time of a fit in seconds (medians).",
            found.by_count(),
            f"##{below} Learning after every run, from {START} runs",
            "Mean PPE (%) of successive predictions; each run is learned once it has been predicted.",
            found.learning(),
            f"##{below} Targets{of}",
            table(found.targets()),
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
    rows = [*TABLE_3, *TABLE_4]
    every = [arguments.campaigns / "-".join(row) for row in rows] + [NEW.folder / "-".join(row) for row in NEW_PROGRAMS]
    folders = [folder for folder in every if arguments.only in folder.name]
    begin = time.monotonic()
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(judge, folder, arguments.draws, arguments.counts) for folder in folders]
        console = Console(stderr=True)
        for future in track(waiting, console=console, disable=not console.is_terminal):
            future.result()
    judged = [one for one in folders if one.parent != NEW.folder]
    which = "all rows of Tables 3 and 4" if len(judged) == len(rows) else ", ".join(one.name for one in judged)
    minutes = (time.monotonic() - begin) / 60.0
    took = f"It took {minutes:.1f} minutes with {number_of(arguments.workers, 'worker')}."
    curves = [future.result() for future in waiting]
    text = page(curves[: len(judged)], curves[len(judged) :], which, arguments.draws, took)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
