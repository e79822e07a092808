"""The field's terms and plain English: words that this project once had of its own do not come back."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("metasched", "monitors", "candidate_functions", "deploy", "benchmarks")
#: Names that say nothing of what they hold: a forecast, a reservation, what was recorded, an error message.
NAMES = {
    "ahead",
    "complaint",
    "complaints",
    "impatient",
    "keeping",
    "levers",
    "looked",
    "taking",
    "talk",
    "told",
    "wildness",
}
#: Names that mean what everybody means by them: how far a clock runs ahead of another (s).
CLOCKS = {
    "monitors/sources/screening.py",
    "metasched/service/clock.py",
    "metasched/service/daemon.py",
    "metasched/service/load_intake.py",
}
#: Words and phrases that no line has that somebody reads.
PHRASES = re.compile(
    r"\b(told|talks?|impatient|complaints?|against nature|looked (at|into|upon)"
    r"|cannot\s+be\s+had|(may|can|could)\s+be\s+had|stands?\s+there\s+twice|beyond\s+all\s+numbers"
    r"|levers?|wild|let(s|ting)?\s+go|made\s+anew|taken\s+apart|intervals\s+(held|hold)|held\s+\d+ %"
    r"|nobody\s+(listened|looked)|(nobody|nothing)\s+(knows|says|tells)|hangs?\s+on|anew|in\s+the\s+words\s+of"
    r"|chance\s+to\s+finish|paper\s+\d+|which\s+there\s+is\s+not|for\s+ever|what\s+stands)\b",
    re.IGNORECASE,
)

SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
#: Hooks and sensors that administrators install, the programs in C, and the examples.
PROGRAMS = sorted(
    path
    for folder in ("deploy", "metasched", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix in ({"deploy": ("", ".lua")}.get(folder, (".c", ".css", ".js", ".py")))
    if path not in SOURCES
)
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "metasched").rglob("*.html")])


def names(tree: ast.Module) -> set[str]:
    """All names that a file gives: of variables, parameters, attributes, functions and classes, in lower case."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name.lower().strip("_"))
    return found


def phrases(text: str) -> list[str]:
    """Each line of a text that has a phrase."""
    return [line.strip() for line in text.splitlines() if PHRASES.search(line)]


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_the_fields_own(package: str) -> None:
    wrong = {
        str(path.relative_to(ROOT)): sorted(found)
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] == package
        and (found := names(ast.parse(path.read_text(encoding="utf-8"))) & NAMES)
        and not (found == {"ahead"} and str(path.relative_to(ROOT)) in CLOCKS)
    }
    assert not wrong


def test_sources_read_as_plain_english() -> None:
    assert {path.name for path in PROGRAMS} > {"metasched-epilog", "job_submit.lua", "recorder.c", "checkpoints.py"}
    files = [*SOURCES, *PROGRAMS]
    lines = {str(path.relative_to(ROOT)): phrases(path.read_text(encoding="utf-8")) for path in files}
    assert {where: found for where, found in lines.items() if found} == {}


def test_pages_read_as_plain_english() -> None:
    lines = {str(path.relative_to(ROOT)): phrases(path.read_text(encoding="utf-8")) for path in PAGES}
    assert {where: found for where, found in lines.items() if found} == {}


def test_words_are_found() -> None:
    assert names(ast.parse("def f(told): self.Ahead = [looked for looked in taking]")) & NAMES == {
        "told",
        "ahead",
        "looked",
        "taking",
    }
    assert phrases("what it was told\nfine\nIt cannot be had.") == ["what it was told", "It cannot be had."]
