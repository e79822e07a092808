"""Documents of cloud predictors: profiles and servers, to fit the network again, and corrections by runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.model import Method
from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.store.documents.parts import LearnedPart, RecordPart, Seconds
from monitors.validated_fields import Positive


class _Profile(RecordPart):
    record = Profile

    processes: Annotated[int, Field(ge=2, le=100_000)]
    sends: Positive
    message_size: Positive
    waiting_time: Seconds
    execution_time: Positive
    mean_distance: Positive | None
    exchanges: Positive | None
    dimensions: Annotated[int, Field(ge=1, le=6)] | None


class _Server(RecordPart):
    record = Server

    name: str
    cores: Annotated[int, Field(ge=1, le=100_000)]
    speed: Positive


class _Hardware(RecordPart):
    record = Hardware

    servers: Annotated[list[_Server], Field(min_length=1, max_length=100_000)]
    word_time: Seconds
    startup_time: Seconds
    shared_word_time: Seconds | None


class CloudDocument(LearnedPart):
    """A cloud predictor as JSON: its fitted model and runs."""

    method: Literal["cloud"] = "cloud"
    network: Method
    profiles: Annotated[list[_Profile], Field(min_length=3, max_length=10_000)]
    hardware: _Hardware
    problem_size: Positive
    growth: FiniteFloat
    level: FiniteFloat

    @staticmethod
    def converted(predictor: CloudPredictor) -> dict[str, Any]:
        """The network, as it was fitted."""
        return {"network": predictor.model.method}

    def build(self) -> CloudPredictor:
        """The predictor; its network is fitted again to the profiles."""
        predictor = CloudPredictor(
            [profile.build() for profile in self.profiles],
            self.hardware.build(),
            problem_size=self.problem_size,
            method=self.network,
            application=self.application,
            cluster=self.cluster,
        )
        predictor.growth, predictor.level = self.growth, self.level
        predictor.window, predictor.calibration = self.runs_in(predictor.window.capacity), self.calibration
        return predictor
