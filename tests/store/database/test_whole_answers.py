"""What a database tells after days of use is what is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.store.database.answers import answers

test_what_is_told_is_what_is_written_down = compared(__file__, answers, rel=1e-13)
