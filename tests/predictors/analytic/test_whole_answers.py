"""Every time on clouds and of SPMD applications is the one that is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.predictors.analytic.answers import answers

test_times_are_those_written_down = compared(__file__, answers, rel=1e-3)
