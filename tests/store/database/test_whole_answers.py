"""What a database tells after days of use is what is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.store.database.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("kind", WRITTEN.known)
def test_what_is_told_is_what_is_written_down(kind: str) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(kind, rel=1e-13)
    assert found == known
