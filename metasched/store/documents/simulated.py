"""Documents of simulated applications: the system, the text, and what runs added; what was simulated is kept."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from metasched.predictors.analytic.simulated import MOST_KNOWN, SimulatedPredictor
from metasched.predictors.memory.calibration import Calibration
from metasched.simulation.language import LONGEST
from metasched.simulation.system import MOST, Network, Nodes, System
from metasched.store.documents.entries import EntryDocument
from metasched.store.documents.parts import Part, Positive, Row, Scores, rows, window

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Count = Annotated[int, Field(ge=1, le=MOST)]
_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Network(Part):
    name: _Name
    entry: EntryDocument
    within: str = ""


class _Nodes(Part):
    name: _Name
    count: _Count
    network: _Name
    device: EntryDocument
    slots: dict[_Name, _Count]
    bus: EntryDocument | None
    disk: EntryDocument | None
    failure_rate: _Time | None

    @classmethod
    def of(cls, nodes: Nodes) -> _Nodes:
        return cls(
            name=nodes.name,
            count=nodes.count,
            network=nodes.network,
            device=EntryDocument.of(nodes.device),
            slots=dict(nodes.slots),
            bus=None if nodes.bus is None else EntryDocument.of(nodes.bus),
            disk=None if nodes.disk is None else EntryDocument.of(nodes.disk),
            failure_rate=nodes.failure_rate,
        )

    def build(self) -> Nodes:
        return Nodes(
            self.name,
            self.count,
            self.network,
            self.device.build(),
            dict(self.slots),
            None if self.bus is None else self.bus.build(),
            None if self.disk is None else self.disk.build(),
            self.failure_rate,
        )


class _System(Part):
    name: str
    networks: Annotated[list[_Network], Field(min_length=1, max_length=1_000)]
    nodes: Annotated[list[_Nodes], Field(min_length=1, max_length=1_000)]

    @classmethod
    def of(cls, system: System) -> _System:
        networks = [
            _Network(name=each.name, entry=EntryDocument.of(each.entry), within=each.within) for each in system.networks
        ]
        return cls(name=system.name, networks=networks, nodes=[_Nodes.of(each) for each in system.nodes])

    def build(self) -> System:
        networks = tuple(Network(each.name, each.entry.build(), each.within) for each in self.networks)
        return System(self.name, networks, tuple(each.build() for each in self.nodes))


class SimulatedDocument(Part):
    """A simulated application as JSON, with the hardware of its platform."""

    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    method: Literal["simulated"] = "simulated"
    application: str
    cluster: str
    system: _System
    text: Annotated[str, Field(max_length=LONGEST)]
    label: _Name
    size: _Name
    processes: dict[_Name, _Count]
    variables: dict[_Name, FiniteFloat]
    #: N, P, and what was simulated of them: computation, latencies and bytes (s), or None where it cannot run.
    known: Annotated[list[tuple[Positive, _Count, tuple[_Time, _Time, _Time] | None]], Field(max_length=MOST_KNOWN)]
    window: list[Row]
    seen: Annotated[int, Field(ge=0)]
    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, predictor: SimulatedPredictor) -> SimulatedDocument:
        """What a predictor is kept as."""
        return cls(
            application=predictor.application,
            cluster=predictor.cluster,
            system=_System.of(predictor.system),
            text=predictor.text,
            label=predictor.label,
            size=predictor.size,
            processes=predictor.processes,
            variables=predictor.variables,
            known=[(n, p, None if each is None else tuple(each.tolist())) for (n, p), each in predictor.known.items()],
            window=rows(predictor.window),
            seen=predictor.window.seen,
            scores=list(predictor.calibration.scores),
            rehearsed=predictor.calibration.rehearsed,
        )

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
        kept = window(self.window, self.application, self.cluster, self.seen, predictor.window.capacity)
        predictor.restore(kept, Calibration(tuple(self.scores), self.rehearsed))
        return predictor
