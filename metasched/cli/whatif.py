"""``metasched whatif``: how many processors pay, and what changes with a node drained, another N or another P."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import consulting, figures, output, placing
from metasched.cli.models import LevelOption, check_level
from metasched.cli.options import JsonOption
from metasched.placement.answers import RankingTable, placement_document
from metasched.placement.names import fold
from metasched.placement.question import Question
from metasched.placement.whatif import Scaling, drained, scaling
from metasched.predictors.contract import Predictions


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("whatif")(whatif)


def whatif(
    application: placing.ApplicationOption,
    problem_size: placing.SizeOption,
    clusters: placing.ClustersOption = None,
    url: consulting.UrlOption = None,
    config: consulting.ConfigOption = None,
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
    """Show how many processors pay, and what changes when nodes are drained, N grows, or P is given.

    Without --clusters the daemon is asked.
    """
    check_level(level)
    size = problem_size * times
    gone, counts = placing.nodes(drain, where="--drain"), placing.counts(processors, where="--processors")
    consulting.one_source(clusters, url, model=model, db=database, loads=loads, at=at)
    if clusters is not None:
        scene = placing.scene(application, clusters, model, database, loads, at)
        now = Question(problem_size, scene.constraints, contention=scene.contention(problem_size), top=2, level=level)
        changed = placing.constrained(scene.constraints, processors=counts)
        then = Question(size, changed, contention=scene.contention(size), top=2, level=level)
        without = replace(scene, clusters=drained(scene.clusters, gone))
        told = placing.ranked(application, scene, now), placing.ranked(application, without, then)
    else:
        asked = {"application": application, "problem_size": problem_size, "top": 2, "level": level}
        changes = {
            "problem_size": size,
            "drain": fold(sorted(gone)) if gone else "",
            **placing.spelt({"processors": counts}),
        }
        told = tuple(
            consulting.consult(config, url, "POST", "/v1/rankings", question) for question in (asked, asked | changes)
        )
    before, after = (consulting.ranking(each, where=url or "the daemon") for each in told)
    if not (before.placements and after.placements):
        why = before.why or after.why
        if as_json:
            output.print_json({"before": None, "after": None, "why": why})
        output.complain(why)
        raise typer.Exit(1)
    curve = after.curve()
    found = scaling(curve)
    if picture is not None:
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


def _answered(before: RankingTable, after: RankingTable, found: Scaling) -> dict[str, Any]:
    columns = (found.processors, found.execution_time, found.speedup, found.efficiency)
    best = [each.placements[0] for each in (before, after)]
    was, will_be = (each.record() for each in best)
    return {
        "before": placement_document(was, best[0].costs),
        "after": placement_document(will_be, best[1].costs),
        "change": will_be.completion / was.completion - 1.0,
        "fastest": found.fastest,
        "enough": found.enough,
        "by_processors": [
            {"processors": p, "execution_time": time, "speedup": speedup, "efficiency": efficiency}
            for p, time, speedup, efficiency in zip(*(column.tolist() for column in columns), strict=True)
        ],
        "warnings": list(after.warnings),
    }


def _show_change(before: RankingTable, after: RankingTable, found: Scaling) -> None:
    for name, ranking in (("now", before), ("then", after)):
        best = ranking.placements[0].record()
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
