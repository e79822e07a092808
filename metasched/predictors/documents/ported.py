"""Documents of ported predictors: the reference model in full, the scale factors, and what the target has taught."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from metasched.predictors.calibration import Calibration
from metasched.predictors.documents.adaptive import AdaptiveDocument, document_of
from metasched.predictors.documents.parts import Count, DomainPart, Part, Positive, Row, Scores, rows
from metasched.predictors.porting.factors import Factor
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.predictor import PortedPredictor, PortedState
from metasched.predictors.porting.transfer import TransferScales
from metasched.predictors.window import RunWindow
from metasched.records import Run

Nodes = Annotated[int | None, Field(ge=1, le=1_000_000)]


class _Factor(Part):
    value: Positive
    low: Positive
    high: Positive

    @classmethod
    def of(cls, factor: Factor) -> _Factor:
        return cls(value=factor.value, low=factor.low, high=factor.high)

    def build(self) -> Factor:
        return Factor(self.value, self.low, self.high)


class _Scales(Part):
    bend: Positive
    lengths: tuple[Positive, Positive, Positive, Positive]
    scaling: Positive
    noise: Positive


class PortedDocument(Part):
    """A ported predictor."""

    format: Literal["metasched-model"] = "metasched-model"
    version: Literal[1] = 1
    method: Literal["ported"] = "ported"
    reference: AdaptiveDocument
    cluster: str
    rcpu: _Factor
    rbw: _Factor
    bandwidth_ratio: Positive
    #: Dedicated runs of the reference, and how many nodes both platforms have.
    dedicated: list[Row] = Field(default_factory=list)
    reference_nodes: Nodes = None
    target_nodes: Nodes = None
    capacity: Annotated[int, Field(ge=1, le=1_000_000)]
    #: Runs of the target, oldest first.
    window: list[Row] = Field(min_length=1)
    seen: Count
    scales: _Scales
    scores: Scores
    rehearsed: Annotated[int, Field(ge=0)]
    domain: DomainPart
    notes: list[str]
    since_search: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, predictor: PortedPredictor) -> PortedDocument:
        """What a predictor is kept as."""
        state = predictor.state
        scales = state.process.scales
        return cls(
            reference=document_of(predictor.reference),
            cluster=predictor.cluster,
            rcpu=_Factor.of(predictor.rcpu),
            rbw=_Factor.of(predictor.rbw),
            bandwidth_ratio=predictor.bandwidth_ratio,
            dedicated=rows(predictor.dedicated_runs),
            reference_nodes=predictor.formula.sharing.reference,
            target_nodes=predictor.formula.sharing.target,
            capacity=predictor.window.capacity,
            window=rows(predictor.window),
            seen=predictor.window.seen,
            scales=_Scales(bend=scales.bend, lengths=scales.lengths, scaling=scales.scaling, noise=scales.noise),
            scores=list(state.calibration.scores),
            rehearsed=state.calibration.rehearsed,
            domain=DomainPart.of(state.domain),
            notes=list(state.notes),
            since_search=state.since_search,
        )

    def build(self) -> PortedPredictor:
        """The predictor; its process is conditioned again on the window."""
        reference = self.reference.build()
        predictor = PortedPredictor(
            reference,
            self.cluster,
            self.rcpu.build(),
            self.rbw.build(),
            bandwidth_ratio=self.bandwidth_ratio,
            dedicated_runs=[Run(reference.application, reference.cluster, *row) for row in self.dedicated],
            sharing=LinkSharing(self.reference_nodes, self.target_nodes),
            capacity=self.capacity,
        )
        predictor.window = RunWindow(
            (Run(predictor.application, self.cluster, *row) for row in self.window), self.capacity
        )
        predictor.window.seen = max(self.seen, predictor.window.seen)
        scales = TransferScales(self.scales.bend, self.scales.lengths, self.scales.scaling, self.scales.noise)
        predictor.state = PortedState(
            predictor.fit_process(scales),
            Calibration(tuple(self.scores), self.rehearsed),
            self.domain.build(),
            tuple(self.notes),
            self.since_search,
        )
        return predictor
