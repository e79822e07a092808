"""``metasched explain``: term by term how the completion of a ranked placement came about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich import box
from rich.table import Table

from metasched.cli import output, placing
from metasched.cli.options import JsonOption
from metasched.placement.breakdown import Part, breakdown, held_back_by
from metasched.placement.complaints import first_complaint
from metasched.placement.names import fold
from metasched.records import InputError, Interval, Placement, Prediction, ResourceSet
from metasched.store.files import read_text


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("explain")(explain)


class _Interval(BaseModel):
    low: float
    high: float
    level: float


class _Placement(BaseModel):
    model_config = ConfigDict(extra="ignore")

    rank: int
    cluster: str
    nodes: Annotated[list[str], Field(min_length=1)]
    processors: Annotated[int, Field(ge=1)]
    available_cpu: Annotated[float, Field(gt=0)]
    available_bandwidth: Annotated[float, Field(gt=0)]
    execution_time: Annotated[float, Field(gt=0)]
    interval: _Interval
    queue_wait: Annotated[float, Field(ge=0)]
    slowdown: Annotated[float, Field(ge=1)]
    model: str
    reason: str
    costs: dict[str, float] = {}

    def record(self) -> Placement:
        """The placement as a record."""
        chosen = ResourceSet(
            self.cluster, tuple(self.nodes), self.processors, self.available_cpu, self.available_bandwidth
        )
        interval = Interval(self.interval.low, self.interval.high, self.interval.level)
        prediction = Prediction(self.execution_time, interval, self.model)
        return Placement(chosen, prediction, self.queue_wait, self.slowdown, self.reason)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    application: str
    problem_size: Annotated[float, Field(gt=0)]
    placements: Annotated[list[_Placement], Field(min_length=1)]


def explain(
    placement: Annotated[Path, typer.Argument(help="Answer of metasched rank --json.")],
    clusters: placing.ClustersOption,
    model: placing.ModelOption = None,
    database: placing.DatabaseOption = None,
    number: Annotated[int, typer.Option(min=1, help="Which of its placements, by rank.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Show term by term how the completion of a ranked placement came about."""
    try:
        answer = _Answer.model_validate_json(read_text(placement))
    except ValidationError as error:
        what = first_complaint(error)
        raise InputError(f"is not an answer of metasched rank --json: {what}", where=str(placement)) from None
    asked = next((each for each in answer.placements if each.rank == number), None)
    if asked is None:
        raise InputError(f"--number {number}: there are {len(answer.placements)} placements in {placement}")
    chosen, harm = asked.record(), asked.costs.get("harm", 0.0)
    scene = placing.scene(answer.application, clusters, model, database)
    name = chosen.resource_set.cluster
    cluster = next((each for each in scene.clusters if each.name == name), None)
    if cluster is None or name not in scene.predictors:
        raise InputError(f"cluster {name} of the placement has no description in {clusters} or no model")
    parts = breakdown(chosen, scene.predictors[name], answer.problem_size)
    node, link = held_back_by(chosen.resource_set, cluster)
    if as_json:
        output.print_json(_explained(chosen, parts, node, link, dict(asked.costs)))
        return
    _tell(chosen, parts, node, link, harm)


def _explained(
    chosen: Placement, parts: tuple[Part, ...], node: str, link: str, costs: dict[str, float]
) -> dict[str, Any]:
    return {
        **placing.document(chosen, costs),
        "parts": [{"name": part.name, "how": part.how, "seconds": part.seconds} for part in parts],
        "least_cpu": node,
        "narrowest": link,
    }


def _tell(chosen: Placement, parts: tuple[Part, ...], node: str, link: str, harm: float) -> None:
    taken, interval = chosen.resource_set, chosen.prediction.interval
    shown = Table(
        title=f"{taken.processors} processors on {taken.cluster}: {fold(taken.nodes)}",
        title_justify="left",
        box=box.SIMPLE,
        show_footer=True,
    )
    shown.add_column("part", footer="completion")
    shown.add_column("how", overflow="fold")
    shown.add_column("s", justify="right", footer=f"{chosen.completion:.4g}")
    for part in parts:
        shown.add_row(part.name, part.how, f"{part.seconds:.4g}")
    output.out.print(shown)
    for line in (
        f"CPU {taken.available_cpu:.3g} is that of {node}, {taken.available_bandwidth:.4g} Mbit/s that of the {link}",
        f"with {interval.level:.0%} probability it runs {interval.low:.4g} to {interval.high:.4g} s without contention",
        *((f"jobs already there lose {harm:.4g} s together",) if harm > 0 else ()),
        chosen.reason,
    ):
        output.out.print(line, markup=False, soft_wrap=True)
