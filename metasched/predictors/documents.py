"""Models as versioned JSON documents, checked in full when they are read.

A document holds numbers and names, never code. What can be computed again is not kept: lists are sorted and solved from
their square-root sums, the committee is fitted again to the runs of the window, so a model answers the same
before it is saved and after it was loaded.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from candidate_functions.terms import names, positions
from metasched.predictors.calibration import Calibration
from metasched.predictors.committee import Record
from metasched.predictors.contract import Predictor
from metasched.predictors.domain import Domain
from metasched.predictors.experts import NAMES, Experts
from metasched.predictors.published import PublishedPredictor, PublishedState
from metasched.predictors.residual import Hyperparameters
from metasched.predictors.robust import RobustPredictor, RobustState
from metasched.predictors.sorted_list import SortedList
from metasched.predictors.trend import Trend
from metasched.predictors.window import RunWindow
from metasched.records import InputError, Run

#: What a document says it is, and the only version of its layout there has been.
FORMAT, VERSION = "metasched-model", 1

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Row = tuple[Positive, Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, le=1)], Positive, Positive]
Names = tuple[str, str, str, str, str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _List(_Part):
    combinations: list[Names] = Field(min_length=1)
    factors: Annotated[list[list[FiniteFloat]], Field(min_length=6, max_length=6)]
    in_last: list[Annotated[int, Field(ge=0)]]
    samples: Annotated[int, Field(ge=1)]
    relative: bool
    nonnegative: bool

    @classmethod
    def of(cls, models: SortedList) -> _List:
        return cls(
            combinations=[_five(names(combination)) for combination in models.combinations],
            factors=models.factors.tolist(),
            in_last=models.in_last.tolist(),
            samples=models.samples,
            relative=models.relative,
            nonnegative=models.nonnegative,
        )

    def build(self) -> SortedList:
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


class _Kernel(_Part):
    variance: Positive
    length_scales: tuple[Positive, Positive, Positive, Positive]
    noise: Positive

    @classmethod
    def of(cls, found: Hyperparameters) -> _Kernel:
        return cls(variance=found.variance, length_scales=found.length_scales, noise=found.noise)

    def build(self) -> Hyperparameters:
        return Hyperparameters(self.variance, self.length_scales, self.noise)


class _Record(_Part):
    squares: Annotated[list[Positive], Field(min_length=len(NAMES), max_length=len(NAMES))]
    count: Positive


class _Domain(_Part):
    smallest_size: Positive
    largest_size: Positive
    fewest_processors: Annotated[int, Field(ge=1)]
    most_processors: Annotated[int, Field(ge=1)]


class _Model(_Part):
    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    application: str
    cluster: str
    capacity: Annotated[int, Field(ge=1, le=1_000_000)]
    #: Runs of the window, oldest first: N, P, available CPU, available bandwidth, execution time.
    window: list[Row] = Field(min_length=1)
    seen: Annotated[int, Field(ge=1)]
    scores: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]]
    rehearsed: Annotated[int, Field(ge=0)]
    domain: _Domain
    notes: list[str]
    since_search: Annotated[int, Field(ge=0)]

    def runs(self) -> list[Run]:
        return [Run(self.application, self.cluster, *row) for row in self.window]


class _Published(_Model):
    method: Literal["published"] = "published"
    models: Literal["multiple", "single"]
    parallel: _List
    alone: _List | None
    tried: list[int]


class _Robust(_Model):
    method: Literal["robust"] = "robust"
    trend: _List
    kernels: tuple[_Kernel, _Kernel] | None
    record: _Record


class _Header(BaseModel):
    format: str
    version: int
    method: str


Document = TypeVar("Document", bound=BaseModel)


def dump(predictor: Predictor) -> str:
    """Write a predictor as a JSON document.

    Raises
    ------
    InputError : there is no document for this kind of predictor, or it has learned nothing yet.
    """
    if isinstance(predictor, PublishedPredictor):
        published = predictor.state
        document: _Model = _Published(
            **_common(predictor, published),
            models=predictor.models,
            parallel=_List.of(published.parallel),
            alone=_List.of(published.alone) if published.alone is not None else None,
            tried=list(published.tried),
        )
    elif isinstance(predictor, RobustPredictor):
        robust = predictor.state
        kernels = robust.experts.kernels if robust.experts is not None else None
        document = _Robust(
            **_common(predictor, robust),
            trend=_List.of(robust.trend.models),
            kernels=(_Kernel.of(kernels[0]), _Kernel.of(kernels[1])) if kernels is not None else None,
            record=_Record(squares=list(robust.record.squares), count=robust.record.count),
        )
    else:
        raise InputError(f"a {predictor.name} predictor cannot be saved, expected published or robust")
    return document.model_dump_json()


def parse(text: str, *, where: str = "model") -> PublishedPredictor | RobustPredictor:
    """Read a JSON document back into a predictor.

    Raises
    ------
    InputError : the document is cut short, of another format or version, or not sound; the line says where.

    Examples
    --------
    >>> parse('{"format": "metasched-model", "version": 7, "method": "robust"}')
    Traceback (most recent call last):
    metasched.records.InputError: model: version 7 of the model format, expected 1: fit the model again
    """
    header = _checked(_Header, text, where)
    if header.format != FORMAT:
        raise InputError(f"format is {header.format!r}, expected {FORMAT!r}", where=where)
    if header.version != VERSION:
        raise InputError(
            f"version {header.version} of the model format, expected {VERSION}: fit the model again", where=where
        )
    if header.method not in ("published", "robust"):
        raise InputError(f"method is {header.method!r}, expected published or robust", where=where)
    try:
        if header.method == "published":
            return _published(_checked(_Published, text, where))
        return _robust(_checked(_Robust, text, where))
    except ValueError as error:
        raise error if str(error).startswith(where) else InputError(str(error), where=where) from None


def _published(document: _Published) -> PublishedPredictor:
    predictor = PublishedPredictor(
        document.application, document.cluster, models=document.models, capacity=document.capacity
    )
    predictor.window = _window(document)
    predictor.state = PublishedState(
        parallel=document.parallel.build(),
        alone=document.alone.build() if document.alone is not None else None,
        calibration=Calibration(tuple(document.scores), document.rehearsed),
        domain=Domain(**document.domain.model_dump()),
        tried=tuple(document.tried),
        notes=tuple(document.notes),
        since_search=document.since_search,
    )
    return predictor


def _robust(document: _Robust) -> RobustPredictor:
    predictor = RobustPredictor(document.application, document.cluster, capacity=document.capacity)
    predictor.window = _window(document)
    trend = Trend(document.trend.build())
    experts = None
    if document.kernels is not None:
        kernels = (document.kernels[0].build(), document.kernels[1].build())
        experts = Experts.fit(trend, predictor.window.observations(), kernels, optimise=False)
    predictor.state = RobustState(
        trend=trend,
        experts=experts,
        record=Record(tuple(document.record.squares), document.record.count),
        calibration=Calibration(tuple(document.scores), document.rehearsed),
        domain=Domain(**document.domain.model_dump()),
        notes=tuple(document.notes),
        since_search=document.since_search,
    )
    return predictor


def _window(document: _Model) -> RunWindow:
    window = RunWindow(document.runs(), document.capacity)
    window.seen = max(document.seen, window.seen)
    return window


def _common(predictor: PublishedPredictor | RobustPredictor, state: PublishedState | RobustState) -> dict[str, Any]:
    domain = state.domain
    return {
        "application": predictor.application,
        "cluster": predictor.cluster,
        "capacity": predictor.window.capacity,
        "window": [
            (run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw, run.execution_time)
            for run in predictor.window
        ],
        "seen": predictor.window.seen,
        "scores": list(state.calibration.scores),
        "rehearsed": state.calibration.rehearsed,
        "domain": _Domain(
            smallest_size=domain.smallest_size,
            largest_size=domain.largest_size,
            fewest_processors=domain.fewest_processors,
            most_processors=domain.most_processors,
        ),
        "notes": list(state.notes),
        "since_search": state.since_search,
    }


def _five(found: tuple[str, ...]) -> Names:
    comp, comm, bw, pcomp, pcomm = found
    return comp, comm, bw, pcomp, pcomm


def _checked(kind: type[Document], text: str, where: str) -> Document:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise InputError(f"not a whole JSON document ({first['ctx']['error']})", where=where) from None
        place = ".".join(str(step) for step in first["loc"])
        raise InputError(f"{place}: {first['msg']}", where=where) from None
