"""``metasched rank``: where, and on how many processors, an application should run next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from metasched.cli import output, placing
from metasched.cli.models import LevelOption, check_level
from metasched.cli.options import JsonOption
from metasched.placement.freshness import STALE_AFTER
from metasched.placement.question import InfeasibleError, Question, Ranking
from metasched.placement.ranker import rank
from metasched.records import InputError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("rank")(rank_verb)


def rank_verb(
    application: placing.ApplicationOption,
    problem_size: placing.SizeOption,
    clusters: placing.ClustersOption,
    model: placing.ModelOption = None,
    database: placing.DatabaseOption = None,
    loads: placing.LoadsOption = None,
    at: placing.AtOption = None,
    forecast: Annotated[bool, typer.Option("--forecast", help="Forecast the recorded loads over the run.")] = False,
    processors: placing.ProcessorsOption = "",
    min_processors: Annotated[int | None, typer.Option(min=1, help="Least number of processors.")] = None,
    max_processors: Annotated[int | None, typer.Option(min=1, help="Largest number of processors.")] = None,
    per_node: Annotated[int | None, typer.Option(min=1, help="Most processors on one node.")] = None,
    memory: Annotated[float | None, typer.Option(help="Megabytes that each node must have.")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="Feature that each node must have; repeatable.")] = None,
    exclusive: Annotated[bool, typer.Option("--exclusive", help="Only nodes without any job.")] = False,
    only: Annotated[list[str] | None, typer.Option("--cluster", help="Only this cluster; repeatable.")] = None,
    exclude: Annotated[str, typer.Option(help="Nodes that it must not take, such as n[1-3].")] = "",
    weight: Annotated[
        list[str] | None,
        typer.Option(help="TERM=PRICE in seconds: time, core_hours, energy, risk, harm; repeatable."),
    ] = None,
    pareto: Annotated[bool, typer.Option("--pareto", help="Only what nothing beats in every weighted term.")] = False,
    saving: Annotated[float, typer.Option(help="Least part that twice the processors must save.")] = 0.0,
    near_tie: Annotated[float, typer.Option(help="Scores this close, as a part, count as equal.")] = 0.0,
    rotate: Annotated[str | None, typer.Option(help="Word that shuffles placements and nodes that are equal.")] = None,
    stale_after: Annotated[float, typer.Option(min=0, help="Age of loads from which on they are stale (s).")] = (
        STALE_AFTER
    ),
    top: Annotated[int, typer.Option(min=1, help="How many placements to show.")] = 10,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Rank the resource sets of the described clusters by predicted completion."""
    check_level(level)
    scene = placing.scene(application, clusters, model, database, loads, at)
    if forecast and scene.recorded is None:
        raise InputError("--forecast is given without --loads")
    known = [cluster.name for cluster in scene.clusters]
    for name in only or ():
        if name not in known:
            raise InputError(f"--cluster {name} is not described in {clusters}, expected one of {', '.join(known)}")
    constraints = placing.constrained(
        scene.constraints,
        processors=placing.counts(processors, where="--processors"),
        min_processors=min_processors,
        max_processors=max_processors,
        per_node=per_node,
        memory=memory,
        features=frozenset(feature or ()),
        exclusive=exclusive,
        clusters=frozenset(only or ()),
        exclude=placing.nodes(exclude, where="--exclude"),
    )
    question = Question(
        problem_size,
        constraints,
        placing.objective(weight, saving),
        scene.contention(problem_size),
        top=top,
        level=level,
        pareto=pareto,
        tolerance=near_tie,
        rotation=rotate,
        stale_after=stale_after,
        forecast=scene.recorded if forecast else None,
    )
    try:
        ranking = rank(scene.clusters, scene.predictors, question)
    except InfeasibleError as error:
        if as_json:
            output.print_json(
                {"application": application, "problem_size": problem_size, "placements": [], "why": str(error)}
            )
        output.complain(str(error))
        raise typer.Exit(1) from None
    for line in ranking.warnings:
        output.complain(f"warning: {line}")
    if as_json:
        output.print_json(_document(application, problem_size, ranking))
        return
    title = f"{application}, problem size {problem_size:g}: {ranking.compared} resource sets compared"
    placing.show(title, ranking)


def _document(application: str, problem_size: float, ranking: Ranking) -> dict[str, Any]:
    curve = ranking.curve
    columns = (curve.processors, curve.execution_time, curve.low, curve.high, curve.completion)
    return {
        "application": application,
        "problem_size": problem_size,
        "placements": [
            {"rank": number, **placing.document(placement, dict(costs))}
            for number, (placement, costs) in enumerate(zip(ranking.placements, ranking.costs, strict=True), start=1)
        ],
        "by_processors": [
            {"processors": p, "execution_time": t, "interval": {"low": low, "high": high}, "completion": done}
            for p, t, low, high, done in zip(*(column.tolist() for column in columns), strict=True)
        ],
        "compared": ranking.compared,
        "evaluations": ranking.evaluations,
        "gap": ranking.gap,
        "ruled_out": {name: dict(counts) for name, counts in ranking.ruled_out.items() if counts},
        "warnings": list(ranking.warnings),
    }
