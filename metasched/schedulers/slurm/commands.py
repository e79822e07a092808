"""Calls Slurm's commands: no shell, a deadline for each, and one clear line when they fail."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: How long a command may take (s).
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Commands:
    """Slurm's commands for one cluster; ``configuration`` is the path of its slurm.conf, empty for the usual one.

    ``patience`` is how long a command may take (s).
    """

    configuration: str = ""
    patience: float = PATIENCE

    def run(self, *words: str) -> str:
        """Run a command and return what it prints.

        Raises
        ------
        RuntimeError
            When it is not there, fails, or takes too long.
        """
        environment = dict(os.environ) | ({"SLURM_CONF": self.configuration} if self.configuration else {})
        # Times as seconds since 1970 where a command prints times.
        environment["SLURM_TIME_FORMAT"] = "%s"
        try:
            done = subprocess.run(  # noqa: S603
                words,
                env=environment,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=self.patience,
                check=False,
            )
        except OSError as error:
            raise RuntimeError(f"{words[0]} cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{words[0]} took longer than {self.patience:g} s") from None
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            raise RuntimeError(f"{' '.join(words)} failed with status {done.returncode}: {said[:500]}")
        return done.stdout.decode(errors="replace")

    def json(self, *words: str) -> Any:
        """Run a command that prints JSON.

        Raises
        ------
        RuntimeError
            When it fails, or prints something else.
        """
        try:
            return json.loads(self.run(*words))
        except ValueError as error:
            raise RuntimeError(f"{' '.join(words)} does not print JSON: {error}") from None

    def rows(self, *words: str) -> Sequence[Sequence[str]]:
        """Run a command that prints lines of fields between bars."""
        return [line.split("|") for line in self.run(*words).splitlines() if line]
