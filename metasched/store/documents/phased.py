"""Documents of phased predictors: for each phase its two robust models and the profile of its work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from metasched.predictors.memory.calibration import Calibration
from metasched.predictors.phases.phase import PROCESS_REVISIT, PhaseModel
from metasched.predictors.phases.predictor import PhasedPredictor, PhasedState
from metasched.predictors.phases.profile import WorkProfile
from metasched.store.documents.adaptive import RobustDocument
from metasched.store.documents.parts import CalibratedPart, DomainPart, Part, Scores
from monitors.validated_fields import Positive


class _Phase(Part):
    name: Annotated[str, Field(min_length=1)]
    slowest: RobustDocument
    processes: RobustDocument | None
    density: Annotated[list[Positive], Field(min_length=2, max_length=1000)]

    @classmethod
    def of(cls, phase: PhaseModel) -> _Phase:
        return cls(
            name=phase.name,
            slowest=RobustDocument.of(phase.slowest),
            processes=RobustDocument.of(phase.processes) if phase.processes is not None else None,
            density=phase.profile.density.tolist(),
        )

    def build(self) -> PhaseModel:
        processes = self.processes.build() if self.processes is not None else None
        if processes is not None:
            processes.revisit = PROCESS_REVISIT
        return PhaseModel(self.name, self.slowest.build(), processes, WorkProfile(np.array(self.density)))


class PhasedDocument(CalibratedPart):
    """A phased predictor as JSON: the models of each phase."""

    method: Literal["phased"] = "phased"
    application: str
    cluster: str
    phases: list[_Phase] = Field(min_length=1)
    overhead: Positive
    scores_of_processes: Scores
    rehearsed_of_processes: Annotated[int, Field(ge=0)]
    shift_of_processes: FiniteFloat = 0.0
    domain: DomainPart

    @staticmethod
    def converted(predictor: PhasedPredictor) -> dict[str, Any]:
        """The phases, and the scores of predictions from the loads of every process."""
        state = predictor.state
        return {
            "phases": [_Phase.of(phase) for phase in state.phases],
            "scores_of_processes": list(state.of_processes.scores),
            "rehearsed_of_processes": state.of_processes.rehearsed,
            "shift_of_processes": state.of_processes.shift,
        }

    def build(self) -> PhasedPredictor:
        """The predictor that was written, ready to predict and to learn."""
        predictor = PhasedPredictor(self.application, self.cluster)
        predictor.state = PhasedState(
            tuple(phase.build() for phase in self.phases),
            self.overhead,
            self.calibration,
            Calibration(tuple(self.scores_of_processes), self.rehearsed_of_processes, self.shift_of_processes),
            self.domain.build(),
        )
        return predictor
