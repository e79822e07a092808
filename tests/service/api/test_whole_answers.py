"""Each kind of answer is, from its first key to its last, the one that is written down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.service.api.answers import QUESTIONS, answers
from tests.service.daemons import running

KNOWN = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))
near = partial(pytest.approx, rel=5e-3, abs=1e-6)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with running(tmp_path_factory.mktemp("daemon"), mode="act") as daemon:
        daemon.work.stop()
        return answers(daemon)


def leaves(part: Any, place: str = "") -> Iterator[tuple[str, object]]:
    """The values of a document with their places; of a text the words, and each of its numbers."""
    if isinstance(part, dict | list):
        yield place, type(part)
        for key, value in sorted(part.items()) if isinstance(part, dict) else enumerate(part):
            yield from leaves(value, f"{place}/{key}")
    elif isinstance(part, str):
        yield place, NUMBER.sub("#", part)
        yield from ((f"{place}#", float(number)) for number in NUMBER.findall(part))
    else:
        yield place, part


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_the_one_written_down_to_half_a_percent(question: str, found: dict[str, Any]) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    known = [(place, near(value) if isinstance(value, float) else value) for place, value in leaves(KNOWN[question])]
    assert list(leaves(found[question])) == known
