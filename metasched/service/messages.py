"""What clients and the daemon say to each other, as JSON; everything that comes in is checked here first."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from metasched.placement.answers import PlacementTable
from metasched.placement.freshness import STALE_AFTER
from metasched.service.configuration import Mode

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
#: A sample: time (s), available CPU, available bandwidth (Mbit/s). What is believed of it is for the screening to say.
Sample = tuple[float, float, float]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LoadsIn(_Message):
    """Some samples of one node, in any order."""

    node: Name
    samples: Annotated[list[Sample], Field(min_length=1, max_length=10_000)]


class RunIn(_Message):
    """A finished run that was measured elsewhere."""

    application: Name
    cluster: Name
    problem_size: Positive
    processors: Count
    min_avg_avail_cpu: Fraction
    min_avg_avail_bw: Positive
    execution_time: Positive
    start_time: Number | None = None
    nodes: Annotated[list[Name], Field(max_length=100_000)] = []
    exit_status: Annotated[int, Field(ge=0, le=65535)] = 0
    uid: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None


class RunsIn(_Message):
    """Some runs, stored all or none; those whose uid is known already are not stored again."""

    runs: Annotated[list[RunIn], Field(min_length=1, max_length=1000)]


class JobIn(_Message):
    """A job that has ended, as its scheduler tells; ``nodes`` may be folded."""

    scheduler: Name
    job: Name
    comment: Annotated[str, Field(max_length=65_536)] = ""
    partition: Annotated[str, Field(max_length=255)] = ""
    nodes: Annotated[str, Field(max_length=65_536)]
    processors: Count | None = None
    start: Positive
    end: Positive
    exit_status: Annotated[int, Field(ge=0, le=65535)] = 0
    user: Annotated[str, Field(max_length=255)] = ""
    name: Annotated[str, Field(max_length=255)] = ""


class Demands(_Message):
    """Application, problem size, and what is demanded; ``partitions`` are those that may be used, all where empty."""

    application: Name
    problem_size: Positive
    scheduler: Annotated[str, Field(max_length=255)] = ""
    partitions: Annotated[list[Name], Field(max_length=1000)] = []
    processors: Annotated[list[Count], Field(max_length=10_000)] = []
    min_processors: Count = 1
    max_processors: Count | None = None
    per_node: Count | None = None
    memory: Positive | None = None
    features: Annotated[list[Name], Field(max_length=100)] = []
    exclude: Annotated[str, Field(max_length=65_536)] = ""
    exclusive: bool = False


class Ask(Demands):
    """What a placement is asked for; ``partitions`` are those that the job's user may use, all where empty.

    ``user`` and ``name`` of the job are how its outcome is found where nothing is noted in its comment. A ``trial`` is
    answered and forgotten: nothing is noted, and no nodes are taken for used.
    """

    time_limit: Positive | None = None
    user: Annotated[str, Field(max_length=255)] = ""
    name: Annotated[str, Field(max_length=255)] = ""
    trial: bool = False


class Answer(_Message):
    """Where the job should run, or why nothing is advised; times in seconds, ``time_limit`` too.

    ``placement`` is as ``metasched rank --json`` spells one, and with it come the same nodes folded, the partition in
    its scheduler's words, and ``prefer``, a feature that the chosen nodes have in common and others lack.
    """

    id: str
    mode: Mode
    steer: str
    placed: bool
    message: str
    scheduler: str = ""
    partition: str = ""
    nodes: str = ""
    node_count: int | None = None
    processors: int | None = None
    prefer: str = ""
    time_limit: float | None = None
    placement: dict[str, Any] | None = None
    warnings: list[str] = []


class RankIn(Demands):
    """What a ranking is asked for, in the words of ``metasched rank``; ``clusters`` by their names, all where empty.

    ``weights`` are prices in seconds of the terms of the objective. Without ``forecast`` the loads measured last count.
    ``drain`` names nodes, folded, that are looked on as drained.
    """

    clusters: Annotated[list[Name], Field(max_length=1000)] = []
    drain: Annotated[str, Field(max_length=65_536)] = ""
    weights: dict[Literal["time", "core_hours", "energy", "risk", "harm"], Weight] = {}
    saving: Annotated[float, Field(ge=0, lt=1)] = 0.0
    near_tie: Annotated[float, Field(ge=0, lt=1)] = 0.0
    rotate: Annotated[str, Field(max_length=255)] | None = None
    pareto: bool = False
    stale_after: Annotated[float, Field(ge=0, allow_inf_nan=False)] = STALE_AFTER
    forecast: bool = True
    top: Annotated[int, Field(ge=1, le=1000)] = 10
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9


class ExplainIn(_Message):
    """One placement of a ranking, as the daemon answered it, to be explained."""

    application: Name
    problem_size: Positive
    placement: PlacementTable


class PredictIn(_Message):
    """What a prediction is asked for."""

    application: Name
    cluster: Name
    problem_size: Positive
    processors: Count
    available_cpu: Fraction
    available_bandwidth: Positive
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9


class WalltimesIn(_Message):
    """A job that time limits are suggested for: chances of being killed, and limits (s) to judge.

    Every cluster with a model where none is named. What loads are expected is what past runs met, unless it is said.
    """

    application: Name
    problem_size: Positive
    processors: Count
    cluster: Name | None = None
    chances: Annotated[list[Fraction], Field(max_length=20)] = []
    limits: Annotated[list[Positive], Field(max_length=20)] = []
    available_cpu: Fraction | None = None
    available_bandwidth: Positive | None = None


class ModeIn(_Message):
    """The mode that the daemon shall be in."""

    mode: Mode
