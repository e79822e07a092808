"""Pages of Markdown whose blocks are run: the commands of a page in order, in one folder, and what they print.

The word after a fence says what is in the block:

``console``
    Lines that begin with ``$ `` are commands (a backslash at the end of the line continues one); the lines below are
    what they print, stdout and stderr together, at 100 columns. A line ``...`` stands for lines that are left out.
``python``
    Run, all blocks of a page in one namespace; with ``>>>``, as a doctest.
``bash``
    Commands without output, which are not run: they must parse.
``toml``, ``json``
    Must parse.
``text``
    A drawing or a formula, never the output of a command.

Comments in the lines just before a fence say more, one thing each:

``<!-- file: NAME -->``
    The block is a file: its text is written to NAME in the page's folder.
``<!-- before: COMMAND -->``
    Runs first, and is not shown.
``<!-- daemon: NAME -->``
    One of ``tests.page_daemons`` runs from here to the end of the page.
``<!-- tolerance: 0.1 -->``
    How much numbers may differ, relative to the larger one; 0.05 where nothing is said.
``<!-- varies: REGEX -->``
    What differs from run to run (seconds, ids, ages).
``<!-- status: 2 -->``
    With what exit status the last command of the block leaves, where that is not 0.
``<!-- needs: slow -->``, ``<!-- needs: system -->``
    Only run with tests of this mark: it takes more than seconds, or a real Slurm.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from metasched.cli import main
from tests import page_daemons

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: What a page's commands find in its folder, as somebody does who reads it in a checkout.
SHARED = ("benchmarks", "deploy", "docs", "examples", "tests")
WIDTH = "100"
TOLERANCE = 0.05

_BLOCK = re.compile(r"(?P<notes>(?:^<!-- .* -->\n)*)^```(?P<kind>.*)\n(?P<body>(?:.*\n)*?)^```$", re.MULTILINE)
_NOTE = re.compile(r"<!-- ([a-z]+): (.*) -->")
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_TOKEN = re.compile(rf"({_NUMBER})|([^\s\d]+)")
_BORDERS = re.compile("[|\u2500-\u257f]+")
#: Where a command needs a shell, or writes past Python's own streams.
_SHELL = re.compile(r"[|<>;&$`*]|^[A-Z_]+=|^metasched (run|submit|agent)\b|^(?!metasched\b)")


@dataclass(frozen=True)
class Step:
    """A command and the lines that the page shows below it."""

    command: str
    shown: str


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it is, and what the comments before it say."""

    line: int
    begin: int
    end: int
    kind: str
    body: str
    notes: dict[str, list[str]]

    @property
    def needs(self) -> str:
        """The mark of the tests that run it; empty for the quick ones."""
        return self.notes.get("needs", [""])[0]

    @property
    def tolerance(self) -> float:
        """Largest relative difference of numbers."""
        return float(self.notes.get("tolerance", [str(TOLERANCE)])[0])

    @property
    def steps(self) -> list[Step]:
        """The commands of a console block, each with what is shown below it."""
        found = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", self.body, re.MULTILINE)
        return [Step(command, shown) for command, shown in found]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        notes: dict[str, list[str]] = {}
        for name, value in _NOTE.findall(match["notes"]):
            notes.setdefault(name, []).append(value)
        line = text.count("\n", 0, match.start("kind")) + 1
        found.append(Block(line, *match.span("body"), match["kind"], match["body"], notes))
    return found


def tokens(text: str, varies: list[str] | None = None) -> list[str]:
    """The words and numbers of an output, without the borders of tables and what differs from run to run."""
    for pattern in varies or []:
        text = re.sub(pattern, "~", text)
    return [number or word for number, word in _TOKEN.findall(_BORDERS.sub(" ", text))]


def close(one: str, other: str, tolerance: float) -> bool:
    """Whether two tokens are one word, or numbers that differ by the tolerance or by one in the last decimal shown."""
    if one == other:
        return True
    if not (re.fullmatch(_NUMBER, one) and re.fullmatch(_NUMBER, other)):
        return False
    a, b = (float(each.replace(",", "")) for each in (one, other))
    decimals = min(len(each.partition(".")[2]) if "e" not in each else 0 for each in (one, other))
    rounding = 1.001 * 10.0**-decimals if decimals else 0.0
    return abs(a - b) <= max(tolerance * max(a, b), rounding)


