"""Every ranking, explanation and move on made-up clusters is the one that is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.placement.answers import answers

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return answers()


def leaves(part: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document with their places."""
    if isinstance(part, dict | list | tuple):
        yield place, len(part)
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(value, f"{place}/{key}")
    else:
        yield place, part


@pytest.mark.parametrize("name", KNOWN)
def test_an_answer_is_the_one_written_down(name: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    assert found.keys() == KNOWN.keys()
    expected = {
        place: pytest.approx(value, rel=1e-5, abs=1e-9) if isinstance(value, float) else value
        for place, value in leaves(KNOWN[name])
    }
    assert dict(leaves(found[name])) == expected


def test_answers_are_of_all_kinds() -> None:
    kinds = {key for document in KNOWN.values() for key in document}
    assert {"placements", "explanation", "scaling", "why", "decision"} <= kinds
    assert {document["decision"]["move"] for document in KNOWN.values() if "decision" in document} == {True, False}
