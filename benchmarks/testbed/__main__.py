"""The testbed's commands: ``python -m benchmarks.testbed --help``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.testbed import campaign as campaigns
from benchmarks.testbed import catalogue, checking, metered, plan, report
from benchmarks.testbed import coscheduled as pairs_of_jobs
from benchmarks.testbed.applications import APPLICATIONS, MORE_APPLICATIONS
from benchmarks.testbed.clusters import CLUSTERS
from benchmarks.testbed.loading import LOADINGS, Loading
from benchmarks.testbed.simulator import Progress
from benchmarks.testbed.traces import trace_loading
from metasched.records import InputError
from metasched.store.files.runs import read_runs, write_runs

app = typer.Typer(add_completion=False)
console = Console(stderr=True)

CORES = os.cpu_count() or 1
PROGRAMS = APPLICATIONS | MORE_APPLICATIONS
Workers = Annotated[int, typer.Option(min=1, help="Simulations at a time; does not change the outcome.")]
Cluster = Annotated[str, typer.Option(help=f"Cluster: {', '.join(CLUSTERS)}.")]
LoadingName = Annotated[str, typer.Option("--loading", help=f"Loads: {', '.join(LOADINGS)}.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything that is drawn.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")]
Judged = Annotated[bool, typer.Option("--judged", help="The campaigns that only judge, not those of the design.")]
Folder = Annotated[Path | None, typer.Option("--output", "-o", help="Folder to write; the committed one.")]
Only = Annotated[str, typer.Option(help="Only those whose name holds this.")]
Traces = Annotated[
    Path | None, typer.Option(help="Folder of files in the form of loads.csv to replay; takes the place of --loading.")
]


@app.callback()
def testbed() -> None:
    """Real MPI programs on simulated clusters."""


def _bar(what: str) -> Progress:
    return lambda outcomes, total: track(outcomes, what, total=total, console=console)


def _named(option: str, name: str, known: Iterable[str]) -> str:
    if name not in (names := list(known)):
        raise InputError(f"{name!r} is not known, expected one of {', '.join(names)}", where=option)
    return name


def _collection(judged: bool) -> catalogue.Collection:
    return catalogue.JUDGED if judged else catalogue.DESIGN


def _generator(loading: str, traces: Path | None) -> tuple[str, Loading]:
    if traces is not None:
        return "traces", trace_loading(traces)
    return loading, LOADINGS[_named("--loading", loading, LOADINGS)]


@app.command()
def campaign(
    application: Annotated[str, typer.Option(help=f"Program to run: {', '.join(PROGRAMS)}.")],
    cluster: Cluster,
    output: Output,
    loading: LoadingName = "random",
    traces: Traces = None,
    seed: Seed = 1,
    predictions: Annotated[int, typer.Option(min=1, help="Runs after the training ones.")] = plan.PREDICTIONS,
    workers: Workers = CORES,
) -> None:
    """Make one campaign: training runs, then runs to predict, one after the other in one timeline of loads."""
    scenario = campaigns.Scenario(
        PROGRAMS[_named("--application", application, PROGRAMS)],
        CLUSTERS[_named("--cluster", cluster, CLUSTERS)],
        *_generator(loading, traces),
        seed,
        predictions,
    )
    campaigns.write(scenario, campaigns.make(scenario, workers, _bar(scenario.name)), output)


@app.command()
def coscheduled(
    cluster: Cluster,
    output: Output,
    loading: LoadingName = "dedicated",
    traces: Traces = None,
    seed: Seed = 1,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of jobs.")] = pairs_of_jobs.PAIRS,
    workers: Workers = CORES,
) -> None:
    """Make a co-scheduled campaign: pairs of jobs that share nodes, links or nothing, timed alone and together."""
    scenario = pairs_of_jobs.Scenario(
        CLUSTERS[_named("--cluster", cluster, CLUSTERS)], *_generator(loading, traces), seed, pairs
    )
    pairs_of_jobs.write(scenario, pairs_of_jobs.make(scenario, workers, _bar(scenario.name)), output)


@app.command()
def tables(
    judged: Judged = False,
    output: Folder = None,
    only: Only = "",
    workers: Workers = CORES,
) -> None:
    """Make every campaign behind the paper's tables, the co-scheduled ones, and the idle runs for porting."""
    collection = _collection(judged)
    output = output or collection.folder
    _programs(collection, output, only, workers)
    for pairing in () if judged else catalogue.pairings():
        if only in pairing.name:
            made = pairs_of_jobs.make(pairing, workers, _bar(pairing.name))
            pairs_of_jobs.write(pairing, made, output / pairing.name)
    for scenario in catalogue.laid_out(collection):
        if only in f"layouts-{scenario.name}":
            made = campaigns.make(scenario, workers, _bar(f"layouts-{scenario.name}"), catalogue.layouts_drawn)
            campaigns.write(scenario, made, output / "layouts" / scenario.name)
    (output / "porting").mkdir(parents=True, exist_ok=True)
    for scenario in catalogue.portings(collection):
        name = f"{scenario.application.name}-{scenario.cluster.name}"
        if only in f"porting-{name}":
            made = campaigns.make(scenario, workers, _bar(f"porting-{name}"), catalogue.porting_requests)
            write_runs(output / "porting" / f"{name}.csv", made.runs)


