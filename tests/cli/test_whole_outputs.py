"""Every number that verbs print, in documents and in tables, is the one that is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.outputs import COMMANDS, outputs

KNOWN = json.loads((Path(__file__).parent / "outputs.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return outputs()


def leaves(part: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document with their places."""
    if isinstance(part, dict | list):
        yield place, len(part)
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(value, f"{place}/{key}")
    else:
        yield place, part


@pytest.mark.parametrize("command", KNOWN)
def test_what_a_verb_prints_is_what_is_written_down(command: str, found: dict[str, Any]) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    expected = {
        place: pytest.approx(value, rel=2e-3, abs=1e-9) if isinstance(value, float) else value
        for place, value in leaves(KNOWN[command])
    }
    assert dict(leaves(found[command])) == expected


def test_every_command_is_written_down() -> None:
    assert [name for name in KNOWN if not name.endswith(" (drawn)")] == COMMANDS.read_text(
        encoding="utf-8"
    ).splitlines()