def agree(shown: str, printed: str, tolerance: float = TOLERANCE, varies: list[str] | None = None) -> bool:
    """Whether what is printed is what the page shows; a line ``...`` stands for any that it leaves out."""
    whole = tokens(printed, varies)
    parts = [tokens(part, varies) for part in re.split(r"(?m)^\.\.\.$", shown)]
    compared = list(zip(parts[0], whole, strict=False))
    if len(parts) == 1:
        complete = len(parts[0]) == len(whole)
    else:
        complete = len(parts[0]) + len(parts[-1]) <= len(whole)
        compared += zip(reversed(parts[-1]), reversed(whole), strict=False)
    return complete and all(close(one, other, tolerance) for one, other in compared)


def renewed(shown: str, printed: str) -> str:
    """What the page should show: all that is printed, with as many lines left out as before."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    before = shown.rstrip().splitlines()
    if "..." in before:
        head, tail = before.index("..."), len(before) - before.index("...") - 1
        lines = [*lines[:head], "...", *lines[len(lines) - tail :]] if len(lines) >= head + tail else lines
    ends = "\n" if shown.endswith("\n\n") else ""
    return "\n".join(lines) + "\n" * bool(lines) + ends


def in_process(command: str, folder: Path) -> tuple[str, int]:
    """Run a verb of metasched in this process, which saves the imports."""
    stream = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            main(shlex.split(command.replace("\\\n", " "), comments=True)[1:])
        except SystemExit as left:
            return stream.getvalue(), int(left.code or 0)
    return stream.getvalue(), 0


@dataclass
class Reader:
    """Somebody who follows a page from its top, in a folder of their own, without a network."""

    folder: Path
    stack: contextlib.ExitStack
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, command: str) -> tuple[str, int]:
        """What a command prints, and its exit status."""
        if not _SHELL.search(command):
            return in_process(command, self.folder)
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.stdout, done.returncode

    def python(self, source: str) -> str:
        """What a block of Python prints."""
        stream = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(stream):
            if source.startswith(">>>"):
                examples = doctest.DocTestParser().get_doctest(source, self.names, "block", None, 0)
                doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=stream.write, clear_globs=False)
            else:
                exec(compile(source, "block", "exec"), self.names)
        return stream.getvalue()

    def prepare(self, block: Block) -> None:
        """Do what the comments before a block ask for."""
        for name in block.notes.get("file", []):
            (self.folder / name).write_text(block.body, encoding="utf-8")
        for name in block.notes.get("daemon", []):
            self.stack.enter_context(page_daemons.DAEMONS[name](self.folder))
        for command in block.notes.get("before", []):
            printed, status = self.run(command)
            assert status == 0, f"line {block.line}: {command}\n{printed}"


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """A reader in an empty folder, whose environment is this checkout's and nobody's own."""
    for name in SHARED:
        (folder / name).symlink_to(ROOT / name)
    programs = folder / ".bin"
    programs.mkdir()
    for name, words in (("metasched", "-m metasched "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        (programs / name).chmod(0o755)
    environment = {
        "COLUMNS": WIDTH,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "METASCHED_DB": str(folder / "metasched.db"),
        "XDG_STATE_HOME": str(folder),
    }
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with contextlib.ExitStack() as stack:
            yield Reader(folder, stack)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@dataclass(frozen=True)
class Printed:
    """What a command of a page printed, beside what the page shows."""

    block: Block
    step: Step
    text: str
    status: int

    @property
    def expected_status(self) -> int:
        """The exit status that the page speaks of."""
        last = self.step == self.block.steps[-1]
        return int(self.block.notes.get("status", ["0"])[0]) if last else 0

    @property
    def agrees(self) -> bool:
        """Whether the page shows what was printed."""
        same = agree(self.step.shown, self.text, self.block.tolerance, self.block.notes.get("varies"))
        return same and self.status == self.expected_status

    def __str__(self) -> str:
        return (
            f"line {self.block.line}: $ {self.step.command}\n{self.text}left with {self.status}; the page shows\n"
            f"{self.step.shown}"
        )


def follow(page: Path, folder: Path, marks: tuple[str, ...] = ("",)) -> list[Printed]:
    """Follow a page from its top, with the blocks that need one of these marks.

    Returns
    -------
    What each command with an output on the page printed.
    """
    found = []
    with reading(folder) as reader:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.needs not in marks:
                continue
            reader.prepare(block)
            if block.kind == "python":
                printed = reader.python(block.body)
                assert not printed.startswith("*"), f"{page.name}, line {block.line}: {printed}"
            for step in block.steps if block.kind == "console" else []:
                text, status = reader.run(step.command)
                found.append(Printed(block, step, text, status))
    return found
