"""Output of all verbs: JSON or tables on stdout, errors, warnings and progress on stderr."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import warnings
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar
from unicodedata import category

from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from metasched.json_numbers import finite
from metasched.store.files.whole_files import refusal

Step = TypeVar("Step")


class _Harmless(Console):
    """A console that shows control characters and markup in what it prints, and obeys none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        # Control and format characters but tabs and line breaks: names in files or answers could control the terminal.
        shown = (each if each in "\t\n" or category(each)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for each in text)
        return super().render_str("".join(shown), **options)


#: Answers. Rich colours them only when stdout is a terminal.
out = _Harmless()
#: Logs, progress and errors.
err = _Harmless(stderr=True)


def prepare() -> None:
    """Make standard output and error take every character, also where they are closed, and hold back Python's warnings.

    These are about the program, not about what its user gave; ``python -W`` still shows them.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            # Names in files and answers have characters that not every locale has.
            stream.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Write out what is still held back: a failure could not be reported any later."""
    sys.stdout.flush()


#: What the operating system says of a file that cannot grow; without the name of a file it is standard output.
_CANNOT_GROW = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def refused(error: OSError) -> int:
    """Say what the operating system refused, and the status to leave with.

    Where nobody reads the output any more, as after ``| head -1``, nothing is said, and the status is that of programs
    that this signal ends.
    """
    # What is still held back is lost: Python would try once more at its end.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 128 + signal.SIGPIPE
    where = str(error.filename or "") or ("standard output" if error.errno in _CANNOT_GROW else "")
    to_stderr(f"{where}: {refusal(error)}" if where else refusal(error))
    return 1 if error.filename is None else 2


def print_json(document: Any) -> None:
    """Print one JSON document on stdout and nothing else; numbers that are not finite become null."""
    json.dump(finite(document), sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")


def say(line: str) -> None:
    """Print one line on stdout without wrapping it."""
    out.print(line, soft_wrap=True)


def answer(as_json: bool, document: Any, *lines: str) -> None:
    """Print an answer: one JSON document, or else its lines."""
    if as_json:
        print_json(document)
    else:
        for line in lines:
            say(line)


def table(*headings: str, left: Collection[str] = (), **style: Any) -> Table:
    """An empty table of figures, whose columns are aligned to the right.

    Parameters
    ----------
    headings : of the columns.
    left : those of columns of text, which are aligned to the left.
    style : as rich's Table takes it.
    """
    return Table(*(Column(each, justify="left" if each in left else "right") for each in headings), **style)


def show(shown: Table | Group, *, empty: str = "nothing to show") -> None:
    """Print tables whole: wider than the terminal, which breaks the lines, where columns cannot be narrower.

    Parameters
    ----------
    shown : tables, and the text between them.
    empty : what is printed in place of a table without rows, after its title.
    """
    if isinstance(shown, Group):
        for each in shown.renderables:
            if isinstance(each, Table | Group):
                show(each)
            else:
                out.print(each)
        return
    if not shown.row_count:
        say(f"{shown.title}: {empty}" if shown.title else empty)
        return
    width = _fitted(shown, out.width)
    (out if width <= out.width else _Harmless(file=out.file, width=width)).print(shown)


#: A column whose cells may be broken anywhere is not made narrower than this.
FOLDED = 12


def _fitted(shown: Table, width: int) -> int:
    """Narrow the widest columns of a table until it fits a width, but so that no word is cut off; its width then.

    Rich would narrow columns below their least widths, and cut off those at the right.
    """

    def measured(column: Column) -> tuple[int, int]:
        """The least width of a column, and that at which no cell is broken."""
        found = [Measurement.get(out, options, each) for each in (column.header, column.footer, *column.cells)]
        word, most = max(each.minimum for each in found), max(each.maximum for each in found)
        folded = max(found[0].minimum, min(most, FOLDED))
        least = most if column.no_wrap else folded if column.overflow == "fold" else word
        return max(column.min_width or 0, least), max(column.min_width or 0, most)

    options = out.options.update(max_width=10_000)
    columns = [measured(column) for column in shown.columns]
    whole = Measurement.get(out, options, shown).maximum
    frame = whole - sum(most for _, most in columns)
    if whole <= width:
        return whole

    def narrowed(limit: int) -> list[int]:
        return [max(least, min(most, limit)) for least, most in columns]

    limit = max(most for _, most in columns)
    while limit > 0 and frame + sum(narrowed(limit)) > width:
        limit -= 1
    for column, chosen in zip(shown.columns, narrowed(limit), strict=True):
        column.width = chosen
    return frame + sum(narrowed(limit))


#: Most characters of a line on stderr: of a longer one the middle is left out, where what was given stands.
LONGEST_LINE = 1000


def to_stderr(line: str) -> None:
    """Print one line on stderr: an error, a warning or a note."""
    said = f"metasched: {' '.join(line.split())}"
    if len(said) > LONGEST_LINE:
        said = f"{said[: LONGEST_LINE // 2]} ... {said[-LONGEST_LINE // 2 :]}"
    err.print(said, soft_wrap=True)


def warn(lines: Iterable[str]) -> None:
    """Print warnings on stderr, each on a line of its own."""
    for line in lines:
        to_stderr(f"warning: {line}")


def working(what: str) -> AbstractContextManager[Any]:
    """Show a spinner on a terminal during a long computation."""
    return err.status(what) if err.is_terminal else nullcontext()


def progress(steps: Iterable[Step], total: int, *, what: str) -> Iterable[Step]:
    """Iterate over steps with a progress bar on stderr, shown only on a terminal."""
    from rich.progress import track  # loaded by the verbs that take long only

    return track(steps, total=total, description=what, console=err, transient=True, disable=not err.is_terminal)
