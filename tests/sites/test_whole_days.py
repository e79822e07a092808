"""Everything that a grid of sites answers over made-up days is what is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_documents import expected, leaves

from tests.sites.days import days

KNOWN = json.loads((Path(__file__).parent / "days.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return days()


@pytest.mark.parametrize("name", KNOWN)
def test_a_step_of_a_day_is_the_one_written_down(name: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    assert found.keys() == KNOWN.keys()
    assert dict(leaves(found[name])) == expected(KNOWN[name], rel=1e-6)
