"""Documents of the adaptive predictors, published and robust."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, model_validator

from metasched.predictors.formulas.published import PublishedPredictor, PublishedState
from metasched.predictors.memory.window import RunWindow, measured
from metasched.predictors.robust.drift import Drift, Surprise
from metasched.predictors.robust.loads import Loads
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.robust.state import RobustState
from metasched.predictors.robust.structure import Numbers, Structure
from metasched.records import InputError, Run
from metasched.store.documents.parts import (
    Count,
    DomainPart,
    LearnedPart,
    ListPart,
    Part,
    RecordPart,
    Row,
    ScalesPart,
    SettingPart,
    rows,
    runs_of,
    settings_of,
    window,
)
from monitors.validated_fields import Positive

#: Fields of robust documents from when the method was a committee, which are passed over.
COMMITTEE = ("trend", "kernels", "record", "extrapolation")
#: Factor on the noise of robust documents from before the noise on one processor was learned, and what this then was,
#: relative to that on many: where no load varied, and where loads varied.
EARLIER_NOISE = {False: (1.67, 1.0), True: (1.8, 1.0 / 3.0)}


class _Adaptive(LearnedPart):
    capacity: Annotated[int, Field(ge=1, le=1_000_000)]
    #: Runs of the window, oldest first.
    window: list[Row] = Field(min_length=1)
    #: Their settings, in the same order; none where no run has any.
    settings: list[SettingPart] = Field(default_factory=list)
    seen: Count
    domain: DomainPart
    notes: list[str]
    since_search: Annotated[int, Field(ge=0)]

    def runs(self) -> RunWindow:
        """The window of runs, with all that it had seen."""
        return window(self.window, self.application, self.cluster, self.seen, self.capacity, self.settings)


class PublishedDocument(_Adaptive):
    """A published predictor as JSON: its sorted list, window and errors."""

    method: Literal["published"] = "published"
    models: Literal["multiple", "single"]
    parallel: ListPart
    alone: ListPart | None
    tried: list[int]

    @staticmethod
    def converted(predictor: PublishedPredictor) -> dict[str, Any]:
        """The sorted lists by their square-root sums."""
        parallel, alone = predictor.state.parallel, predictor.state.alone
        return {"parallel": ListPart.of(parallel), "alone": None if alone is None else ListPart.of(alone)}

    def build(self) -> PublishedPredictor:
        """The predictor that was written, ready to predict and to learn."""
        predictor = PublishedPredictor(self.application, self.cluster, models=self.models, capacity=self.capacity)
        predictor.window = self.runs()
        predictor.state = PublishedState(
            parallel=self.parallel.build(),
            alone=self.alone.build() if self.alone is not None else None,
            calibration=self.calibration,
            domain=self.domain.build(),
            tried=tuple(self.tried),
            notes=tuple(self.notes),
            since_search=self.since_search,
        )
        return predictor


class _Formula(Part):
    numbers: dict[str, FiniteFloat]
    size: Positive
    processors: Positive
    bandwidth: Positive
    #: Numbers of the effects of settings, in their order.
    powers: list[FiniteFloat] = Field(default_factory=list)

    def build(self) -> Structure:
        if set(self.numbers) != set(Numbers._fields):
            raise InputError(f"numbers are {', '.join(self.numbers)}, expected {', '.join(Numbers._fields)}")
        return Structure(Numbers(**self.numbers), self.size, self.processors, self.bandwidth, powers=tuple(self.powers))


class _Surprise(RecordPart):
    record = Surprise

    number: Annotated[int, Field(ge=0)]
    user: str
    error: FiniteFloat
    spread: Positive


class _Drift(RecordPart):
    record = Drift

    since: Annotated[int, Field(ge=0)]
    factor: Positive
    runs: Count


class _Lent(Part):
    """Runs of another platform, and their settings as above."""

    cluster: str
    window: list[Row] = Field(min_length=1)
    settings: list[SettingPart] = Field(default_factory=list)


class RobustDocument(_Adaptive):
    """A robust predictor as JSON: its model, window and errors."""

    method: Literal["robust"] = "robust"
    #: Whose runs those of the window are, and which users are not believed; empty in documents without users.
    users: list[str] = Field(default_factory=list)
    doubted: list[str] = Field(default_factory=list)
    surprises: list[_Surprise] = Field(default_factory=list)
    drift: _Drift | None = None
    #: None in documents of the committee that the method once was: the model is fitted again to the window.
    formula: _Formula | None = None
    scales: ScalesPart | None = None
    weights: list[Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=list)
    #: The borrowed runs, by platform.
    lent: Annotated[list[_Lent], Field(max_length=1000)] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _without_committee(cls, document: Any) -> Any:
        if not isinstance(document, dict) or "trend" not in document:
            return document
        return {name: value for name, value in document.items() if name not in COMMITTEE} | {
            "scores": [],
            "rehearsed": 0,
        }

    @staticmethod
    def converted(predictor: RobustPredictor) -> dict[str, Any]:
        """The model by its numbers, and whose runs those of the window and the borrowed ones are."""
        state, model = predictor.state, predictor.state.model
        formula, users = model.formula, [run.user for run in predictor.window]
        lent: dict[str, list[Run]] = {}
        for run in predictor.known(state.doubted).lent:
            lent.setdefault(run.cluster, []).append(run)
        return {
            "formula": _Formula(
                numbers=formula.numbers._asdict(),
                size=formula.size,
                processors=formula.processors,
                bandwidth=formula.bandwidth,
                powers=list(formula.powers),
            ),
            "scales": model.scales,
            "weights": model.weights.tolist(),
            "users": users if any(users) else [],
            "doubted": sorted(state.doubted),
            "lent": [
                _Lent(cluster=cluster, window=rows(runs), settings=settings_of(runs)) for cluster, runs in lent.items()
            ],
        }

    def runs(self) -> RunWindow:
        """The window of runs, with all that it had seen."""
        bare = super().runs()
        if not self.users:
            return bare
        if len(self.users) != len(self.window):
            raise InputError(f"users has {len(self.users)} names, expected {len(self.window)}, one for each run")
        of_user = zip(bare, self.users, strict=True)
        runs = (replace(run, extra=MappingProxyType({**run.extra, "user": user})) for run, user in of_user)
        return RunWindow(runs, self.capacity, self.seen)

    def build(self) -> RobustPredictor:
        """The predictor; its process is conditioned again on the window."""
        predictor = RobustPredictor(self.application, self.cluster, capacity=self.capacity)
        predictor.borrowing(
            run for part in self.lent for run in runs_of(part.window, self.application, part.cluster, part.settings)
        )
        if self.formula is None or self.scales is None:
            return predictor.fit(self.runs())
        predictor.window = self.runs()
        doubted = frozenset(self.doubted)
        known = predictor.known(doubted)
        scales = self.scales.build()
        if "alone" not in self.scales.model_fields_set:
            factor, alone = EARLIER_NOISE[Loads.of(measured(known.runs)).varied]
            scales = replace(scales, noise=factor * scales.noise, alone=alone)
        if not known.own:
            raise InputError("doubted names every user of the window, expected some to be believed")
        predictor.state = RobustState(
            model=Model.of(
                self.formula.build(), measured(known.runs), scales, self.weights, known.settings, known.platforms
            ),
            calibration=self.calibration,
            domain=self.domain.build(),
            notes=tuple(self.notes),
            since_search=self.since_search,
            doubted=doubted,
            surprises=tuple(one.build() for one in self.surprises),
            drift=self.drift.build() if self.drift is not None else None,
        )
        return predictor


#: Documents that may be part of another.
AdaptiveDocument = Annotated[PublishedDocument | RobustDocument, Field(discriminator="method")]
