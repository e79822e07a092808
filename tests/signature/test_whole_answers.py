"""Everything that is made of traces is what is written down: rules, times, plans, and times by what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.signature.answers import PROGRAMS, answers_of

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))


def known_of(program: str) -> dict[str, Any]:
    """What is written down of a program; times as well as they can be reproduced."""
    own = {name: value for name, value in KNOWN.items() if name.startswith(f"{program}: ")}
    times = ("times", "measured")
    return {
        name: pytest.approx(value, rel=1e-6, abs=1e-12) if name.partition(": ")[2].startswith(times) else value
        for name, value in own.items()
    }


def test_only_what_is_made_is_written_down() -> None:
    assert sorted(KNOWN) == sorted(name for each in PROGRAMS for name in known_of(each.name))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_made_of_traces_is_what_is_written_down(program: Any) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    assert answers_of(program) == known_of(program.name)
