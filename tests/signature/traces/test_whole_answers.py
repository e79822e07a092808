"""What is made of programs drawn at random is what is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.signature.traces.answers import answers

test_what_is_made_of_a_program_is_what_is_written_down = compared(__file__, answers, rel=1e-6)
