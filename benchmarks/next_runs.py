"""``python -m benchmarks.next_runs`` (``make next-runs``): what to run next, planned, at random, and on a grid.

From each judged campaign five training runs are drawn and learned. Then the same seconds are spent three ways on others
of its training runs: the first run of a plan for the runs to predict, learned, and planned again; at random; and such
that sizes and processors are covered evenly. Each chooses among the runs that fit into the seconds left by what the
model predicts of them; where the chosen run takes longer than that, the seconds are spent. The runs to predict, the
placements asked for, are then predicted. Nothing is written; the table is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.testbed.catalogue import JUDGED, TABLE_3, TABLE_4
from metasched.predictors.judging.groups import Group, groups
from metasched.predictors.robust.planning import plan
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.store.files.campaigns import read_campaign

#: Training runs to start from, and seconds to spend, in median runs.
START, SPENT = 5, (5, 10, 20)
#: Chooses the next run of those that fit into the seconds left, none where none is worth it.
Choice = Callable[[RobustPredictor, Group, list[Run], list[Run], float, np.random.Generator], Run | None]


def fitting(model: RobustPredictor, pool: list[Run], left: float) -> list[Run]:
    """The runs that take no more than the seconds left, by what the model predicts."""
    return [run for run in pool if model.predict(run.request).execution_time <= left]


def planned(
    model: RobustPredictor, group: Group, known: list[Run], pool: list[Run], left: float, rng: np.random.Generator
) -> Run | None:
    """The first run of a plan."""
    requests = [run.request for run in pool]
    found = plan(model.state.model, [run.request for run in group.rest], requests, left)
    return pool[requests.index(found.runs[0])] if found.runs else None


def at_random(
    model: RobustPredictor, group: Group, known: list[Run], pool: list[Run], left: float, rng: np.random.Generator
) -> Run | None:
    """Any run."""
    return pool[rng.integers(len(pool))]


def evenly(
    model: RobustPredictor, group: Group, known: list[Run], pool: list[Run], left: float, rng: np.random.Generator
) -> Run | None:
    """The run farthest from all known ones in the logarithms of N and P."""
    here, there = (np.log([(run.problem_size, run.processors) for run in runs]) for runs in (pool, known))
    return pool[int(np.linalg.norm(here[:, None] - there[None], axis=2).min(axis=1).argmax())]


CHOICES: dict[str, Choice] = {"planned": planned, "at random": at_random, "grid": evenly}


def spend(group: Group, every: Sequence[Run], choose: Choice, seed: int) -> list[tuple[int, float, float]]:
    """Runs made, mean PPE (%) and median width of 90 % intervals, with the seconds of each of :data:`SPENT` spent."""
    rng, known = np.random.default_rng(seed), list(group.training)
    pool = [run for run in every if run.phase == "train" and run not in known]
    median, spent, answer = float(np.median([run.execution_time for run in pool])), 0.0, []
    model = RobustPredictor().fit(known)
    for target in SPENT:
        while able := fitting(model, pool, left := target * median - spent):
            run = choose(model, group, known, able, left, rng)
            if run is None or run.execution_time > left:
                break
            spent += run.execution_time
            pool.remove(run)
            known.append(run)
            model = RobustPredictor().fit(known)
        made = [model.predict(run.request) for run in group.rest]
        off = [abs(one.execution_time / run.execution_time - 1.0) for one, run in zip(made, group.rest, strict=True)]
        widths = [one.interval.high / one.interval.low for one in made]
        answer.append((len(known) - START, 100.0 * float(np.mean(off)), float(np.median(widths))))
    return answer


def main() -> None:
    """Judge, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=Path, default=JUDGED.folder, help="folder with the campaigns")
    parser.add_argument("--only", default="", help="only campaigns whose name holds this")
    parser.add_argument("--draws", type=int, default=2, help="draws of the first runs of each campaign")
    arguments = parser.parse_args()
    names = [name for row in [*TABLE_3, *TABLE_4] if arguments.only in (name := "-".join(row))]
    found: dict[str, list[list[tuple[int, float, float]]]] = {name: [] for name in CHOICES}
    console = Console(stderr=True)
    with threadpool_limits(limits=1):
        for name in track(names, console=console, disable=not console.is_terminal):
            runs = read_campaign(arguments.campaigns / name).runs
            for seed in range(1, arguments.draws + 1):
                (group,) = groups(runs, START, seed)
                for which, choose in CHOICES.items():
                    found[which].append(spend(group, runs, choose, seed))
    shown = Table(title=f"{len(names)} campaigns, {arguments.draws} draws: mean PPE, median width of 90 % intervals")
    shown.add_column("seconds spent, in median runs", justify="right")
    for which in CHOICES:
        shown.add_column(which, justify="right")
    for place, target in enumerate(SPENT):
        cells = [np.array([case[place] for case in cases]) for cases in found.values()]
        shown.add_row(
            str(target),
            *(f"{c[:, 1].mean():.1f} %, {np.median(c[:, 2]):.2f} ({c[:, 0].mean():.0f} runs)" for c in cells),
        )
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
