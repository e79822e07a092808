"""Models of simulated applications: written by ``metasched simulate --model``, read by ``fit`` and ``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasched.records import InputError

if TYPE_CHECKING:
    from metasched.predictors.analytic.simulated import SimulatedPredictor

SimulatedOption = Annotated[
    Path | None,
    typer.Option(help="Model of metasched simulate --model, for simulated and the tournament."),
]


def simulated_model(path: Path, application: str, cluster: str) -> SimulatedPredictor:
    """A simulated application as a model of the runs of an application on a cluster."""
    from metasched.predictors.analytic.simulated import SimulatedPredictor
    from metasched.store.files.models import read_model

    found = read_model(path)
    if not isinstance(found, SimulatedPredictor):
        raise InputError(f"is a {found.name} model, expected one of metasched simulate --model", where=str(path))
    found.application, found.cluster = application, cluster
    return found