@app.command()
def other_programs(
    judged: Judged = False,
    output: Folder = None,
    only: Only = "",
    workers: Workers = CORES,
) -> None:
    """Make every campaign of programs that the tables do not have."""
    collection = catalogue.NEW if judged else catalogue.OTHER
    _programs(collection, output or collection.folder, only, workers)


def _programs(collection: catalogue.Collection, output: Path, only: str, workers: int) -> None:
    """Make the campaigns of a collection that run one program at a time."""
    for scenario in catalogue.scenarios(collection):
        if only in scenario.name:
            campaigns.write(scenario, campaigns.make(scenario, workers, _bar(scenario.name)), output / scenario.name)


@app.command()
def energy(
    judged: Judged = False,
    output: Folder = None,
    only: Only = "",
    workers: Workers = CORES,
    seed: Annotated[int | None, typer.Option(min=0, help="All six, of another seed; with --output.")] = None,
) -> None:
    """Make every campaign with clocks and energy."""
    collection = _collection(judged)
    if seed is not None:
        if output is None:
            raise typer.BadParameter("--seed needs --output, so that the committed campaigns remain")
        collection = replace(collection, seed=seed)
    for scenario, polls in metered.scenarios(collection):
        if only in scenario.name:
            made = metered.make(scenario, polls, workers, _bar(f"metered-{scenario.name}"))
            campaigns.write(scenario, made, (output or collection.folder) / "metered" / scenario.name)


@app.command()
def summary(judged: Judged = False) -> None:
    """Show what each committed campaign holds, and how well a model of the true form predicts it."""
    for table in report.summary(_collection(judged)):
        Console(width=report.WIDTH).print(table)


@app.command()
def check(
    judged: Judged = False,
    only: Only = "",
    runs: Annotated[int, typer.Option(min=2, help="Runs of each campaign that are simulated again.")] = 24,
    workers: Workers = CORES,
) -> None:
    """Simulate some runs of every committed campaign again and say which would no longer come out the same."""
    collection = _collection(judged)
    known = {one.name: (one, None) for one in catalogue.scenarios(collection)}
    known |= {f"layouts/{one.name}": (one, catalogue.layouts_drawn) for one in catalogue.laid_out(collection)}
    found = {
        name: checking.check(one, read_runs(collection.folder / name / "runs.csv"), runs, workers, draw)
        for name, (one, draw) in track(known.items(), "checking", console=console)
        if only in name
    }
    Console(width=report.WIDTH).print(report.checks_table(found))
    if not all(one.passed for one in found.values()):
        raise typer.Exit(1)


@app.command()
def loads(traces: Traces = None) -> None:
    """Show the statistics of the loadings, and of recorded traces beside them."""
    loadings: dict[str, Loading] = {name: LOADINGS[name] for name in ("random", "grid")}
    if traces is not None:
        loadings["traces"] = trace_loading(traces)
    Console(width=report.WIDTH).print(report.loadings_table(loadings))


if __name__ == "__main__":
    try:
        app()
    except InputError as error:
        console.print(f"error: {error}", style="red", highlight=False, soft_wrap=True)
        sys.exit(2)
