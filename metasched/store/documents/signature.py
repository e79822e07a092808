"""Documents of signature predictors: rules, hardware, and what runs added; times that were computed are kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from metasched.predictors.analytic.signature import SignaturePredictor
from metasched.predictors.memory.calibration import Calibration
from metasched.signature.application import Application
from metasched.signature.expanding import MOST_PROCESSES
from metasched.signature.prediction import Hardware
from metasched.store.documents.entries import EntryDocument
from metasched.store.documents.parts import Count, Part, Positive, Row, Scores, rows, window

_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]
#: Computation, latencies and bytes of each phase (s); None for a count that the rules do not hold for.
_Phases = Annotated[list[tuple[_Time, _Time, _Time]], Field(min_length=1, max_length=100_000)] | None


class SignatureDocument(Part):
    """A signature predictor as JSON: its rules, hardware and runs."""

    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    method: Literal["signature"] = "signature"
    application: str
    cluster: str
    #: As the document of ``metasched signature fit`` has them, and checked as there.
    rules: dict[str, Any]
    device: EntryDocument
    network: EntryDocument
    per_node: Count
    problem_size: Positive
    timed: dict[_Processes, Positive]
    notes: Annotated[list[str], Field(max_length=1_000)]
    #: What was computed before, which takes longer than to read it.
    known: dict[_Processes, _Phases]
    window: list[Row]
    seen: Annotated[int, Field(ge=0)]
    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, predictor: SignaturePredictor) -> SignatureDocument:
        """What a predictor is kept as."""
        return cls(
            application=predictor.application,
            cluster=predictor.cluster,
            rules=predictor.rules.as_dict(),
            device=EntryDocument.of(predictor.hardware.device),
            network=EntryDocument.of(predictor.hardware.network),
            per_node=predictor.hardware.per_node,
            problem_size=predictor.problem_size,
            timed=predictor.timed,
            notes=list(predictor.notes),
            known={count: None if each is None else each.tolist() for count, each in predictor.known.items()},
            window=rows(predictor.window),
            seen=predictor.window.seen,
            scores=list(predictor.calibration.scores),
            rehearsed=predictor.calibration.rehearsed,
        )

    def build(self) -> SignaturePredictor:
        """The predictor; its factors are fitted again to the runs."""
        predictor = SignaturePredictor(
            Application.of(self.rules),
            Hardware(self.device.build(), self.network.build(), self.per_node),
            problem_size=self.problem_size,
            timed=self.timed,
            application=self.application,
            cluster=self.cluster,
            notes=self.notes,
            known={count: None if each is None else np.array(each) for count, each in self.known.items()},
        )
        kept = window(self.window, self.application, self.cluster, self.seen, predictor.window.capacity)
        predictor.restore(kept, Calibration(tuple(self.scores), self.rehearsed))
        return predictor
