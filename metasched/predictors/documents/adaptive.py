"""Documents of the adaptive predictors, published and robust."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from metasched.predictors.calibration import Calibration
from metasched.predictors.committee import Record
from metasched.predictors.documents.parts import Count, DomainPart, ListPart, Part, Positive, Row, Scores, rows
from metasched.predictors.experts import NAMES, Experts
from metasched.predictors.extrapolation import Extrapolation
from metasched.predictors.published import PublishedPredictor, PublishedState
from metasched.predictors.residual import Hyperparameters
from metasched.predictors.robust import RobustPredictor
from metasched.predictors.robust_state import RobustState
from metasched.predictors.trend import Trend
from metasched.predictors.window import RunWindow
from metasched.records import Run


class _Adaptive(Part):
    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    application: str
    cluster: str
    capacity: Annotated[int, Field(ge=1, le=1_000_000)]
    #: Runs of the window, oldest first.
    window: list[Row] = Field(min_length=1)
    seen: Count
    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]
    domain: DomainPart
    notes: list[str]
    since_search: Annotated[int, Field(ge=0)]

    def runs(self) -> RunWindow:
        """The window, as it was."""
        window = RunWindow((Run(self.application, self.cluster, *row) for row in self.window), self.capacity)
        window.seen = max(self.seen, window.seen)
        return window


class PublishedDocument(_Adaptive):
    """A published predictor."""

    method: Literal["published"] = "published"
    models: Literal["multiple", "single"]
    parallel: ListPart
    alone: ListPart | None
    tried: list[int]

    @classmethod
    def of(cls, predictor: PublishedPredictor) -> PublishedDocument:
        """What a predictor is kept as."""
        state = predictor.state
        return cls(
            **_common(predictor, state),
            models=predictor.models,
            parallel=ListPart.of(state.parallel),
            alone=ListPart.of(state.alone) if state.alone is not None else None,
            tried=list(state.tried),
        )

    def build(self) -> PublishedPredictor:
        """The predictor."""
        predictor = PublishedPredictor(self.application, self.cluster, models=self.models, capacity=self.capacity)
        predictor.window = self.runs()
        predictor.state = PublishedState(
            parallel=self.parallel.build(),
            alone=self.alone.build() if self.alone is not None else None,
            calibration=Calibration(tuple(self.scores), self.rehearsed),
            domain=self.domain.build(),
            tried=tuple(self.tried),
            notes=tuple(self.notes),
            since_search=self.since_search,
        )
        return predictor


class _Kernel(Part):
    variance: Positive
    length_scales: tuple[Positive, Positive, Positive, Positive]
    noise: Positive

    @classmethod
    def of(cls, found: Hyperparameters) -> _Kernel:
        return cls(variance=found.variance, length_scales=found.length_scales, noise=found.noise)

    def build(self) -> Hyperparameters:
        return Hyperparameters(self.variance, self.length_scales, self.noise)


class _Record(Part):
    squares: Annotated[list[Positive], Field(min_length=len(NAMES), max_length=len(NAMES))]
    count: Positive


class _Extrapolation(Part):
    low: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    high: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    squares: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    @classmethod
    def of(cls, found: Extrapolation) -> _Extrapolation:
        return cls(low=found.low, high=found.high, squares=found.squares, weight=found.weight)

    def build(self) -> Extrapolation:
        return Extrapolation(self.low, self.high, self.squares, self.weight)


class RobustDocument(_Adaptive):
    """A robust predictor."""

    method: Literal["robust"] = "robust"
    trend: ListPart
    kernels: tuple[_Kernel, _Kernel] | None
    record: _Record
    #: Documents from before it was kept have none: the box of the window stands in.
    extrapolation: _Extrapolation | None = None

    @classmethod
    def of(cls, predictor: RobustPredictor) -> RobustDocument:
        """What a predictor is kept as."""
        state = predictor.state
        kernels = state.experts.kernels if state.experts is not None else None
        return cls(
            **_common(predictor, state),
            trend=ListPart.of(state.trend.models),
            kernels=(_Kernel.of(kernels[0]), _Kernel.of(kernels[1])) if kernels is not None else None,
            record=_Record(squares=list(state.record.squares), count=state.record.count),
            extrapolation=_Extrapolation.of(state.extrapolation),
        )

    def build(self) -> RobustPredictor:
        """The predictor; its committee is fitted again to the window."""
        predictor = RobustPredictor(self.application, self.cluster, capacity=self.capacity)
        predictor.window = self.runs()
        trend = Trend(self.trend.build())
        kept, extrapolation = predictor.window.observations(), self.extrapolation
        experts = None
        if self.kernels is not None:
            kernels = (self.kernels[0].build(), self.kernels[1].build())
            experts = Experts.fit(trend, kept, kernels, optimise=False)
        predictor.state = RobustState(
            trend=trend,
            experts=experts,
            record=Record(tuple(self.record.squares), self.record.count),
            calibration=Calibration(tuple(self.scores), self.rehearsed),
            domain=self.domain.build(),
            extrapolation=extrapolation.build() if extrapolation is not None else Extrapolation.of(kept),
            notes=tuple(self.notes),
            since_search=self.since_search,
        )
        return predictor


#: Documents that may stand inside another.
AdaptiveDocument = Annotated[PublishedDocument | RobustDocument, Field(discriminator="method")]


def document_of(predictor: PublishedPredictor | RobustPredictor) -> PublishedDocument | RobustDocument:
    """What an adaptive predictor is kept as."""
    if isinstance(predictor, PublishedPredictor):
        return PublishedDocument.of(predictor)
    return RobustDocument.of(predictor)


def _common(predictor: PublishedPredictor | RobustPredictor, state: PublishedState | RobustState) -> dict[str, Any]:
    return {
        "application": predictor.application,
        "cluster": predictor.cluster,
        "capacity": predictor.window.capacity,
        "window": rows(predictor.window),
        "seen": predictor.window.seen,
        "scores": list(state.calibration.scores),
        "rehearsed": state.calibration.rehearsed,
        "domain": DomainPart.of(state.domain),
        "notes": list(state.notes),
        "since_search": state.since_search,
    }
