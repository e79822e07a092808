"""Models of simulated applications: written by ``metasched simulate --model``, read by ``fit`` and ``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from metasched.predictors.contract import Predictor
from metasched.records import InputError

SimulatedOption = Annotated[
    Path | None,
    typer.Option(help="Model of metasched simulate --model, for simulated and the tournament."),
]


def simulated_model(path: Path, application: str, cluster: str) -> Predictor:
    """A simulated application as a model of the runs of an application on a cluster."""
    from metasched.store.files.models import read_model

    found: Any = read_model(path)
    if found.name != "simulated":
        raise InputError(f"is a {found.name} model, expected one of metasched simulate --model", where=str(path))
    found.application, found.cluster = application, cluster
    model: Predictor = found
    return model
