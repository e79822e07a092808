"""Simulations that users ask for on the daemon's page: each in a process of its own with limits, and the last kept.

What users write is parsed and interpreted by that process alone, never by the daemon; entries are those of the hardware
database, and no file is read that a text names.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasched.records import InputError
from metasched.service.refusals import TooMuchError

#: Seconds of processor time and bytes of memory that a simulation may take, and how many run at a time; and seconds
#: until it is ended on a host that has no time for it.
SECONDS, MEMORY, AT_ONCE = 10, 512 * 2**20, 2
PATIENCE = 30.0
#: Bytes of each text and of a result, and words of processes and variables; simulations that are kept, and bytes of
#: their results together.
MOST_TEXT, MOST_RESULT, MOST_WORDS, KEPT, MOST_KEPT = 65_536, 4 * 2**20, 32, 100, 16 * 2**20
SYSTEM, APPLICATION, RESULT = "system.toml", "application.app", "result.json"
_LINE = re.compile(r"\bline (\d+)")
_WORD = re.compile(r"[A-Za-z_]\w{0,63}=[0-9.eE+-]{1,32}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be simulated.

    Parameters
    ----------
    system, application : the texts.
    processes, variables : words such as ``slave=100``.
    """

    system: str
    application: str
    processes: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wrong:
    """Why a simulation was refused: in which text (``system`` or ``application``, or neither), and at which line."""

    why: str
    text: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """A simulation that was run: its number, whose it is, when it was asked for (s), and what came of it."""

    number: int
    client: str
    at: float
    asked: Asked
    result: dict[str, Any]


class Simulations:
    """Runs simulations, a few at a time, and keeps the last until the daemon ends."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Kept]] = deque()
        self._running = threading.BoundedSemaphore(AT_ONCE)
        self._lock, self._number = threading.Lock(), 0

    def run(self, asked: Asked, client: str, now: float) -> Kept | Wrong:
        """Simulate within the limits, and keep what came of it.

        Raises
        ------
        TooMuchError : when as many as may are running already.
        """
        try:
            _check(asked)
        except InputError as error:
            return _wrong(str(error))
        if not self._running.acquire(blocking=False):
            raise TooMuchError(f"{AT_ONCE} simulations are running, try again in some seconds", float(SECONDS))
        try:
            result = _simulated(asked)
        finally:
            self._running.release()
        if isinstance(result, Wrong):
            return result
        size = len(json.dumps(result))
        with self._lock:
            self._number += 1
            kept = Kept(self._number, client, now, asked, result)
            self._kept.append((size, kept))
            while len(self._kept) > KEPT or sum(size for size, _ in self._kept) > MOST_KEPT:
                self._kept.popleft()
        return kept

    def of(self, client: str) -> list[Kept]:
        """Those of a client that are kept, newest first."""
        with self._lock:
            return [each for _, each in reversed(self._kept) if each.client == client]


def _check(asked: Asked) -> None:
    """Refuse what is too long, or is no word."""
    for name, text in ((SYSTEM, asked.system), (APPLICATION, asked.application)):
        if not text.strip():
            raise InputError("is empty", where=name)
        if len(text.encode()) > MOST_TEXT:
            raise InputError(f"has more than {MOST_TEXT} bytes", where=name)
    words = (*asked.processes, *asked.variables)
    if len(words) > MOST_WORDS:
        raise InputError(f"there are {len(words)} processes and variables, expected at most {MOST_WORDS}")
    for word in words:
        if not _WORD.fullmatch(word):
            raise InputError(f"{word[:80]!r}, expected NAME=NUMBER, such as slave=100")


def _simulated(asked: Asked) -> dict[str, Any] | Wrong:
    with tempfile.TemporaryDirectory(prefix="metasched-simulation-") as name:
        folder = Path(name)
        (folder / SYSTEM).write_text(asked.system, encoding="utf-8")
        (folder / APPLICATION).write_text(asked.application, encoding="utf-8")
        words = [sys.executable, "-m", "metasched", "simulate", SYSTEM, APPLICATION, "--json", "--no-other-files"]
        words += [part for word in asked.processes for part in ("--processes", word)]
        words += [part for word in asked.variables for part in ("--set", word)]
        # Threads of linear algebra would each reserve memory.
        environment = {"PATH": os.defpath, "HOME": name, "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        # What it compiles it would leave cut short at the limit of its files, for all who import it after.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        # A file, not a pipe: files of the process are limited.
        with (folder / RESULT).open("wb") as result, subprocess.Popen(  # noqa: S603
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=result, stderr=subprocess.PIPE,
            text=True, errors="replace",
        ) as process:  # fmt: skip
            _limit(process.pid)
            try:
                _, errors = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                return Wrong(f"it took longer than {PATIENCE:g} s, and was stopped")
        if process.returncode == 0:
            return dict(json.loads((folder / RESULT).read_bytes()))
    if process.returncode < 0:
        return Wrong(f"it took more than {SECONDS} s, and was stopped")
    said = (errors.strip() or "no reason is given").splitlines()[-1].removeprefix("metasched: ")
    return (
        _wrong(said)
        if process.returncode == 2
        else Wrong(
            f"it needs more than {MEMORY // 2**20} MB, has a result of more than {MOST_RESULT // 2**20} MB, "
            f"or failed: {said}"
        )
    )


def _limit(process: int) -> None:
    """Limit what a process may take, which has only begun to import; placements go first."""
    with suppress(ProcessLookupError):
        for kind, most in (
            (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_FSIZE, MOST_RESULT),
        ):  # fmt: skip
            resource.prlimit(process, kind, (most, most))
        os.setpriority(os.PRIO_PROCESS, process, 10)


def _wrong(why: str) -> Wrong:
    """Where an error message says that something is wrong.

    >>> _wrong("application.app, line 3: fly is no block")
    Wrong(why='line 3: fly is no block', text='application', line=3)
    """
    for name in (SYSTEM, APPLICATION):
        if why.startswith((f"{name}: ", f"{name}, ")):
            found = _LINE.search(why)
            return Wrong(why[len(name) + 2 :], name.partition(".")[0], int(found[1]) if found else 0)
    return Wrong(why)
