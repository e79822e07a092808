"""Everything that is made of traces is what is written down: rules, times, plans, and times by what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.signature.answers import answers

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return answers()


def test_the_same_is_made_of_every_application(found: dict[str, Any]) -> None:
    assert found.keys() == KNOWN.keys()
    assert len(KNOWN) > 100


@pytest.mark.parametrize(
    "kind", ["rules", "reported", "refused", "times", "plan", "measured", "statistical", "expanded"]
)
def test_what_is_made_of_traces_is_what_is_written_down(kind: str, found: dict[str, Any]) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    own = {name: value for name, value in KNOWN.items() if name.partition(": ")[2].startswith(kind)}
    numbers = kind in ("times", "measured")
    expected = {name: pytest.approx(value, rel=1e-6, abs=1e-12) if numbers else value for name, value in own.items()}
    assert {name: found[name] for name in own} == expected
