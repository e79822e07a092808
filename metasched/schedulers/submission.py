"""The requests of a job before its submission, and the submission by an argument list, without a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from metasched.jobs import Mark

#: Script text beyond this is not read (bytes).
MOST_SCRIPT = 65_536
#: What a shell would leave with where a command is not found.
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of a job: its mark, the number of processors, and the partitions, empty if it names none."""

    mark: Mark | None
    processors: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Submission:
    """A command that submits a job: its words, and variables besides ours."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def directives(script: str, prefix: str) -> list[str]:
    r"""The words of a script's lines that begin with a prefix, without lines whose quotes do not close.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
    ...     _ = file.write("#!/bin/sh\n#$ -q 'new' # fast\n#$ -N \"\n")
    ...     file.flush()
    ...     directives(file.name, "#$")
    ['-q', 'new']
    """
    try:
        with Path(script).open("rb") as file:
            lines = file.read(MOST_SCRIPT).decode(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        if line.startswith(prefix):
            try:
                found += shlex.split(line.removeprefix(prefix), comments=True)
            except ValueError:
                continue
    return found


def hand_over(submission: Submission, *, capture: bool) -> tuple[int, str]:
    """Run the command of a submission, which reads our standard input; its exit status, and what it prints.

    Parameters
    ----------
    submission : what is run.
    capture : whether what it prints is returned; it goes to our standard output otherwise.

    Raises
    ------
    RuntimeError
        When it cannot be run.
    """
    try:
        done = subprocess.run(  # noqa: S603
            submission.words,
            env={**os.environ, **submission.environment},
            stdout=subprocess.PIPE if capture else None,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RuntimeError(f"{submission.words[0]} cannot be run: {reason}") from None
    return done.returncode, (done.stdout or "").strip()
