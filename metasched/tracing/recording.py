"""Runs an MPI program under the recorder, which is built with the user's mpicc when it is first needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from metasched.records import InputError
from metasched.tracing.compiled import compiled

SOURCE = Path(__file__).with_name("recorder.c")


def recorder(compiler: str = "mpicc") -> Path:
    """The recorder for a compiler of MPI, compiled once for each state of its source.

    Raises
    ------
    InputError
        When there is no such compiler, or it fails.
    """
    return compiled(SOURCE, compiler, ["-shared", "-fPIC", "-O2"], ".so")


def record(launcher: Sequence[str], to: Path, compiler: str = "mpicc") -> int:
    """Run a launcher with its program; every process of it that starts MPI leaves a file in a folder.

    Returns
    -------
    The launcher's status.

    Raises
    ------
    InputError
        When the folder holds other things, the launcher cannot be started, or no process has left a file.
    """
    library = recorder(compiler)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError("is there and not an empty folder", where=str(to))
    if shutil.which(launcher[0]) is None:
        raise InputError(f"{launcher[0]} is not installed, expected the command that starts the MPI program")
    to.mkdir(parents=True, exist_ok=True)
    preload = " ".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))
    environment = {**os.environ, "METASCHED_TRACE": str(to.resolve()), "LD_PRELOAD": preload}
    status = subprocess.run(list(launcher), env=environment, check=False).returncode  # noqa: S603
    for part in to.glob(".rank-*.part"):
        part.unlink()
    if not any(to.glob("rank-*")):
        to.rmdir()
        raise InputError(
            f"no process was recorded, and {launcher[0]} ended with status {status}: is the program built with the MPI "
            f"of {compiler}?"
        )
    return status
