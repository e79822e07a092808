"""What equations, rules and costs come to is what is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.signature.rules.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("table", WRITTEN.known)
def test_a_table_is_the_one_written_down(table: str) -> None:
    """What is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(table, rel=1e-6)
    assert found == known
