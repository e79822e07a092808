"""Rankings and explanations as JSON documents, and the records back from such documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field

from metasched.json_numbers import finite
from metasched.placement.explaining.breakdown import Explanation
from metasched.placement.ranking.query import Curve, InfeasibleError, Ranking
from metasched.records import DEFAULT_SETTINGS, Interval, Placement, Prediction, ResourceSet, Settings
from monitors.validated_fields import LenientFields, NotNegative, Positive


class EndsTable(LenientFields, BaseModel):
    """The ends of an interval; one that is infinite is null."""

    low: float | None
    high: float | None


class IntervalTable(EndsTable):
    """A prediction interval: its ends (s) and its level, a probability."""

    level: Annotated[float, Field(gt=0, lt=1)]

    def record(self) -> Interval:
        """The interval as the record of a prediction."""
        return Interval(*_ends(self), self.level)


class PlacementTable(LenientFields, BaseModel):
    """A placement of a ranking: the set of nodes, its prediction and wait (s), and its costs by term."""

    rank: int = 1
    cluster: str
    nodes: Annotated[list[str], Field(min_length=1, max_length=1_000_000)]
    processors: Annotated[int, Field(ge=1, le=1_000_000_000)]
    processes_per_node: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    threads: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    available_cpu: Positive
    available_bandwidth: Positive
    execution_time: Positive
    interval: IntervalTable
    queue_wait: NotNegative = 0.0
    slowdown: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    model: str = ""
    warnings: list[str] = []
    reason: str = ""
    energy: Positive | None = None
    success: Annotated[float, Field(ge=0, le=1)] | None = None
    success_interval: IntervalTable | None = None
    power_limit: Positive | None = None
    frequency: Positive | None = None
    costs: dict[str, float | None] = {}

    def record(self) -> Placement:
        """The placement as the record that the ranker returns."""
        chosen = ResourceSet(
            self.cluster, tuple(self.nodes), self.processors, self.available_cpu, self.available_bandwidth,
            self.processes_per_node, self.threads, self.frequency,
        )  # fmt: skip
        prediction = Prediction(self.execution_time, self.interval.record(), self.model, tuple(self.warnings))
        further = (self.energy, self.success, self.power_limit)
        doubt = None if self.success_interval is None else self.success_interval.record()
        return Placement(
            chosen, prediction, self.queue_wait, self.slowdown, self.reason, *further, success_interval=doubt
        )


class CurveTable(LenientFields, BaseModel):
    """The best placement of one number of processors: how long it runs and when it is done (s from now)."""

    processors: Annotated[int, Field(ge=1)]
    execution_time: float | None
    interval: EndsTable
    completion: float | None


class RankingTable(LenientFields, BaseModel):
    """A ranking for some settings.

    ``why`` says why it holds no placement, ``for_now`` whether that may change with the nodes' states.
    """

    application: str
    problem_size: Positive
    processes_per_node: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    threads: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    parameters: dict[str, float | str] = {}
    placements: list[PlacementTable]
    by_processors: list[CurveTable] = []
    compared: int = 0
    gap: float | None = 0.0
    warnings: list[str] = []
    why: str = ""
    for_now: bool = True

    @property
    def settings(self) -> Settings:
        """The settings that were asked; each placement may have a layout and a clock of its own."""
        return Settings.of(self.processes_per_node, self.threads, self.parameters)

    def curve(self) -> Curve:
        """The best placement for each number of processors for which there is a prediction."""
        known = [
            (each.processors, each.execution_time, *_ends(each.interval), each.completion)
            for each in self.by_processors
            if each.execution_time is not None and each.completion is not None
        ]
        processors, time, low, high, completion = np.array(known, dtype=np.float64).reshape(-1, 5).T
        return Curve(processors.astype(np.int64), time, low, high, completion)


def _ends(interval: EndsTable) -> tuple[float, float]:
    low, high = interval.low, interval.high
    return -math.inf if low is None else low, math.inf if high is None else high


def ranking_document(
    application: str, problem_size: float, ranking: Ranking, settings: Settings = DEFAULT_SETTINGS
) -> dict[str, Any]:
    """A ranking as ``metasched rank --json`` and the daemon answer it; numbers that are not finite are null."""
    curve = ranking.curve
    columns = (curve.processors, curve.execution_time, curve.low, curve.high, curve.completion)
    written: dict[str, Any] = finite(
        {
            "application": application,
            "problem_size": problem_size,
            **settings.as_dict(),
            "placements": [
                {"rank": number, **placement_document(placement, costs)}
                for number, (placement, costs) in enumerate(
                    zip(ranking.placements, ranking.costs, strict=True), start=1
                )
            ],
            "by_processors": [
                {"processors": p, "execution_time": time, "interval": {"low": low, "high": high}, "completion": done}
                for p, time, low, high, done in zip(*(column.tolist() for column in columns), strict=True)
            ],
            "compared": ranking.compared,
            "evaluations": ranking.evaluations,
            "gap": ranking.gap,
            "ruled_out": {name: dict(counts) for name, counts in ranking.ruled_out.items() if counts},
            "warnings": list(ranking.warnings),
        }
    )
    return written


def infeasible_document(application: str, problem_size: float, error: InfeasibleError) -> dict[str, Any]:
    """The ranking where there is nothing to rank."""
    return {
        "application": application,
        "problem_size": problem_size,
        "placements": [],
        "why": str(error),
        "for_now": error.for_now,
    }


def placement_document(placement: Placement, costs: Mapping[str, float | None]) -> dict[str, Any]:
    """A placement as the JSON contract spells it, with the costs of every term.

    Parameters
    ----------
    placement : with its prediction (s) and wait (s).
    costs : by term, as the objective weighs them; None for one that is not finite.
    """
    return placement.as_dict() | {"costs": dict(costs)}


def explanation_document(explained: Explanation, costs: Mapping[str, float | None]) -> dict[str, Any]:
    """The explanation of a placement, as ``metasched explain --json`` and the daemon return it.

    Parameters
    ----------
    explained : the parts of the completion (s) and what limits it.
    costs : by term, as in :func:`placement_document`.
    """
    document: dict[str, Any] = placement_document(explained.placement, costs) | {
        "parts": [{"name": part.name, "how": part.how, "seconds": part.seconds} for part in explained.parts],
        "least_cpu": explained.least_cpu,
        "narrowest": explained.narrowest,
        "notes": list(explained.notes),
    }
    written: dict[str, Any] = finite(document)
    return written
