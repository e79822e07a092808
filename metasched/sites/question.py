"""The question to the sites of a grid: :class:`SitesQuestion`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SitesQuestion:
    """The question to the sites of a grid.

    Parameters
    ----------
    application, problem_size : of the job.
    demands : further ones, as ``POST /v1/rankings`` takes them.
    data : that the job needs (GB), None where that is not known.
    held_by : sites that hold the data already.
    sites : only these, all where empty.
    via : the daemons that asked each other before this one.
    within : how long the answer may take (s).
    """

    application: str
    problem_size: float
    demands: Mapping[str, Any] = field(default_factory=dict)
    data: float | None = None
    held_by: Sequence[str] = ()
    sites: Sequence[str] = ()
    via: Sequence[str] = ()
    within: float = 60.0
