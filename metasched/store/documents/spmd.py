"""Documents of SPMD predictors: the phase that was known, and what was fitted to the runs."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from metasched.predictors.analytic.spmd.application import InputOutput, Phase, Spread
from metasched.predictors.analytic.spmd.predictor import SpmdFit, SpmdPredictor
from metasched.predictors.memory.calibration import Calibration
from metasched.store.documents.parts import Count, Part, Positive, Row, Scores, rows, window

_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Values = Annotated[list[_Time], Field(min_length=9, max_length=9)]
_Origin = Annotated[list[FiniteFloat], Field(min_length=4, max_length=4)]


class _Phase(Part):
    parallel_computation: _Time
    serial_computation: _Time
    communication_startup: _Time
    communication_transfer: _Time
    io_startup: _Time
    io_transfer: _Time
    contention: Annotated[float, Field(ge=0, le=1)]
    synchronization: Count | None
    computation_bursts: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    cycles: Positive
    #: None for infinite, which JSON does not know.
    dimensions: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None
    startup_exponent: FiniteFloat
    io: InputOutput
    spread: Spread

    @classmethod
    def of(cls, phase: Phase) -> _Phase:
        fields: dict[str, Any] = {name: getattr(phase, name) for name in cls.model_fields}
        return cls(**fields | {"dimensions": None if math.isinf(phase.dimensions) else phase.dimensions})

    def build(self) -> Phase:
        return Phase(**self.model_dump() | {"dimensions": math.inf if self.dimensions is None else self.dimensions})


class _Fit(Part):
    values: _Values
    origin: _Origin
    level: FiniteFloat
    fitted_to: Count

    @classmethod
    def of(cls, fit: SpmdFit) -> _Fit:
        return cls(values=fit.values.tolist(), origin=fit.origin.tolist(), level=fit.level, fitted_to=fit.fitted_to)

    def build(self) -> SpmdFit:
        return SpmdFit(np.array(self.values), np.array(self.origin), self.level, self.fitted_to)


class SpmdDocument(Part):
    """An SPMD predictor, fitted or waiting for more runs."""

    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    method: Literal["spmd"] = "spmd"
    application: str
    cluster: str
    template: _Phase
    disks: Annotated[int, Field(ge=1, le=100_000)]
    fit: _Fit | None
    window: list[Row]
    seen: Annotated[int, Field(ge=0)]
    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, predictor: SpmdPredictor) -> SpmdDocument:
        """What a predictor is kept as."""
        return cls(
            application=predictor.application,
            cluster=predictor.cluster,
            template=_Phase.of(predictor.template),
            disks=predictor.disks,
            fit=None if predictor.fitted is None else _Fit.of(predictor.fitted),
            window=rows(predictor.window),
            seen=predictor.window.seen,
            scores=list(predictor.calibration.scores),
            rehearsed=predictor.calibration.rehearsed,
        )

    def build(self) -> SpmdPredictor:
        """The predictor that was written, ready to predict and to learn."""
        predictor = SpmdPredictor(
            self.template.build(), disks=self.disks, application=self.application, cluster=self.cluster
        )
        predictor.fitted = None if self.fit is None else self.fit.build()
        predictor.window = window(self.window, self.application, self.cluster, self.seen, predictor.window.capacity)
        predictor.calibration = Calibration(tuple(self.scores), self.rehearsed)
        return predictor
