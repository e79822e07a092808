"""``metasched rank``: where, and on how many processors, an application should run next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from ClusterShell.NodeSet import NodeSet
from rich.table import Table

from metasched.cli import output
from metasched.placement.constraints import Constraints
from metasched.placement.description import read_clusters, unfold
from metasched.placement.ranker import InfeasibleError, Ranking, rank
from metasched.predictors.contract import Predictor
from metasched.records import InputError, Placement
from metasched.store.models import read_model

ANY_CLUSTER = ""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("rank")(rank_verb)


def rank_verb(
    application: Annotated[str, typer.Option(help="Name of the application.")],
    problem_size: Annotated[float, typer.Option(help="N.")],
    clusters: Annotated[Path, typer.Option(help="TOML file that describes the clusters.")],
    model: Annotated[
        list[str], typer.Option(help="Model file, or CLUSTER=FILE for a model that holds on one cluster; repeatable.")
    ],
    processors: Annotated[str, typer.Option(help="Numbers of processors allowed, such as 1,2,4-8.")] = "",
    min_processors: Annotated[int, typer.Option(min=1, help="Least number of processors.")] = 1,
    max_processors: Annotated[int | None, typer.Option(min=1, help="Largest number of processors.")] = None,
    per_node: Annotated[int | None, typer.Option(min=1, help="Most processors on one node.")] = None,
    memory: Annotated[float | None, typer.Option(help="Megabytes that each node must have.")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="Feature that each node must have; repeatable.")] = None,
    exclusive: Annotated[bool, typer.Option("--exclusive", help="Only nodes without any job.")] = False,
    only: Annotated[list[str] | None, typer.Option("--cluster", help="Only this cluster; repeatable.")] = None,
    exclude: Annotated[str, typer.Option(help="Nodes that it must not take, such as n[1-3].")] = "",
    top: Annotated[int, typer.Option(min=1, help="How many placements to show.")] = 10,
    level: Annotated[float, typer.Option(help="Level of the prediction intervals.")] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Rank the resource sets of the described clusters by predicted completion."""
    if not 0 < level < 1:
        raise InputError(f"--level is {level:g}, expected a number between 0 and 1")
    described = read_clusters(clusters)
    known = [cluster.name for cluster in described]
    for name in only or ():
        if name not in known:
            raise InputError(f"--cluster {name} is not in {clusters}, which describes {', '.join(known)}")
    constraints = Constraints(
        processors=counts(processors, where="--processors"),
        min_processors=min_processors,
        max_processors=max_processors,
        per_node=per_node,
        memory=memory,
        features=frozenset(feature or ()),
        exclusive=exclusive,
        clusters=frozenset(only or ()),
        exclude=frozenset(unfold(exclude, where="--exclude") if exclude else ()),
    )
    try:
        ranking = rank(
            described, _predictors(model, known), problem_size, constraints=constraints, top=top, level=level
        )
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
    else:
        output.out.print(_table(application, problem_size, ranking))


def counts(text: str, *, where: str) -> tuple[int, ...]:
    """Whole numbers written as 1,2,4-8."""
    found: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"{part!r} is not a number of processors, expected such as 1,2,4-8", where=where)
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= 10_000_000:
            raise InputError(f"{part!r} is not a range of whole numbers of at least 1", where=where)
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def _predictors(models: Sequence[str], clusters: Sequence[str]) -> dict[str, Predictor]:
    """A predictor for each cluster, from ``FILE`` or ``CLUSTER=FILE``."""
    predictors: dict[str, Predictor] = {}
    for text in models:
        name, equals, path = text.partition("=")
        cluster = name if equals and not Path(text).exists() else ANY_CLUSTER
        if cluster and cluster not in clusters:
            raise InputError(f"--model {text}: no cluster {cluster} described, expected one of {', '.join(clusters)}")
        if cluster in predictors:
            raise InputError(f"--model {text}: there is one for {cluster or 'all clusters'} already")
        predictors[cluster] = read_model(Path(path if cluster else text))
    fallback = predictors.pop(ANY_CLUSTER, None)
    if fallback is not None:
        predictors = dict.fromkeys(clusters, fallback) | predictors
    return predictors


def _document(application: str, problem_size: float, ranking: Ranking) -> dict[str, Any]:
    curve = ranking.curve
    return {
        "application": application,
        "problem_size": problem_size,
        "placements": [
            {"rank": number, **placement_document(placement)}
            for number, placement in enumerate(ranking.placements, start=1)
        ],
        "by_processors": [
            {"processors": p, "execution_time": t, "interval": {"low": low, "high": high}, "completion": done}
            for p, t, low, high, done in zip(
                *(
                    column.tolist()
                    for column in (curve.processors, curve.execution_time, curve.low, curve.high, curve.completion)
                ),
                strict=True,
            )
        ],
        "compared": ranking.compared,
        "ruled_out": {name: dict(counts) for name, counts in ranking.ruled_out.items() if counts},
        "warnings": list(ranking.warnings),
    }


def placement_document(placement: Placement) -> dict[str, Any]:
    """A placement as the JSON contract spells it."""
    chosen = placement.resource_set
    return {
        "cluster": chosen.cluster,
        "nodes": list(chosen.nodes),
        "processors": chosen.processors,
        "available_cpu": chosen.available_cpu,
        "available_bandwidth": chosen.available_bandwidth,
        **placement.prediction.as_dict(),
        "queue_wait": placement.queue_wait,
        "slowdown": placement.slowdown,
        "completion": placement.completion,
        "reason": placement.reason,
    }


def _table(application: str, problem_size: float, ranking: Ranking) -> Table:
    interval = ranking.placements[0].prediction.interval
    table = Table(
        title=f"{application}, problem size {problem_size:g}: {ranking.compared} resource sets compared",
        title_justify="left",
    )
    for heading in ("#", "cluster", "P", "nodes"):
        table.add_column(heading, justify="right" if heading in "#P" else "left", overflow="fold")
    for heading in ("completion s", "wait s", "execution s", f"{interval.level:.0%} interval", "CPU", "Mbit/s"):
        table.add_column(heading, justify="right")
    table.add_column("why")
    for number, placement in enumerate(ranking.placements, start=1):
        chosen, prediction = placement.resource_set, placement.prediction
        table.add_row(
            str(number),
            chosen.cluster,
            str(chosen.processors),
            str(NodeSet.fromlist(list(chosen.nodes))),
            f"{placement.completion:.4g}",
            f"{placement.queue_wait:.4g}",
            f"{prediction.execution_time:.4g}",
            f"{prediction.interval.low:.4g} - {prediction.interval.high:.4g}",
            f"{chosen.available_cpu:.2f}",
            f"{chosen.available_bandwidth:.4g}",
            placement.reason,
            style="bold" if number == 1 else None,
        )
    return table
