"""Every number that verbs print, in documents and in tables, is the one that is written down."""

from __future__ import annotations

from whole_documents import compared, known_answers

from tests.cli.outputs import COMMANDS, outputs

test_what_a_verb_prints_is_what_is_written_down = compared(__file__, outputs, rel=2e-3, file="outputs.json")


def test_every_command_is_written_down() -> None:
    known = known_answers(__file__, "outputs.json")
    commands = COMMANDS.read_text(encoding="utf-8").splitlines()
    assert [name for name in known if not name.endswith(" (drawn)")] == commands
