"""Options for cloud predictors: profiles and servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.records import InputError
from metasched.store.files.cloud import read_hardware
from metasched.store.files.profiles import read_any_profiles

ProfilesOption = Annotated[
    list[Path] | None,
    typer.Option("--profile", help="Profiles of small runs (CSV or mpiP), for cloud and the tournament; repeatable."),
]
HardwareOption = Annotated[Path | None, typer.Option(help="Servers that the profiles are for (TOML).")]
ProfiledSizeOption = Annotated[float | None, typer.Option(help="Problem size N of the profiles.")]
#: Makes a cloud predictor for an application and a cluster.
Profiled = Callable[[str, str], CloudPredictor]


def profiled_by(profiles: Sequence[Path] | None, hardware: Path | None, size: float | None) -> Profiled | None:
    """A factory of cloud predictors from the options; None if none is given."""
    if not profiles and hardware is None and size is None:
        return None
    if not profiles or hardware is None or size is None:
        raise InputError("--profile, --hardware and --profiled-size go together, expected all of them")
    runs = [run for path in profiles for run in read_any_profiles(path)]
    if any(run.servers > 1 for run in runs):
        raise InputError("a profile of --profile ran on several servers, expected profiles of one server")
    servers = read_hardware(hardware)

    def made(application: str, cluster: str) -> CloudPredictor:
        return CloudPredictor(
            [run.profile for run in runs], servers, problem_size=size, application=application, cluster=cluster
        )

    return made
