"""Every number that verbs print that ask a daemon is the one that is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_documents import expected, leaves

from tests.cli.asked import outputs

KNOWN = json.loads((Path(__file__).parent / "asked.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return outputs()


@pytest.mark.parametrize("command", KNOWN)
def test_what_a_verb_prints_is_what_is_written_down(command: str, found: dict[str, Any]) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    assert dict(leaves(found[command])) == expected(KNOWN[command], rel=5e-3)
