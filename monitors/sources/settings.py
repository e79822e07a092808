"""How a source is configured: :class:`SourceTable`, a ``[[source]]`` of the daemon or of a description of clusters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from monitors.relative_paths import PathText, PlacedPath
from monitors.sources.contract import Source
from monitors.sources.power_history import PowerHistory
from monitors.urls import host_of
from monitors.validated_fields import Positive, StrictFields

_COMMON = {"kind", "name", "period", "timeout", "nodes", "bandwidth"}
#: The keys that a source of each kind may have.
_KEYS = {
    "prometheus": _COMMON | {"url", "token_file", "label", "names", "match", "window", "power", "prefix"},
    "agent": _COMMON | {"url", "token_file"},
    "slurm": _COMMON | {"configuration", "prefix"},
}


class SourceTable(StrictFields, BaseModel):
    """One source of loads.

    Parameters
    ----------
    kind : what is asked.
    name : what people call it; by default its kind and address.
    url, token_file : where a server listens, and the file with the token that it wants to be shown.
    label, names, match, window : see :class:`monitors.sources.prometheus.Prometheus`.
    configuration : path of slurm.conf, empty for the usual one.
    prefix : put before the names of the nodes, where those of several schedulers are alike.
    power : whether the server knows the power of nodes, so that ended jobs get their energy from it.
    nodes : the nodes that it may speak for, folded; empty for all that placements know.
    bandwidth : what the nodes' links have to spare (Mbit/s), where the source does not know it.
    period : seconds from one question to the next.
    timeout : seconds that asking takes at most.

    Examples
    --------
    >>> SourceTable(kind="prometheus", url="http://prometheus:9090").source().name
    'Prometheus http://prometheus:9090'
    """

    kind: Literal["prometheus", "agent", "slurm"]
    name: Annotated[str, Field(max_length=255)] = ""
    url: str = ""
    token_file: PlacedPath | None = None
    label: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "instance"
    names: dict[str, Annotated[str, Field(min_length=1)]] = {}
    match: str = ""
    window: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    prefix: Annotated[str, Field(pattern=r"^[\w.-]{0,64}$")] = ""
    power: bool = False
    configuration: PathText = ""
    nodes: str = ""
    bandwidth: Positive | None = None
    period: Annotated[float, Field(ge=0.1, le=86_400)] = 15.0
    timeout: Annotated[float, Field(gt=0, le=300)] = 5.0

    @model_validator(mode="after")
    def _keys_of_its_kind(self) -> SourceTable:
        for key in sorted(self.model_fields_set - _KEYS[self.kind]):
            raise ValueError(f"source: {key} is not a key of the kind {self.kind}")
        if self.kind != "slurm" and host_of(self.url) is None:
            raise ValueError(f"source: url of the kind {self.kind} is {self.url!r}, expected http:// or https://")
        return self

    def source(self) -> Source:
        """The source itself, which has not been asked yet."""
        if self.kind == "slurm":
            from monitors.sources.slurm import Slurm

            return Slurm(configuration=self.configuration, timeout=self.timeout, prefix=self.prefix)
        if self.kind == "agent":
            from monitors.sources.remote_agent import RemoteAgent

            return RemoteAgent(self.url, self.token_file, self.timeout)
        from monitors.sources.prometheus import Prometheus

        return Prometheus(self.url, **self._asked)

    def power_history(self) -> PowerHistory | None:
        """The power history of nodes; None if this source has none."""
        return PowerHistory(self.url, **self._asked) if self.power else None

    @property
    def _asked(self) -> dict[str, Any]:
        """How a Prometheus server is asked."""
        return {
            "label": self.label,
            "names": self.names,
            "prefix": self.prefix,
            "match": self.match,
            "window": self.window,
            "token_file": self.token_file,
            "timeout": self.timeout,
        }
