"""Documents of cloud predictors: profiles and servers, from which the network is fitted again, and what runs added."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.model import Method
from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.memory.calibration import Calibration
from metasched.store.documents.parts import Part, Positive, Row, Scores, rows, window

_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Profile(Part):
    processes: Annotated[int, Field(ge=2, le=100_000)]
    sends: Positive
    message_size: Positive
    waiting_time: _Time
    execution_time: Positive
    mean_distance: Positive | None
    exchanges: Positive | None
    dimensions: Annotated[int, Field(ge=1, le=6)] | None


class _Server(Part):
    name: str
    cores: Annotated[int, Field(ge=1, le=100_000)]
    speed: Positive


class _Hardware(Part):
    servers: Annotated[list[_Server], Field(min_length=1, max_length=100_000)]
    word_time: _Time
    startup_time: _Time
    shared_word_time: _Time | None


class CloudDocument(Part):
    """A cloud predictor as JSON: its fitted model and runs."""

    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    method: Literal["cloud"] = "cloud"
    application: str
    cluster: str
    network: Method
    profiles: Annotated[list[_Profile], Field(min_length=3, max_length=10_000)]
    hardware: _Hardware
    problem_size: Positive
    growth: FiniteFloat
    level: FiniteFloat
    window: list[Row]
    seen: Annotated[int, Field(ge=0)]
    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, predictor: CloudPredictor) -> CloudDocument:
        """What a predictor is kept as."""
        hardware = predictor.hardware
        return cls(
            application=predictor.application,
            cluster=predictor.cluster,
            network=predictor.model.method,
            profiles=[
                _Profile(**{name: getattr(profile, name) for name in _Profile.model_fields})
                for profile in predictor.profiles
            ],
            hardware=_Hardware(
                servers=[_Server(name=each.name, cores=each.cores, speed=each.speed) for each in hardware.servers],
                word_time=hardware.word_time,
                startup_time=hardware.startup_time,
                shared_word_time=hardware.shared_word_time,
            ),
            problem_size=predictor.problem_size,
            growth=predictor.growth,
            level=predictor.level,
            window=rows(predictor.window),
            seen=predictor.window.seen,
            scores=list(predictor.calibration.scores),
            rehearsed=predictor.calibration.rehearsed,
        )

    def build(self) -> CloudPredictor:
        """The predictor; its network is fitted again to the profiles."""
        hardware = self.hardware
        predictor = CloudPredictor(
            [Profile(**profile.model_dump()) for profile in self.profiles],
            Hardware(
                tuple(Server(**server.model_dump()) for server in hardware.servers),
                hardware.word_time,
                hardware.startup_time,
                hardware.shared_word_time,
            ),
            problem_size=self.problem_size,
            method=self.network,
            application=self.application,
            cluster=self.cluster,
        )
        predictor.growth, predictor.level = self.growth, self.level
        predictor.window = window(self.window, self.application, self.cluster, self.seen, predictor.window.capacity)
        predictor.calibration = Calibration(tuple(self.scores), self.rehearsed)
        return predictor
