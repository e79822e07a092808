"""``metasched whatif``: how many processors pay, and what changes with a node drained, another N or another P."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import figures, output, placing
from metasched.cli.models import LevelOption, check_level
from metasched.cli.options import JsonOption
from metasched.placement.names import fold
from metasched.placement.question import InfeasibleError, Question, Ranking
from metasched.placement.ranker import rank
from metasched.placement.whatif import Scaling, drained, scaling
from metasched.predictors.contract import Predictions


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("whatif")(whatif)


def whatif(
    application: placing.ApplicationOption,
    problem_size: placing.SizeOption,
    clusters: placing.ClustersOption,
    model: placing.ModelOption = None,
    database: placing.DatabaseOption = None,
    loads: placing.LoadsOption = None,
    at: placing.AtOption = None,
    drain: Annotated[str, typer.Option(help="Nodes taken away, such as n[1-3].")] = "",
    times: Annotated[float, typer.Option(help="Factor on the problem size.")] = 1.0,
    processors: placing.ProcessorsOption = "",
    picture: Annotated[Path | None, typer.Option(help="PNG of time and efficiency against P to write.")] = None,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Show how many processors pay, and what changes when nodes are drained, N grows, or P is given."""
    check_level(level)
    scene = placing.scene(application, clusters, model, database, loads, at)
    size = problem_size * times
    now = Question(problem_size, scene.constraints, contention=scene.contention(problem_size), top=2, level=level)
    changed = placing.constrained(scene.constraints, processors=placing.counts(processors, where="--processors"))
    states = drained(scene.clusters, placing.nodes(drain, where="--drain"))
    then = Question(size, changed, contention=scene.contention(size), top=2, level=level)
    try:
        before, after = rank(scene.clusters, scene.predictors, now), rank(states, scene.predictors, then)
    except InfeasibleError as error:
        if as_json:
            output.print_json({"before": None, "after": None, "why": str(error)})
        output.complain(str(error))
        raise typer.Exit(1) from None
    found = scaling(after.curve)
    if picture is not None:
        curve = after.curve
        figures.save(
            figures.time_and_efficiency(
                curve.processors.tolist(),
                Predictions(curve.execution_time, curve.low, curve.high, level),
                f"{application}, N = {size:g}: the best placement for each P",
            ),
            picture,
        )
    if as_json:
        output.print_json(_answered(before, after, found))
    else:
        _show_change(before, after, found)


def _answered(before: Ranking, after: Ranking, found: Scaling) -> dict[str, Any]:
    columns = (found.processors, found.execution_time, found.speedup, found.efficiency)
    return {
        "before": placing.document(before.placements[0], dict(before.costs[0])),
        "after": placing.document(after.placements[0], dict(after.costs[0])),
        "change": after.placements[0].completion / before.placements[0].completion - 1.0,
        "fastest": found.fastest,
        "enough": found.enough,
        "by_processors": [
            {"processors": p, "execution_time": time, "speedup": speedup, "efficiency": efficiency}
            for p, time, speedup, efficiency in zip(*(column.tolist() for column in columns), strict=True)
        ],
        "warnings": list(after.warnings),
    }


def _show_change(before: Ranking, after: Ranking, found: Scaling) -> None:
    for name, ranking in (("now", before), ("then", after)):
        best = ranking.placements[0]
        chosen = best.resource_set
        output.out.print(
            f"{name}: {best.completion:.4g} s with {chosen.processors} processors on {chosen.cluster}: "
            f"{fold(chosen.nodes)}",
            markup=False,
            soft_wrap=True,
        )
    shown = Table(title="how many processors", title_justify="left", box=box.SIMPLE)
    for heading in ("P", "time s", "speedup", "efficiency", ""):
        shown.add_column(heading, justify="right" if heading else "left")
    for p, time, speedup, efficiency in zip(
        found.processors, found.execution_time, found.speedup, found.efficiency, strict=True
    ):
        note = "fastest" if p == found.fastest else "enough: within 5% of the fastest" if p == found.enough else ""
        shown.add_row(str(p), f"{time:.4g}", f"{speedup:.3g}", f"{efficiency:.0%}", note)
    output.out.print(shown)
    for line in after.warnings:
        output.complain(f"warning: {line}")
