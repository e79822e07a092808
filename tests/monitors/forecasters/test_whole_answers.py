"""Every forecast on made-up loads, and every horizon found with it, is the one that is written down."""

from __future__ import annotations

import pytest
from whole_documents import WholeAnswers

from tests.monitors.forecasters.answers import answers

WRITTEN = WholeAnswers(__file__, answers)


@pytest.mark.parametrize("name", WRITTEN.known)
def test_a_forecast_is_the_one_written_down(name: str) -> None:
    """One that is meant to change is written down anew by ``make answers``."""
    found, known = WRITTEN.both(name, rel=1e-5)
    assert found == known
