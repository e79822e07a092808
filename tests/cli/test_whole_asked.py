"""Every number that verbs print that ask a daemon is the one that is written down."""

from __future__ import annotations

from whole_documents import compared

from tests.cli.asked import outputs

test_what_a_verb_prints_is_what_is_written_down = compared(__file__, outputs, rel=5e-3, file="asked.json")
