"""Every number that verbs print, in documents and in tables, is the one that is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_documents import expected, leaves

from tests.cli.outputs import COMMANDS, outputs

KNOWN = json.loads((Path(__file__).parent / "outputs.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def found() -> dict[str, Any]:
    return outputs()


@pytest.mark.parametrize("command", KNOWN)
def test_what_a_verb_prints_is_what_is_written_down(command: str, found: dict[str, Any]) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    assert dict(leaves(found[command])) == expected(KNOWN[command], rel=2e-3)


def test_every_command_is_written_down() -> None:
    assert [name for name in KNOWN if not name.endswith(" (drawn)")] == COMMANDS.read_text(
        encoding="utf-8"
    ).splitlines()
