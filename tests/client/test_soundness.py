"""What is read from a daemon's answer: text of others is one printable line."""

from __future__ import annotations

from metasched.client.soundness import one_line


def test_a_line_of_somebody_else_is_printable() -> None:
    assert one_line("a\x00b\u2028c \x1b]0;x\x07") == "a b c ]0;x"


def test_a_line_of_somebody_else_is_bounded() -> None:
    assert one_line("x" * 1000, 40) == "x" * 40
