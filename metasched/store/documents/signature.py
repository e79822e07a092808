"""Documents of signature predictors: rules, hardware, corrections by runs, and the times computed so far."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from metasched.predictors.analytic.signature import SignaturePredictor
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import MOST_PROCESSES
from metasched.signature.times.hardware import Hardware
from metasched.store.documents.entries import EntryDocument
from metasched.store.documents.parts import Count, LearnedPart, Seconds
from monitors.validated_fields import Positive

_Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]
#: Computation, latencies and bytes of each phase (s); None for a count that the rules do not hold for.
_Phases = Annotated[list[tuple[Seconds, Seconds, Seconds]], Field(min_length=1, max_length=100_000)] | None


class SignatureDocument(LearnedPart):
    """A signature predictor as JSON: its rules, hardware and runs."""

    method: Literal["signature"] = "signature"
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

    @staticmethod
    def converted(predictor: SignaturePredictor) -> dict[str, Any]:
        """The rules as their own document, the hardware by its parts, and arrays as lists."""
        hardware = predictor.hardware
        return {
            "rules": predictor.rules.as_dict(),
            "device": hardware.device,
            "network": hardware.network,
            "per_node": hardware.per_node,
            "known": {count: None if each is None else each.tolist() for count, each in predictor.known.items()},
        }

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
        predictor.restore(self.runs_in(predictor.window.capacity), self.calibration)
        return predictor
