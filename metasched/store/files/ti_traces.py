"""Reads and writes SimGrid's time-independent traces, as ``smpirun -trace-ti`` does: a list of files, one a process.

A trace that holds all processes in one file (``tracing/smpi/format/ti-one-file``) is read too.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from metasched.records import InputError
from metasched.signature.traces.actions import ActionTable
from metasched.signature.traces.trace import Trace
from metasched.store.files.whole_files import refusal, write_text_atomically
from metasched.validation import Located

#: Most processes, actions of all processes, bytes of a line, numbers of one action's line, size of a number.
MOST_PROCESSES, MOST_EVENTS, LONGEST, LARGEST = 65_536, 50_000_000, 2**20, 1e18
#: Bytes read at once.
_CHUNK = 2**22
_NAME = re.compile(r"[A-Za-z_]{1,40}")


def read_ti_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace; files that it lists are looked for beside it, and nowhere else.

    Raises
    ------
    InputError : with the file, the row and what was expected.
    """
    path = Path(path)
    first = next((line for line in _lines(path) if line.strip()), "")
    words = first.split()
    if not words:
        raise InputError("holds no action, expected a time-independent trace of SimGrid", where=str(path))
    reader = _Reader()
    if words[0].isascii() and words[0].isdigit() and len(words) > 1:
        reader.read(path)
    else:
        for row, line in enumerate(_lines(path), 1):
            if row > MOST_PROCESSES:
                raise InputError(f"lists more than {MOST_PROCESSES} files", where=str(path))
            if line.strip():
                reader.read(_listed(path, line.strip(), row))
    return reader.trace(path)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, none of them endless."""
    try:
        with path.open("rb") as file:
            rest = b""
            while chunk := file.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > LONGEST:
                    raise InputError(f"has a line of more than {LONGEST} bytes", where=str(path))
                yield from (line.decode("ascii") for line in lines)
            if rest:
                yield rest.decode("ascii")
    except UnicodeDecodeError:
        raise InputError("is not plain text, expected a time-independent trace of SimGrid", where=str(path)) from None
    except OSError as error:
        raise InputError(refusal(error), where=str(path)) from None


def _listed(path: Path, name: str, row: int) -> Path:
    """Where a file that a trace lists is: under the folder of the trace, as written or as SimGrid names the folder."""
    folder, given = path.resolve().parent, Path(name)
    for place in (folder / given, folder / f"{path.name}_files" / given.name):
        with suppress(OSError, ValueError):
            found = place.resolve()
            if found.is_relative_to(folder) and found.is_file() and found != path.resolve():
                return found
    raise InputError(f"{name[:80]!r} is no file beside the trace", where=f"{path}, row {row}")


class _Reader:
    """Collects the actions of each process, from as many files as there are."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.table = ActionTable()
        self.processes: dict[str, array[int]] = {}
        self.events = 0

    def read(self, path: Path) -> None:
        known, processes = self.known, self.processes
        row = 0
        for row, line in enumerate(_lines(path), 1):
            rank, _, text = line.partition(" ")
            try:
                processes[rank].append(known[text])
            except KeyError:
                self._new(rank, text, path, row)
        self.events += row
        if self.events > MOST_EVENTS:
            raise InputError(f"holds more than {MOST_EVENTS} actions", where=str(path))

    def _new(self, rank: str, text: str, path: Path, row: int) -> None:
        """An action or a rank that is seen for the first time."""
        if not rank.strip() and not text.strip():
            return
        where = f"{path}, row {row}"
        if not (rank.isascii() and rank.isdigit() and str(int(rank[:10])) == rank and int(rank) < MOST_PROCESSES):
            raise InputError(f"rank is {rank[:40]!r}, expected a number from 0 to {MOST_PROCESSES - 1}", where=where)
        if len(text) > LONGEST:
            raise InputError(f"has {len(text)} bytes, expected at most {LONGEST}", where=where)
        if text not in self.known:
            words = text.split()
            if not words or not _NAME.fullmatch(words[0]):
                raise InputError(f"action is {text[:40]!r}, expected a name and numbers", where=where)
            numbers = tuple(_number(word, where) for word in words[1:])
            self.known[text] = self.table.add(words[0], numbers, text.endswith(" "))
        self.processes.setdefault(rank, array("i")).append(self.known[text])

    def trace(self, path: Path) -> Trace:
        count = len(self.processes)
        if not count:
            raise InputError("holds no action, expected a time-independent trace of SimGrid", where=str(path))
        for rank in range(count):
            if str(rank) not in self.processes:
                raise InputError(f"process {rank} of {count} or more is missing", where=str(path))
        order = (np.array(self.processes.pop(str(rank)), dtype=np.int32) for rank in range(count))
        with Located(str(path)):
            return Trace(self.table, tuple(order)).checked()


def _number(word: str, where: str) -> float:
    for kind in (int, float):
        with suppress(ValueError):
            if abs(number := kind(word)) <= LARGEST:
                return number
    raise InputError(f"{word[:40]!r} is no number of at most {LARGEST:g}", where=where)


def write_ti_trace(path: str | os.PathLike[str], processes: Iterable[Iterable[str]]) -> None:
    """Write a trace as SimGrid does: a file a process in the folder ``PATH_files``, and the list of them.

    Parameters
    ----------
    path : of the list.
    processes : in the order of ranks, the actions of each without the rank.

    Raises
    ------
    InputError : when the place cannot be written, or the folder is there and holds other things than a trace's files.
    """
    path = Path(path)
    folder = path.resolve().parent / f"{path.name}_files"
    if path.is_dir():
        raise InputError("is a directory, expected a file", where=str(path))
    if folder.exists() and (not folder.is_dir() or any(not _ours(each) for each in folder.iterdir())):
        raise InputError(f"{folder.name} exists and holds files that are not of a trace", where=str(path))
    try:
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{path.name[:100]}.", suffix=".part"))
    except OSError as error:
        raise InputError(f"cannot be written: {refusal(error)}", where=str(path)) from None
    try:
        names = []
        for rank, actions in enumerate(processes):
            names.append(f"0_rank-{rank + 1}.txt")
            front = f"{rank} "
            text = "\n".join([front + action for action in actions])
            (fresh / names[-1]).write_text(f"{text}\n" if text else "", encoding="ascii")
        fresh.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    except BaseException as error:
        shutil.rmtree(fresh, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot be written: {refusal(error)}", where=str(path)) from None
        raise
    write_text_atomically(path, "".join(f"{folder.name}/{name}\n" for name in names))


def _ours(path: Path) -> bool:
    return bool(re.fullmatch(r"[\d.]+_rank-\d+\.txt", path.name)) and path.is_file()
