"""Every ranking, explanation and move on made-up clusters is the one that is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.placement.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("name", WRITTEN.known)
def test_an_answer_is_the_one_written_down(name: str) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(name, rel=1e-5)
    assert found == known


def test_answers_are_of_all_kinds() -> None:
    documents = WRITTEN.known.values()
    assert {"placements", "explanation", "scaling", "why", "decision"} <= {key for each in documents for key in each}
    assert {each["decision"]["move"] for each in documents if "decision" in each} == {True, False}
