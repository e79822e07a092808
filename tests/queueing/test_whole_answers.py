"""Every solution and bound of networks drawn at random is the one that is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.queueing.answers import answers

test_an_answer_is_the_one_written_down = compared(__file__, answers, rel=1e-5)
