"""Common parts of the documents of all methods: header, runs, sorted lists, domains, and their validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError

from candidate_functions.terms import names, positions
from metasched.predictors.formulas.sorted_list import SortedList
from metasched.predictors.gaussian_process import Scales
from metasched.predictors.memory.calibration import Calibration
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.representable import refuse_unrepresentable
from metasched.predictors.memory.setting_columns import MOST_COLUMNS
from metasched.predictors.memory.window import RunWindow
from metasched.records import DEFAULT_SETTINGS, MOST_PARAMETERS, InputError, Run, Settings
from metasched.validation import first_error
from monitors.validated_fields import NotNegative, Positive, StrictFields

Number = TypeVar("Number")
Count = Annotated[int, Field(ge=1)]
#: A time (s).
Seconds = NotNegative
#: N, P, available CPU, available bandwidth (None where not measured), execution time.
Row = tuple[Positive, Count, Annotated[float, Field(gt=0, le=1)] | None, Positive | None, Positive]
Scores = list[NotNegative]
#: A number that may be infinite in a record and is None then in a document: JSON does not know infinity.
Finite = Annotated[Number | None, BeforeValidator(lambda value: None if value == math.inf else value)]
_Names = tuple[str, str, str, str, str]


class Part(StrictFields, BaseModel):
    """A part of a document, without missing or unknown fields; within another part, a record can be given."""

    model_config = ConfigDict(from_attributes=True)


class RecordPart(Part):
    """A part with the fields of a record, or some of them: it is made of the record, and makes it again."""

    record: ClassVar[Callable[..., Any]]

    def build(self) -> Any:
        """The record of the fields, in which parts are records and lists are tuples."""
        return type(self).record(**{name: _built(getattr(self, name)) for name in type(self).model_fields})


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_built, value))
    return value.build() if isinstance(value, RecordPart) else value


class ModelPart(Part):
    """The header of every document of a model."""

    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    method: str

    @classmethod
    def of(cls, predictor: Any) -> Self:
        """What a predictor is kept as: its attributes, or those of its state, by their names, where not converted."""
        state, window = getattr(predictor, "state", predictor), predictor.window
        kept = {
            "window": rows(window),
            "settings": settings_of(window),
            "seen": window.seen,
            "capacity": window.capacity,
            "scores": list(state.calibration.scores),
            "rehearsed": state.calibration.rehearsed,
            "shift": state.calibration.shift,
        } | cls.converted(predictor)
        wanted = cls.model_fields.keys() - ModelPart.model_fields.keys()
        alike = {name: getattr(state if hasattr(state, name) else predictor, name) for name in wanted - kept.keys()}
        return cls(**{name: value for name, value in kept.items() if name in wanted}, **alike)

    @staticmethod
    def converted(predictor: Any) -> dict[str, Any]:
        """The fields that a predictor has in another form."""
        return {}


class CalibratedPart(ModelPart):
    """The document of a predictor with the scores that intervals are made of."""

    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]
    shift: FiniteFloat = 0.0

    @property
    def calibration(self) -> Calibration:
        """The scores as predictors keep them."""
        return Calibration(tuple(self.scores), self.rehearsed, self.shift)


class LearnedPart(CalibratedPart):
    """The document of a predictor that keeps its latest runs."""

    application: str
    cluster: str
    window: list[Row]
    seen: Annotated[int, Field(ge=0)]

    def runs_in(self, capacity: int) -> RunWindow:
        """The runs in a window of some capacity (runs)."""
        return window(self.window, self.application, self.cluster, self.seen, capacity)


class ScalesPart(RecordPart):
    """The scales of a Gaussian process."""

    record = Scales

    bend: Positive
    lengths: Annotated[list[Positive], Field(min_length=2, max_length=2 + MOST_COLUMNS)]
    scaling: Positive
    noise: Positive
    alone: Positive = 1.0


class ListPart(Part):
    """A sorted list by its square-root sums."""

    combinations: list[_Names] = Field(min_length=1)
    factors: Annotated[list[list[FiniteFloat]], Field(min_length=6, max_length=6)]
    in_last: list[Annotated[int, Field(ge=0)]]
    samples: Count
    relative: bool
    nonnegative: bool

    @classmethod
    def of(cls, models: SortedList) -> ListPart:
        """What a list is kept as."""
        return cls(
            combinations=[cast(_Names, names(combination)) for combination in models.combinations],
            factors=models.factors.tolist(),
            in_last=models.in_last.tolist(),
            samples=models.samples,
            relative=models.relative,
            nonnegative=models.nonnegative,
        )

    def build(self) -> SortedList:
        """The list, sorted and solved again."""
        k = len(self.combinations)
        if any(len(row) != k for row in self.factors) or len(self.in_last) != k:
            raise InputError(f"factors and in_last must hold {k} numbers each, one for each combination")
        return SortedList.from_factors(
            np.stack([positions(combination) for combination in self.combinations]),
            np.array(self.factors),
            samples=self.samples,
            relative=self.relative,
            nonnegative=self.nonnegative,
            in_last=np.array(self.in_last, dtype=np.intp),
        )


class DomainPart(RecordPart):
    """The ranges of problem sizes and processors that were learned."""

    record = Domain

    smallest_size: Positive
    largest_size: Positive
    fewest_processors: Count
    most_processors: Count


class SettingPart(Part):
    """The settings of a run as JSON: layout, parameters, and clock."""

    processes_per_node: Count | None = None
    threads: Count = 1
    parameters: Annotated[dict[str, FiniteFloat | str], Field(max_length=MOST_PARAMETERS)] = Field(default_factory=dict)
    frequency: FiniteFloat | None = None

    @classmethod
    def of(cls, settings: Settings) -> SettingPart:
        """The part that keeps the settings of a run."""
        return cls(
            processes_per_node=settings.processes_per_node,
            threads=settings.threads,
            parameters=dict(settings.parameters),
            frequency=settings.frequency,
        )

    def build(self) -> Settings:
        """The settings as the record that requests and runs use."""
        return Settings.of(self.processes_per_node, self.threads, self.parameters, self.frequency)


def settings_of(runs: Iterable[Run]) -> list[SettingPart]:
    """The settings of runs, as they are stored; None if no run has any."""
    found = [run.settings for run in runs]
    return [] if all(each == DEFAULT_SETTINGS for each in found) else [SettingPart.of(each) for each in found]


def rows(runs: Iterable[Run]) -> list[Row]:
    """Runs as rows of the numbers that vary between runs; loads not measured are null."""
    return [
        (
            run.problem_size,
            run.processors,
            None if math.isnan(run.min_avg_avail_cpu) else run.min_avg_avail_cpu,
            None if math.isnan(run.min_avg_avail_bw) else run.min_avg_avail_bw,
            run.execution_time,
        )
        for run in runs
    ]


def runs_of(kept: Sequence[Row], application: str, cluster: str, settings: Sequence[SettingPart] = ()) -> list[Run]:
    """The runs of stored rows, with their settings if there are any."""
    if settings and len(settings) != len(kept):
        raise InputError(f"there are settings of {len(settings)} runs, expected those of {len(kept)}")
    cells = [each.build().cells for each in settings] or [{}] * len(kept)
    return [
        Run(
            *(application, cluster, n, p),
            *(math.nan if cpu is None else cpu, math.nan if bw is None else bw, time),
            extra=MappingProxyType(extra),
        )
        for (n, p, cpu, bw, time), extra in zip(kept, cells, strict=True)
    ]


def window(
    kept: Sequence[Row], application: str, cluster: str, seen: int, capacity: int, settings: Sequence[SettingPart] = ()
) -> RunWindow:
    """The window of runs from stored rows; InputError where no model can be fitted to one of them.

    Parameters
    ----------
    kept : stored rows, oldest first.
    application, cluster : of all of them.
    seen : how many runs the window has had in all.
    capacity : how many it holds at most.
    settings : of each row; none where no run has any.
    """
    found = runs_of(kept, application, cluster, settings)
    refuse_unrepresentable(found)
    return RunWindow(found, capacity, seen)


Document = TypeVar("Document", bound=BaseModel)


def checked(kind: type[Document], text: str, where: str) -> Document:
    """Read a document of one kind.

    Raises
    ------
    InputError : it is no whole JSON document, or the named field is not as expected.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise InputError(f"not a whole JSON document ({first['ctx']['error']})", where=where) from None
        raise InputError(first_error(error), where=where) from None
