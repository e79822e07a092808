"""``metasched rank``: where, and on how many processors, an application should run next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from metasched.cli import consulting, output, placing
from metasched.cli.models import LevelOption, check_level
from metasched.cli.options import JsonOption
from metasched.placement.freshness import STALE_AFTER
from metasched.placement.objective import TERMS
from metasched.placement.question import Question
from metasched.records import InputError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("rank")(rank_verb)


def rank_verb(
    application: placing.ApplicationOption,
    problem_size: placing.SizeOption,
    clusters: placing.ClustersOption = None,
    url: consulting.UrlOption = None,
    config: consulting.ConfigOption = None,
    model: placing.ModelOption = None,
    database: placing.DatabaseOption = None,
    loads: placing.LoadsOption = None,
    at: placing.AtOption = None,
    forecast: Annotated[
        bool | None,
        typer.Option(help="Forecast the loads over the run; the daemon does, unless told otherwise."),
    ] = None,
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
    """Rank resource sets by predicted completion: those of described clusters, or without --clusters the daemon's.

    The daemon's Unix socket needs no token; by URL one with the role reader is taken from $METASCHED_TOKEN.
    """
    check_level(level)
    demands: dict[str, Any] = {
        "processors": placing.counts(processors, where="--processors"),
        "min_processors": min_processors,
        "max_processors": max_processors,
        "per_node": per_node,
        "memory": memory,
        "features": frozenset(feature or ()),
        "exclusive": exclusive,
        "exclude": placing.nodes(exclude, where="--exclude"),
    }
    wanted = placing.objective(weight, saving)
    given = {"model": model, "db": database, "loads": loads, "at": at}
    consulting.one_source(clusters, url, **given)
    if clusters is not None:
        scene = placing.scene(application, clusters, model, database, loads, at)
        if forecast and scene.recorded is None:
            raise InputError("--forecast is given without --loads")
        known = [cluster.name for cluster in scene.clusters]
        for name in only or ():
            if name not in known:
                raise InputError(f"--cluster {name} is not described in {clusters}, expected one of {', '.join(known)}")
        question = Question(
            problem_size,
            placing.constrained(scene.constraints, **demands, clusters=frozenset(only or ())),
            wanted,
            scene.contention(problem_size),
            top=top,
            level=level,
            pareto=pareto,
            tolerance=near_tie,
            rotation=rotate,
            stale_after=stale_after,
            forecast=scene.recorded if forecast else None,
        )
        told = placing.ranked(application, scene, question)
    else:
        asked = {
            "application": application,
            "problem_size": problem_size,
            **placing.spelt(demands),
            "clusters": only or [],
            "weights": {name: getattr(wanted, name) for name in TERMS},
            "saving": saving,
            "near_tie": near_tie,
            "rotate": rotate,
            "pareto": pareto,
            "stale_after": stale_after,
            "forecast": forecast is not False,
            "top": top,
            "level": level,
        }
        told = consulting.consult(config, url, "POST", "/v1/rankings", asked)
    answer = consulting.ranking(told, where=url or "the daemon")
    if as_json:
        output.print_json(told)
    if not answer.placements:
        output.complain(answer.why)
        raise typer.Exit(1)
    for line in answer.warnings:
        output.complain(f"warning: {line}")
    if not as_json:
        placing.show(answer)
