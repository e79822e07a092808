"""Commands that start MPI programs: mpirun, srun, smpirun and what else a site has, with their options."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from metasched.records import InputError


def check_installed(launcher: Sequence[str]) -> None:
    """Raise InputError where there is no such command.

    Examples
    --------
    >>> check_installed(["no-mpirun", "-np", "4"])
    Traceback (most recent call last):
    metasched.records.errors.InputError: no-mpirun is not installed, expected the command that starts MPI programs
    """
    if shutil.which(launcher[0]) is None:
        raise InputError(f"{launcher[0]} is not installed, expected the command that starts MPI programs")
