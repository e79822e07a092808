"""Documents of simulated applications: the system, the program, corrections by runs, and the results so far."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from metasched.predictors.analytic.simulated import MOST_KNOWN, SimulatedPredictor
from metasched.simulation.language import LONGEST
from metasched.simulation.system import MOST, Network, Nodes, System
from metasched.store.documents.entries import EntryDocument
from metasched.store.documents.parts import LearnedPart, RecordPart, Seconds
from monitors.validated_fields import Positive

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Count = Annotated[int, Field(ge=1, le=MOST)]


class _Network(RecordPart):
    record = Network

    name: _Name
    entry: EntryDocument
    within: str = ""


class _Nodes(RecordPart):
    record = Nodes

    name: _Name
    count: _Count
    network: _Name
    device: EntryDocument
    slots: dict[_Name, _Count]
    bus: EntryDocument | None
    disk: EntryDocument | None
    failure_rate: Seconds | None


class _System(RecordPart):
    record = System

    name: str
    networks: Annotated[list[_Network], Field(min_length=1, max_length=1_000)]
    nodes: Annotated[list[_Nodes], Field(min_length=1, max_length=1_000)]


class SimulatedDocument(LearnedPart):
    """A simulated application as JSON, with the hardware of its platform."""

    method: Literal["simulated"] = "simulated"
    system: _System
    text: Annotated[str, Field(max_length=LONGEST)]
    label: _Name
    size: _Name
    processes: dict[_Name, _Count]
    variables: dict[_Name, FiniteFloat]
    #: N, P, and what was simulated of them: computation, latencies and bytes (s), or None where it cannot run.
    known: Annotated[
        list[tuple[Positive, _Count, tuple[Seconds, Seconds, Seconds] | None]], Field(max_length=MOST_KNOWN)
    ]

    @staticmethod
    def converted(predictor: SimulatedPredictor) -> dict[str, Any]:
        """The results so far, whose arrays become tuples."""
        found = [(n, p, None if each is None else tuple(each.tolist())) for (n, p), each in predictor.known.items()]
        return {"known": found}

    def build(self) -> SimulatedPredictor:
        """The predictor; its factors are fitted again to the runs."""
        predictor = SimulatedPredictor(
            self.system.build(),
            self.text,
            label=self.label,
            size=self.size,
            processes=self.processes,
            variables={name: int(each) if each == int(each) else each for name, each in self.variables.items()},
            application=self.application,
            cluster=self.cluster,
            known={(n, p): None if each is None else np.array(each) for n, p, each in self.known},
        )
        predictor.restore(self.runs_in(predictor.window.capacity), self.calibration)
        return predictor
