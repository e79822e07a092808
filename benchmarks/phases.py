"""An application of two phases on the testbed: one model for the whole run beside models for phases and processes.

The first phase keeps all processes together, N log N; in the second, N^2, the last process has most to do. Run as
``python -m benchmarks.phases [--campaign DIR]``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Evaluation, Outcome
from metasched.predictors.judging.groups import groups
from metasched.predictors.phases.predictor import PhasedPredictor, loads_of
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Prediction, Run
from metasched.store.files.campaigns import read_campaign

CAMPAIGN = Path(__file__).parent / "testbed" / "campaigns" / "twophase-intel-random"


def whole_run_loads(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Loads of every process averaged over the whole run, arrays of shape (P,): phases are not distinguished."""
    cpu, bw, time = (np.zeros(run.processors) for _ in range(3))
    for mark in run.marks:
        cpu[mark.process] += mark.avg_avail_cpu * mark.execution_time
        bw[mark.process] += mark.avg_avail_bw * mark.execution_time
        time[mark.process] += mark.execution_time
    return cpu / time, bw / time


def main(
    campaign: Annotated[Path, typer.Option(help="Folder of the campaign, with phases.csv.")] = CAMPAIGN,
    learn: Annotated[bool, typer.Option("--learn", help="Also let the models learn each run; takes minutes.")] = False,
) -> None:
    """Print the mean PPE inside and outside the range of sizes trained on, frozen after training and learning on."""
    (group,) = groups(read_campaign(campaign).runs)
    training, asked, progress = group.training, group.rest, Console(stderr=True)
    smallest, largest = (pick(run.problem_size for run in training) for pick in (min, max))
    table = Table(title="mean PPE (%) and coverage of 90 % intervals, inside and outside the sizes trained on")
    for heading in ("model", "learns on", "inside", "outside", "coverage"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for learning in (False, True)[: 1 + learn]:
        single = RobustPredictor(training[0].application, training[0].cluster).fit(training)
        phased = PhasedPredictor(training[0].application, training[0].cluster).fit(training)
        names = [phase.name for phase in phased.state.phases]
        ways: dict[str, Callable[[Run], Prediction]] = {
            "single model, minima": lambda run, model=single: model.predict(observed(run, model, 0.9).request),
            "phases, minima": lambda run, model=phased: model.predict(observed(run, model, 0.9).request),
            "phases and processes, loads of the run": lambda run, model=phased: model.predict_processes(
                run.problem_size, *whole_run_loads(run)
            ),
            "phases and processes, loads of the phases": lambda run, model=phased, names=names: model.predict_processes(
                run.problem_size, *loads_of(run, names)
            ),
        }
        outcomes: dict[str, list[Outcome]] = {name: [] for name in ways}
        for run in track(asked, "predicting", console=progress, disable=not progress.is_terminal):
            for name, predict in ways.items():
                outcomes[name].append(Outcome(run, predict(run)))
            if learning:
                for model in (single, phased):
                    model.learn(run)
                    model.settle()
        for name, found in outcomes.items():
            inside = [one for one in found if smallest <= one.run.problem_size <= largest]
            outside = [one for one in found if not smallest <= one.run.problem_size <= largest]
            table.add_row(
                name,
                "yes" if learning else "no",
                *(f"{Evaluation(tuple(part)).summary()['ppe_mean']:.1f}" for part in (inside, outside)),
                f"{Evaluation(tuple(found)).summary()['interval_coverage']:.0%}",
            )
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
