"""Everything that is made of traces is what is written down: rules, times, plans, and times by what was measured."""

from __future__ import annotations

from typing import Any

import pytest
from whole_documents import expected, known_answers, leaves

from tests.signature.answers import PROGRAMS, answers_of

KNOWN = known_answers(__file__)


def known_of(program: str) -> dict[str, Any]:
    """What is written down of a program."""
    return {name: value for name, value in KNOWN.items() if name.startswith(f"{program}: ")}


def test_only_what_is_made_is_written_down() -> None:
    assert sorted(KNOWN) == sorted(name for each in PROGRAMS for name in known_of(each.name))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_made_of_traces_is_what_is_written_down(program: Any) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    assert dict(leaves(answers_of(program))) == expected(known_of(program.name), rel=1e-6)
