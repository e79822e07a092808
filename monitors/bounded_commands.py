"""Runs a command: no shell, a deadline and a bound of what it prints, and one clear line when it fails."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

#: Bytes that a command may print: the jobs of a large cluster take some 100 MB.
MOST_OUTPUT = 1 << 29
#: Bytes of its stderr that are stored.
_MOST_SAID = 65_536


class ExitError(RuntimeError):
    """A command that ended with an exit status other than 0.

    Parameters
    ----------
    command : its words.
    reason : what it printed on stderr, in one line.
    status : its exit status, negative for the signal that ended it.
    """

    def __init__(self, command: str, reason: str, status: int) -> None:
        super().__init__(f"{command} failed with status {status}{reason and f': {reason[:500]}'}")
        self.reason, self.status = reason, status


def run(*words: str, environment: Mapping[str, str], timeout: float, given: Path | None = None) -> str:
    r"""Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

    Parameters
    ----------
    words : the command and its arguments.
    environment : variables besides ours.
    timeout : how long it may take (s). What it has started is ended with it.
    given : the file that it reads from standard input, nothing where None.

    Raises
    ------
    RuntimeError : when it is not there, fails, takes too long, or prints too much.

    Examples
    --------
    >>> run("printenv", "CELL", environment={"CELL": "default"}, timeout=30.0)
    'default\n'
    """
    end = time.monotonic() + timeout
    try:
        with (given or Path(os.devnull)).open("rb") as file:
            process = subprocess.Popen(  # noqa: S603
                words,
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=file,
                start_new_session=True,
            )
    except OSError as error:
        raise RuntimeError(f"{words[0]} cannot be run: {error.strerror}") from None
    with process:
        try:
            printed, said = _read(process, end)
            status = process.wait(max(0.0, end - time.monotonic()))
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
                raise RuntimeError(f"{words[0]} took longer than {timeout:g} s") from None
            if isinstance(error, OverflowError):
                raise RuntimeError(f"{words[0]} prints more than {MOST_OUTPUT:,} bytes") from None
            raise
    if status:
        raise ExitError(" ".join(words), " ".join(said.decode(errors="replace").split()), status)
    return printed.decode(errors="surrogateescape")


def _read(process: subprocess.Popen[bytes], end: float) -> tuple[bytearray, bytearray]:
    """The output of a process on stdout and stderr until it closes both."""
    found = (bytearray(), bytearray())
    with selectors.DefaultSelector() as selector:
        for stream, kept in zip((process.stdout, process.stderr), found, strict=True):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                part = os.read(key.fd, 1 << 18)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.data is found[0] or len(found[1]) < _MOST_SAID:
                    key.data.extend(part)
            if len(found[0]) > MOST_OUTPUT:
                raise OverflowError
            if time.monotonic() > end:
                raise TimeoutError
    return found
