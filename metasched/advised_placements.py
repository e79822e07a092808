"""Placements that were advised: what was asked, what was answered, and what became of the job.

Questions and answers are what clients and the daemon send each other as JSON, and what the database keeps of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer, TypeAdapter, ValidationError

from metasched.modes import Mode
from metasched.placement.clusters.constraints import Constraints, Name, Text
from metasched.placement.explaining.documents import IntervalTable, PlacementTable
from metasched.records import FASTEST, SLOWEST, InputError, Placement, Prediction, Settings
from metasched.validation import first_error
from monitors.validated_fields import NotNegative, Positive, StrictFields

Number = Annotated[float, Field(allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Weight = NotNegative
#: What a script or a command line is known by, see :func:`metasched.jobs.digest`.
Digest = Annotated[str, Field(max_length=64, pattern=r"^[0-9a-f-]*$")]


def _placement(value: Any) -> Any:
    return value if isinstance(value, Placement) else PlacementTable.model_validate(value).record()


#: A placement as ``metasched rank --json`` spells one.
PlacementField = Annotated[
    Placement, BeforeValidator(_placement), PlainSerializer(Placement.as_dict, return_type=dict[str, Any])
]


class Message(StrictFields, BaseModel):
    """What clients and the daemon send each other; a key that is not known is refused."""


class SettingsAsked(Message):
    """How a run is laid out on its nodes, and its parameters by name: numbers or words."""

    processes_per_node: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    threads: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    parameters: dict[Text, Number | Text] = Field(default_factory=dict)
    frequency: Annotated[float, Field(ge=SLOWEST, le=FASTEST)] | None = None

    @property
    def settings(self) -> Settings:
        """The settings; InputError where there can be none such."""
        return Settings.of(self.processes_per_node, self.threads, self.parameters, self.frequency)


_OF_CONSTRAINTS = frozenset(Constraints.model_fields)


class Demands(Constraints, SettingsAsked):
    """Application, problem size, and what is demanded; ``partitions`` are those that may be used, all where empty."""

    application: Name
    problem_size: Positive
    scheduler: Text = ""
    partitions: Annotated[list[Name], Field(max_length=1000)] = Field(default_factory=list)

    def constraints(self, described: Constraints) -> Constraints:
        """What is demanded: what is described of the application, unless this says otherwise.

        Raises
        ------
        InputError : when they contradict each other.
        """
        asked = self.model_fields_set & _OF_CONSTRAINTS
        demands = {name: getattr(self, name) for name in sorted(asked)}
        if self.processes_per_node is not None and self.threads == 1 and self.per_node is None:
            demands["per_node"] = self.processes_per_node
        return _demanded(described, tuple(demands.items()))


@lru_cache(maxsize=200)
def _demanded(described: Constraints, demands: tuple[tuple[str, Any], ...]) -> Constraints:
    """Constraints with demands in place of theirs; jobs mostly demand what others did before them."""
    return described.with_demands(dict(demands))


class Ask(Demands):
    """What a placement is asked for; ``partitions`` are those that the job's user may use, all where empty.

    ``user`` and ``name`` of the job, and the digests of the ``script`` or the ``command`` line that showed its problem
    size, are how its outcome is found where nothing is noted in its comment; that of an ``annotated`` job, which says
    itself in its comment what it is, is found for a job that says the same, and that of a job that has ``stated`` it by
    a number for one that states the same. ``asked_at`` is when its hook asked (s since 1970), by the clock that dates
    its submission, which may be another one than the daemon's. A ``trial`` is answered and forgotten: nothing is noted,
    and no nodes are taken for used. ``job`` is the job's number where its scheduler gives numbers before it asks: then
    its outcome is found by that. ``qos``, its quality of service, and its user's ``login`` and ``account`` are what
    limits it. A job with a ``frequency`` of its own is given no other clock, nor is one that ``keeps_clock``: it
    chooses a clock that is not known before it runs.
    """

    time_limit: Positive | None = None
    user: Text = ""
    name: Text = ""
    job: Annotated[Text, Field(max_length=64)] = ""
    script: Digest = ""
    command: Digest = ""
    annotated: bool = False
    stated: bool = False
    asked_at: Positive | None = None
    qos: Text = ""
    login: Text = ""
    account: Text = ""
    keeps_clock: bool = False
    trial: bool = False

    @property
    def own_clock(self) -> bool:
        """Whether the job has a clock of its own, known or not."""
        return self.keeps_clock or self.frequency is not None


class Move(Message):
    """A running job that was moved: where it was, on what part of the whole, and what it would have taken there (s).

    ``left`` is the fraction of the job that was left, ``available_cpu`` and ``available_bandwidth`` what was expected
    of its old nodes, ``platform`` what its model is of.
    """

    cluster: str
    platform: str
    nodes: str
    processors: int
    left: Fraction
    stay: NotNegative
    available_cpu: Positive
    available_bandwidth: Positive


class Answer(Message):
    """Where the job should run, or why nothing is advised; times in seconds, ``time_limit`` too.

    ``placement`` is as ``metasched rank --json`` spells one, and with it come the same nodes folded, the partition in
    its scheduler's words, and ``prefer``, a feature that the chosen nodes have in common and others lack.
    ``partitions`` are those that Slurm is given where several are near ties, the best first, else none. ``frequency``
    is the clock that the job is to be given (MHz), where the configuration allows that. ``move`` tells
    of a job that ran already and was moved.
    """

    id: str
    mode: Mode
    steer: str
    placed: bool
    message: str
    scheduler: str = ""
    partition: str = ""
    partitions: list[str] = []
    nodes: str = ""
    node_count: int | None = None
    processors: int | None = None
    prefer: str = ""
    time_limit: float | None = None
    frequency: float | None = None
    placement: PlacementField | None = None
    warnings: list[str] = []
    move: Move | None = None


def _prediction(value: Any) -> Any:
    if not isinstance(value, dict) or "interval" not in value:
        return value
    return value | {"interval": IntervalTable.model_validate(value["interval"]).record()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the job that a placement was advised for.

    Parameters
    ----------
    job, scheduler, partition : where it ran; scheduler and partition are empty where they were not recorded.
    platform : what its run was learned as.
    nodes, processors : what it had.
    start, execution_time : seconds; the start is None where it was not recorded.
    exit_status : 0 where all went well.
    available_cpu, available_bandwidth : the loads that it met (fraction of a processor, Mbit/s); None where they were
        not measured.
    predicted : what the model said with these loads before it learned the run; None without a model.
    energy, predicted_energy : what it took, and what the model said of that likewise (J); None where not known.
    frequency : clock of its processors (MHz); None where not known.
    """

    platform: str
    partition: str
    nodes: tuple[str, ...]
    processors: int
    execution_time: float
    exit_status: int
    predicted: Annotated[Prediction | None, BeforeValidator(_prediction)] = None
    job: str = ""
    scheduler: str = ""
    start: float | None = None
    available_cpu: float | None = 1.0
    available_bandwidth: float | None = 1000.0
    energy: float | None = None
    predicted_energy: float | None = None
    frequency: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The outcome as a JSON document."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "nodes": list(self.nodes),
            "predicted": None if self.predicted is None else self.predicted.as_dict(),
        }


