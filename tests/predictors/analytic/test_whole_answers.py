"""Every time on clouds and of SPMD applications is the one that is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.predictors.analytic.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("name", WRITTEN.known)
def test_times_are_those_written_down(name: str) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(name, rel=1e-3)
    assert found == known
