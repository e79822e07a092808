"""Everything that comes out of simulated runs on made-up systems is what is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.simulation.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("name", WRITTEN.known)
def test_a_run_is_the_one_written_down(name: str) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(name, rel=1e-6)
    assert found == known
