"""What equations, rules and costs come to is what is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.signature.rules.answers import answers

test_a_table_is_the_one_written_down = compared(__file__, answers, rel=1e-6)
