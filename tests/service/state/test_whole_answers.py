"""What a daemon knows as hours pass is what is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.service.state.answers import answers

test_what_is_known_is_what_is_written_down = compared(__file__, answers, rel=1e-8)
