"""Calls a scheduler's commands: no shell, a deadline for each, and one clear line when they fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

#: How long a command may take (s).
TIMEOUT = 30.0


def run(*words: str, environment: Mapping[str, str], timeout: float = TIMEOUT) -> str:
    r"""Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

    Parameters
    ----------
    words : the command and its arguments.
    environment : variables besides ours.
    timeout : how long it may take (s).

    Raises
    ------
    RuntimeError
        When it is not there, fails, or takes too long.

    Examples
    --------
    >>> run("printenv", "CELL", environment={"CELL": "default"})
    'default\n'
    """
    try:
        done = subprocess.run(  # noqa: S603
            words,
            env={**os.environ, **environment},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise RuntimeError(f"{words[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{words[0]} took longer than {timeout:g} s") from None
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise RuntimeError(f"{' '.join(words)} failed with status {done.returncode}: {said[:500]}")
    return done.stdout.decode(errors="surrogateescape")
