"""What is made of programs drawn at random is what is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.signature.traces.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("seed", WRITTEN.known)
def test_what_is_made_of_a_program_is_what_is_written_down(seed: str) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(seed, rel=1e-6)
    assert found == known
