"""The pages of docs/ are finished, and the output that they show is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.testbed import catalogue, report

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: A line that waits for its text: one word in capitals by itself, or a mark that something is missing.
PLACEHOLDER = re.compile(r"^[^\w|]*[A-Z][A-Z0-9_]+[^\w|]*$|\b(TODO|TBD|FIXME|XXX)\b", re.MULTILINE)


def found(text: str) -> list[str]:
    """Lines outside code that are no more than a placeholder."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [match.group() for match in PLACEHOLDER.finditer(outside)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_holds_a_placeholder(page: Path) -> None:
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["before\n\nSUMMARY\n\nafter", "<WALLTIME>", "{{SOME_TABLE}}", "Mean: TBD", "TODO say why"]
)
def test_placeholders_are_found(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize("text", ["MPI programs", "| CPU |\n", "```\nSUMMARY\n```", "`CPU` and `MPI`"])
def test_words_in_capitals_are_no_placeholders(text: str) -> None:
    assert not found(text)


def test_the_testbed_page_shows_what_its_summary_prints() -> None:
    page = (ROOT / "docs" / "testbed.md").read_text(encoding="utf-8")
    console = Console(width=report.WIDTH)
    with console.capture() as captured:
        for table in report.summary(catalogue.COMMITTED):
            console.print(table)
    rows = [line.rstrip() for line in captured.get().splitlines() if line.strip()]
    assert len(rows) > 20
    assert [row for row in rows if row not in page] == []
