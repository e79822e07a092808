"""Documents of ported predictors: the complete reference model, the scale factors, and what the target's runs added."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from metasched.predictors.porting.factors import Factor
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.predictor import PortedPredictor, PortedState
from metasched.store.documents import document_of
from metasched.store.documents.adaptive import AdaptiveDocument
from metasched.store.documents.parts import (
    CalibratedPart,
    Count,
    DomainPart,
    RecordPart,
    Row,
    ScalesPart,
    SettingPart,
    rows,
    runs_of,
    settings_of,
    window,
)
from monitors.validated_fields import Positive

Nodes = Annotated[int | None, Field(ge=1, le=1_000_000)]


class _Factor(RecordPart):
    record = Factor

    value: Positive
    low: Positive
    high: Positive


class _Scales(ScalesPart):
    lengths: Annotated[list[Positive], Field(min_length=4, max_length=4)]


class PortedDocument(CalibratedPart):
    """A ported predictor as JSON: the reference, the factors and the runs."""

    method: Literal["ported"] = "ported"
    reference: AdaptiveDocument
    cluster: str
    rcpu: _Factor
    rbw: _Factor
    bandwidth_ratio: Positive
    #: Dedicated runs of the reference, and the numbers of nodes of both platforms.
    dedicated: list[Row] = Field(default_factory=list)
    dedicated_settings: list[SettingPart] = Field(default_factory=list)
    reference_nodes: Nodes = None
    target_nodes: Nodes = None
    capacity: Annotated[int, Field(ge=1, le=1_000_000)]
    #: Runs of the target, oldest first.
    window: list[Row] = Field(min_length=1)
    seen: Count
    scales: _Scales
    domain: DomainPart
    notes: list[str]
    since_search: Annotated[int, Field(ge=0)]

    @staticmethod
    def converted(predictor: PortedPredictor) -> dict[str, Any]:
        """The reference as its own document, its dedicated runs, the nodes of both platforms, and the process."""
        return {
            "reference": document_of(predictor.reference),
            "dedicated": rows(predictor.dedicated_runs),
            "dedicated_settings": settings_of(predictor.dedicated_runs),
            "reference_nodes": predictor.formula.sharing.reference,
            "target_nodes": predictor.formula.sharing.target,
            "scales": predictor.state.process.scales,
        }

    def build(self) -> PortedPredictor:
        """The predictor; its process is conditioned again on the window."""
        reference = self.reference.build()
        predictor = PortedPredictor(
            reference,
            self.cluster,
            self.rcpu.build(),
            self.rbw.build(),
            bandwidth_ratio=self.bandwidth_ratio,
            dedicated_runs=runs_of(self.dedicated, reference.application, reference.cluster, self.dedicated_settings),
            sharing=LinkSharing(self.reference_nodes, self.target_nodes),
            capacity=self.capacity,
        )
        predictor.window = window(self.window, predictor.application, self.cluster, self.seen, self.capacity)
        predictor.state = PortedState(
            predictor.fit_process(self.scales.build()),
            self.calibration,
            self.domain.build(),
            tuple(self.notes),
            self.since_search,
        )
        return predictor
