"""Documents of SPMD predictors: the given phase, and the parameters fitted to the runs."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from metasched.predictors.analytic.spmd.application import InputOutput, Phase, Spread
from metasched.predictors.analytic.spmd.predictor import SpmdFit, SpmdPredictor
from metasched.store.documents.parts import Count, Finite, LearnedPart, Part, RecordPart, Seconds
from monitors.validated_fields import Positive

_Values = Annotated[list[Seconds], Field(min_length=9, max_length=9)]
_Origin = Annotated[list[FiniteFloat], Field(min_length=4, max_length=4)]


class _Phase(RecordPart):
    record = Phase

    parallel_computation: Seconds
    serial_computation: Seconds
    communication_startup: Seconds
    communication_transfer: Seconds
    io_startup: Seconds
    io_transfer: Seconds
    contention: Annotated[float, Field(ge=0, le=1)]
    synchronization: Count | None
    computation_bursts: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    cycles: Positive
    dimensions: Finite[Annotated[float, Field(ge=1, allow_inf_nan=False)]]
    startup_exponent: FiniteFloat
    io: InputOutput
    spread: Spread

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


class SpmdDocument(LearnedPart):
    """An SPMD predictor, fitted or waiting for more runs."""

    method: Literal["spmd"] = "spmd"
    template: _Phase
    disks: Annotated[int, Field(ge=1, le=100_000)]
    fit: _Fit | None

    @staticmethod
    def converted(predictor: SpmdPredictor) -> dict[str, Any]:
        """What was fitted, whose arrays become lists."""
        return {"fit": None if predictor.fitted is None else _Fit.of(predictor.fitted)}

    def build(self) -> SpmdPredictor:
        """The predictor that was written, ready to predict and to learn."""
        predictor = SpmdPredictor(
            self.template.build(), disks=self.disks, application=self.application, cluster=self.cluster
        )
        predictor.fitted = None if self.fit is None else self.fit.build()
        predictor.window, predictor.calibration = self.runs_in(predictor.window.capacity), self.calibration
        return predictor