_OUTCOME = TypeAdapter(Outcome)


@dataclass(frozen=True, slots=True)
class AdvisedPlacement:
    """One question, its answer, and the outcome once the job has ended; made at a time in seconds.

    >>> ask = Ask(application="cg", problem_size=900)
    >>> answer = Answer(id="0a", mode="shadow", steer="nodes", placed=False, message="no model of cg yet")
    >>> document = AdvisedPlacement(5.0, ask, answer).as_dict()
    >>> document["id"], document["application"], document["answer"]["placed"], document["outcome"]
    ('0a', 'cg', False, None)
    >>> AdvisedPlacement.read("0a", 5.0, document["question"], document["answer"], None).question == ask
    True
    """

    made_at: float
    question: Ask
    answer: Answer
    outcome: Outcome | None = None

    @property
    def uid(self) -> str:
        """The 32 hexadecimal characters that name the placement in comments, logs and the database."""
        return self.answer.id

    @property
    def application(self) -> str:
        """The application that was asked about."""
        return self.question.application

    @property
    def same_clock(self) -> bool:
        """Whether its job had the clock that was advised, or none was."""
        placement, outcome = self.answer.placement, self.outcome
        if placement is None or outcome is None:
            return False
        # Earlier versions noted no clock: there it counts as the one that the job was to be given.
        return placement.resource_set.frequency in (None, outcome.frequency or self.answer.frequency)

    def as_dict(self) -> dict[str, Any]:
        """The placement as one JSON document."""
        return {
            "id": self.uid,
            "made_at": self.made_at,
            "application": self.application,
            "question": self.question.model_dump(),
            "answer": self.answer.model_dump(exclude={"id"}),
            "outcome": None if self.outcome is None else self.outcome.as_dict(),
        }

    @classmethod
    def read(cls, uid: str, made_at: float, question: Any, answer: Any, outcome: Any) -> AdvisedPlacement:
        """The record of documents of this or another version: keys that are not known here are passed over.

        Parameters
        ----------
        uid : what names the placement.
        made_at : when it was advised, seconds since 1970.
        question, answer, outcome : the documents; ``outcome`` is None while the job has not ended.

        Raises
        ------
        InputError : when one of them is not what it should be.
        """
        try:
            return cls(
                made_at,
                Ask.model_validate({key: value for key, value in question.items() if key in Ask.model_fields}),
                Answer.model_validate(
                    {"id": uid} | {key: value for key, value in answer.items() if key in Answer.model_fields}
                ),
                None if outcome is None else _OUTCOME.validate_python(outcome),
            )
        except (ValidationError, AttributeError) as error:
            why = first_error(error) if isinstance(error, ValidationError) else "is no table"
            raise InputError(why, where=f"placement {uid}") from None
