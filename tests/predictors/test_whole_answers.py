"""Every time and interval that a method answers is the one that is written down."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.predictors.answers import answers

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return answers()


@pytest.mark.parametrize("name", KNOWN)
def test_answers_are_those_written_down_to_a_thousandth(name: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    assert found.keys() == KNOWN.keys()
    for known, now in zip(KNOWN[name], found[name], strict=True):
        assert now == pytest.approx(known, rel=1e-3)
        assert any(0.0 < each < math.inf for each in known)
