"""Launchers of MPI programs: asked to end they end their processes, killed they leave them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

#: How long a launcher may take to end its processes (s).
ENDING = 5.0


def launched(words: Sequence[str], *, timeout: float | None = None, **options: Any) -> subprocess.CompletedProcess[Any]:
    r"""Run a launcher to its end; whatever ends this call earlier ends its processes too.

    Parameters
    ----------
    words : the command, word by word.
    timeout : how long it may take (s); None for as long as it takes.
    options : as those of :class:`subprocess.Popen`.

    Raises
    ------
    OSError : when it cannot be started.
    subprocess.TimeoutExpired
        When it takes longer.

    Examples
    --------
    >>> launched(["echo", "two"], stdout=subprocess.PIPE, text=True).stdout
    'two\n'
    """
    with subprocess.Popen(words, **options) as program:  # noqa: S603
        try:
            printed, said = program.communicate(timeout=timeout)
        except BaseException:
            program.terminate()
            with suppress(subprocess.TimeoutExpired):
                program.wait(ENDING)
            program.kill()
            raise
    return subprocess.CompletedProcess(words, program.returncode, printed, said)
