"""Everything that a grid of sites answers over made-up days is what is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.sites.days import days

test_a_step_of_a_day_is_the_one_written_down = compared(__file__, days, rel=1e-6, file="days.json")
