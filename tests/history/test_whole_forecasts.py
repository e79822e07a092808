"""Every number that is expected of jobs is the one that is written down, and every reason."""

from __future__ import annotations

from typing import Any

import pytest
from whole_documents import known_answers

from tests.history.forecasts import forecasts

KNOWN = known_answers(__file__, "forecasts.json")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return forecasts()


@pytest.mark.parametrize("kind", ["job", "reason", "wait", "chances"])
def test_forecasts_are_those_written_down(kind: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    names = [name for name in KNOWN if name.partition(" ")[0] == kind]
    assert len(names) >= 40
    assert {name: found[name] for name in names} == {
        name: KNOWN[name] if kind == "reason" else pytest.approx(KNOWN[name], rel=1e-6, abs=1e-9) for name in names
    }
