"""Each kind of answer is, from its first key to its last, the one that is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.service.api.answers import answers

test_an_answer_is_the_one_written_down_to_half_a_percent = compared(__file__, answers, rel=5e-3)
