"""Every ranking, explanation and move on made-up clusters is the one that is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_documents import expected, leaves

from tests.placement.answers import answers

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return answers()


@pytest.mark.parametrize("name", KNOWN)
def test_an_answer_is_the_one_written_down(name: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    assert found.keys() == KNOWN.keys()
    assert dict(leaves(found[name])) == expected(KNOWN[name], rel=1e-5)


def test_answers_are_of_all_kinds() -> None:
    kinds = {key for document in KNOWN.values() for key in document}
    assert {"placements", "explanation", "scaling", "why", "decision"} <= kinds
    assert {document["decision"]["move"] for document in KNOWN.values() if "decision" in document} == {True, False}
