"""Lets the verifier that a site already has judge each job first: a process that is spoken to as Grid Engine does.

What Grid Engine says is passed on to it, and what it says to Grid Engine, with one exception: where it has taken a job,
as it was or corrected, metasched is asked about the job as it is then. A job that it rejects is rejected, and when it
ends, so does metasched's verifier, for Grid Engine to do what it does whenever a verifier ends. Any Python from 3.6 on
runs it, with nothing but the standard library; metasched_lines.py lies beside it.
"""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Callable, Dict, List

from metasched_lines import MOST_LINE, ServerLines

#: The file beside the hooks that names the site's verifier.
FILE = "site-verifier"
#: Lines that are held back at most until the result of a job is known.
MOST_LINES = 10000
#: A site's verifier that has taken longer than that (s) leaves no time to ask: Grid Engine gives up after 10 s.
PATIENCE = 5.0
#: How long the site's verifier may take to end after QUIT (s).
GRACE = 1.0

Job = Dict[str, str]
#: What is answered about a job, lines with the result as the last.
Judge = Callable[[Job], List[str]]


def named(here: Path) -> str:
    """The path of the site's verifier, empty where it has none.

    Raises
    ------
    OSError
        Where there is a name that cannot be read.
    """
    try:
        return (here / FILE).read_text().strip()
    except FileNotFoundError:
        return ""


class SiteVerifier:
    """A process between Grid Engine and metasched.

    Parameters
    ----------
    path : of the site's verifier.
    judge : asks metasched about a job that the site's verifier has taken.
    source, sink : what Grid Engine says, and where it listens.

    Raises
    ------
    OSError
        When it cannot be started.
    """

    def __init__(self, path: str, judge: Judge, source: ServerLines, sink: IO[bytes]) -> None:
        self._judge, self._source, self._sink = judge, source, sink
        self._process = subprocess.Popen(  # noqa: S603
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )  # type: subprocess.Popen[bytes]
        self._job = {}  # type: Job
        self._began = 0.0
        self._held = []  # type: List[bytes]

    def serve(self) -> None:
        """Pass on what both say until one of them ends; does not return."""
        for work in (self._pass_on, self._watch):
            threading.Thread(target=work, daemon=True).start()
        try:
            while self._answered(_line(self._process.stdout)):
                pass
        except Exception as error:
            with suppress(Exception):
                sys.stderr.write("metasched: {}\n".format(error))
        finally:
            self._end()

    def _pass_on(self) -> None:
        """What Grid Engine says, to the site's verifier; the job is noted before that can answer."""
        with suppress(Exception):
            while True:
                line = self._source.next()
                if not line:
                    break
                command, _, rest = _text(line).partition(" ")
                if command == "START":
                    self._job, self._began = {}, 0.0
                elif command == "PARAM":
                    name, _, value = rest.partition(" ")
                    self._job.setdefault(name, value)
                elif command == "BEGIN":
                    self._held, self._began = [], time.monotonic()
                self._process.stdin.write(line)  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
                if command == "QUIT":
                    break
        with suppress(Exception):
            self._process.stdin.close()  # type: ignore[union-attr]
        # It ends by itself, or else is ended: there is no one left to answer.
        with suppress(Exception):
            self._process.wait(GRACE)
        self._end()

    def _watch(self) -> None:
        """End with the one that started this, though the site's verifier neither reads nor answers."""
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(GRACE)
        self._end()

    def _answered(self, line: bytes) -> bool:
        """Pass on a line of the site's verifier; whether there may be more."""
        if not line:
            return False
        words = _text(line).split()
        if self._began and words[:1] in (["PARAM"], ["ENV"]):
            if len(self._held) >= MOST_LINES:
                raise ValueError("the site's verifier changes too much")
            self._held.append(line)
            return True
        if self._began and words[:2] == ["RESULT", "STATE"]:
            spent, self._began = time.monotonic() - self._began, 0.0
            # What is changed of a job that is accepted as it was does not count.
            held = self._held if words[2:3] == ["CORRECT"] else []
            ours = self._ours(held) if words[2:3] in (["ACCEPT"], ["CORRECT"]) and spent <= PATIENCE else []
            if ours and ours[-1].split() == ["RESULT", "STATE", "CORRECT"]:
                line = _bytes(ours.pop())
            self._say([*held, *(_bytes(each) for each in ours if not each.startswith("RESULT")), line])
            return True
        self._say([line])
        return True

    def _ours(self, held: List[bytes]) -> List[str]:
        """What metasched says of the job as the site's verifier leaves it: nothing if anything goes wrong."""
        if self._source.forged:
            return []
        try:
            job = dict(self._job)
            for line in held:
                command, _, rest = _text(line).partition(" ")
                if command == "PARAM":
                    _note(job, rest)
            return self._judge(job)
        except Exception:
            return []

    def _say(self, lines: List[bytes]) -> None:
        self._sink.write(b"".join(lines))
        self._sink.flush()

    def _end(self) -> None:
        with suppress(Exception):
            self._process.kill()
        # Without a wait for a question that is still being asked.
        os._exit(0)


def _note(job: Job, rest: str) -> None:
    name, _, value = rest.partition(" ")
    if value:
        job[name] = value
    else:
        job.pop(name, None)


def _line(stream: Any) -> bytes:
    """The next line, empty at the end.

    Raises
    ------
    ValueError
        Where it is too long.
    """
    line = stream.readline(MOST_LINE)  # type: bytes
    if len(line) >= MOST_LINE and not line.endswith(b"\n"):
        raise ValueError("a line is too long")
    return line


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def _bytes(line: str) -> bytes:
    return line.encode("utf-8", "surrogateescape") + b"\n"
