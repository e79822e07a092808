"""Everything that comes out of simulated runs on made-up systems is what is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.simulation.answers import answers

test_a_run_is_the_one_written_down = compared(__file__, answers, rel=1e-6)
