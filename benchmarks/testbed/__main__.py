"""The testbed's commands: ``python -m benchmarks.testbed --help``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.testbed import campaign as campaigns
from benchmarks.testbed import catalogue, plan
from benchmarks.testbed.applications import APPLICATIONS
from benchmarks.testbed.clusters import CLUSTERS
from benchmarks.testbed.loading import LOADINGS
from metasched.records import InputError

app = typer.Typer(add_completion=False)
console = Console(stderr=True)

Workers = Annotated[int, typer.Option(min=1, help="simulations at a time")]
CORES = os.cpu_count() or 1


@app.callback()
def testbed() -> None:
    """Real MPI programs on simulated clusters."""


def _bar(what: str) -> campaigns.Progress:
    return lambda outcomes, total: track(outcomes, what, total=total, console=console)


def _named(option: str, name: str, known: Iterable[str]) -> str:
    if name not in (names := list(known)):
        raise InputError(f"{name!r} is not known, expected one of {', '.join(names)}", where=option)
    return name


@app.command()
def campaign(
    application: Annotated[str, typer.Option(help="program to run")],
    cluster: Annotated[str, typer.Option(help="cluster to run it on")],
    output: Annotated[Path, typer.Option("--output", "-o", help="folder to write")],
    loading: Annotated[str, typer.Option(help="random, grid or dedicated")] = "random",
    seed: Annotated[int, typer.Option(min=0)] = 1,
    predictions: Annotated[int, typer.Option(min=1, help="runs after the training ones")] = plan.PREDICTIONS,
    workers: Workers = CORES,
) -> None:
    """Make one campaign: training runs, then runs to predict, one after the other in one timeline of loads."""
    scenario = campaigns.Scenario(
        APPLICATIONS[_named("--application", application, APPLICATIONS)],
        CLUSTERS[_named("--cluster", cluster, CLUSTERS)],
        loading,
        LOADINGS[_named("--loading", loading, LOADINGS)],
        seed,
        predictions,
    )
    campaigns.write(scenario, campaigns.make(scenario, workers, _bar(scenario.name)), output)


@app.command()
def tables(
    output: Annotated[Path, typer.Option("--output", "-o", help="folder to write")] = catalogue.COMMITTED,
    only: Annotated[str, typer.Option(help="campaigns whose name holds this")] = "",
    workers: Workers = CORES,
) -> None:
    """Make every campaign behind the paper's tables, and the idle runs for porting."""
    for scenario in catalogue.scenarios():
        if only in scenario.name:
            campaigns.write(scenario, campaigns.make(scenario, workers, _bar(scenario.name)), output / scenario.name)
    (output / "porting").mkdir(parents=True, exist_ok=True)
    for scenario in catalogue.portings():
        name = f"{scenario.application.name}-{scenario.cluster.name}"
        if only in f"porting-{name}":
            made = campaigns.make(scenario, workers, _bar(scenario.name), catalogue.porting_requests)
            campaigns.write_runs(scenario, made, output / "porting" / f"{name}.csv")


if __name__ == "__main__":
    try:
        app()
    except InputError as error:
        console.print(f"error: {error}", style="red", highlight=False)
        sys.exit(2)
