"""What every verb prints through: JSON on stdout, tables for people, errors and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from rich.console import Console

from metasched.json_numbers import finite

Step = TypeVar("Step")

#: Answers. Rich colours them only when stdout is a terminal.
out = Console(highlight=False)
#: Logs, progress and errors.
err = Console(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """Print one JSON document on stdout and nothing else; numbers that are not finite become null."""
    json.dump(finite(document), sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")


def say(line: str) -> None:
    """Print one line of an answer as it is, however long."""
    out.print(line, markup=False, soft_wrap=True)


def to_stderr(line: str) -> None:
    """Print one line on stderr: an error, a warning or a note."""
    err.print(f"metasched: {' '.join(line.split())}", markup=False, soft_wrap=True)


def warn(lines: Iterable[str]) -> None:
    """Print warnings on stderr, each on a line of its own."""
    for line in lines:
        to_stderr(f"warning: {line}")


def working(what: str) -> AbstractContextManager[Any]:
    """Show on a terminal that something is being worked on."""
    return err.status(what) if err.is_terminal else nullcontext()


def progress(steps: Iterable[Step], *, total: int, what: str) -> Iterable[Step]:
    """Go through steps behind a progress bar on stderr, shown only on a terminal."""
    from rich.progress import track  # loaded by the verbs that take long only

    return track(steps, total=total, description=what, console=err, transient=True, disable=not err.is_terminal)
