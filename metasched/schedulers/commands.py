"""Calls a scheduler's commands: no shell, a deadline and a bound for each, and one clear line when they fail."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")

#: Time limit of a command (s), and the limit of its output (bytes): the jobs of a large cluster take some 100 MB.
TIMEOUT, MOST_OUTPUT = 30.0, 1 << 29
#: Bytes of its stderr that are stored.
_MOST_SAID = 65_536


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of one cluster's scheduler.

    Parameters
    ----------
    environment : variables that name the cluster to its commands; an empty one is left to our own environment.
    timeout : how long a command may take (s).
    spelling : further variables that say how they print.
    nothing : the document that they mean where they print none at all; None where they always print one.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    spelling: Mapping[str, str] = field(default_factory=dict)
    nothing: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", {name: value for name, value in self.environment.items() if value})

    def run(self, *words: str) -> str:
        """Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

        Raises
        ------
        RuntimeError
            When it is not there, fails, or takes too long.
        """
        return run(*words, environment={**self.environment, **self.spelling}, timeout=self.timeout)

    def json(self, *words: str) -> Any:
        """Run a command that prints JSON; its strings may contain control characters, since users choose names freely.

        Raises
        ------
        RuntimeError
            When it fails, or prints something else.
        """
        text = self.run(*words)
        if self.nothing is not None and not text.strip():
            return self.nothing
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError) as error:
            raise RuntimeError(f"{' '.join(words)} does not print JSON: {error}") from None

    def read(self, parse: Callable[[Any], Found], *words: str) -> Found:
        """Run a command that prints JSON, and parse the output.

        Parameters
        ----------
        parse : makes of the document what is asked for; whatever it stumbles on, the command printed something else.
        words : the command.

        Raises
        ------
        RuntimeError
            When it fails, or prints something else.
        """
        document = self.json(*words)
        try:
            return parse(document)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            raise RuntimeError(f"{' '.join(words)} prints unexpected output: {error}") from None


def count(value: Any) -> int:
    """A number of things, as a command prints it.

    Raises
    ------
    ValueError
        When it is none that can be.

    Examples
    --------
    >>> count(4), count("12")
    (4, 12)
    """
    if not isinstance(value, bool) and isinstance(value, int | str) and str(value).isdecimal() and len(str(value)) < 10:
        return int(value)
    raise ValueError(f"{str(value)[:40]!r} is not a whole number")


def seconds(value: Any) -> float | None:
    """A time or a duration (s) in a document; None if it is missing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return None
    return float(value)


class ExitError(RuntimeError):
    """A command that ended with an exit status other than 0.

    Parameters
    ----------
    message : what it printed, in one line.
    status : its exit status, negative for the signal that ended it.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def run(*words: str, environment: Mapping[str, str], timeout: float = TIMEOUT, given: Path | None = None) -> str:
    r"""Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

    Parameters
    ----------
    words : the command and its arguments.
    environment : variables besides ours.
    timeout : how long it may take (s). What it has started is ended with it.
    given : the file that it reads from standard input, nothing where None.

    Raises
    ------
    RuntimeError
        When it is not there, fails, takes too long, or prints too much.

    Examples
    --------
    >>> run("printenv", "CELL", environment={"CELL": "default"})
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
        reason = " ".join(said.decode(errors="replace").split())
        raise ExitError(f"{' '.join(words)} failed with status {status}: {reason[:500]}", status)
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
