"""What a daemon knows as hours pass is what is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.service.state.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("kind", WRITTEN.known)
def test_what_is_known_is_what_is_written_down(kind: str) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(kind, rel=1e-8)
    assert found == known
