"""Every forecast on made-up loads, and every horizon found with it, is the one that is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.monitors.forecasters.answers import answers

test_a_forecast_is_the_one_written_down = compared(__file__, answers, rel=1e-5)
