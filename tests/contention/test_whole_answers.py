"""Every slowdown of jobs drawn at random is the one that is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_documents import expected, leaves

from tests.contention.answers import answers

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return answers()


@pytest.mark.parametrize("name", KNOWN)
def test_an_answer_is_the_one_written_down(name: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    assert found.keys() == KNOWN.keys()
    assert dict(leaves(found[name])) == expected(KNOWN[name], rel=1e-4)
