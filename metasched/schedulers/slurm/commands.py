"""Calls Slurm's commands: no shell, a deadline for each, and one clear line when they fail.

Users choose names, paths and comments freely, line breaks among them. So tables are not asked for with a separator that
could occur in one: each call draws a random mark, which ends every field.
"""

from __future__ import annotations

import json
import os
import secrets
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
        """Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

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
        return done.stdout.decode(errors="surrogateescape")

    def table(self, columns: Sequence[str], *words: str) -> list[dict[str, str]]:
        """The rows that squeue, sinfo or sacct print, each a text for each of the columns.

        Parameters
        ----------
        columns : their names, as ``--Format`` of squeue and sinfo and ``--format`` of sacct take them.
        words : the command and its other options.

        Raises
        ------
        RuntimeError
            When it fails, or prints something else.
        """
        mark = f"|{secrets.token_hex(8)}|"
        if words[0] == "sacct":
            form = ["--parsable", f"--delimiter={mark}", f"--format={','.join(columns)}"]
        else:
            form = [f"--Format={','.join(f'{column}:{mark}' for column in columns)}"]
        *cells, rest = self.run(*words, "--noheader", *form).split(mark)
        if len(cells) % len(columns) or rest.strip():
            raise RuntimeError(f"{words[0]} does not print {len(columns)} columns a row")
        first = columns[0]
        rows = [
            dict(zip(columns, cells[start : start + len(columns)], strict=True))
            for start in range(0, len(cells), len(columns))
        ]
        return [row | {first: row[first].removeprefix("\n")} for row in rows]

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
