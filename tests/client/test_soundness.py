"""What is read from a daemon's answer: text of others is one printable line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from metasched.client.soundness import NAME, count, matching, number
from monitors.one_line import one_line


def test_a_line_of_somebody_else_is_printable() -> None:
    assert one_line("a\x00b\u2028c \x1b]0;x\x07") == "a b c ]0;x"


def test_a_line_of_somebody_else_is_bounded() -> None:
    assert one_line("x" * 1000, 40) == "x" * 40
    assert one_line("x" * 1000) == "x" * 300
    # What is white at the beginning leaves room for what follows, of twice as much.
    assert one_line(" " * 50 + "y" * 50, 40) == "y" * 30
    assert one_line(" " * 80 + "y", 40) == ""


@pytest.mark.parametrize(
    ("check", "sound", "unsound"),
    [
        (count, [1, 10_000_000], [0, -1, 10_000_001, True, 1.0, "1", None]),
        (number, [1, 1e-300, 1e300], [0, -1.0, math.inf, math.nan, True, "1", None]),
        (lambda text: matching(text, NAME), ["a", "_x", "9", "n.1+a-b", "a" * 255],
         ["", "-a", ".a", "a b", "a\n", "ä", "a" * 256, 7, None]),
        (lambda text: matching(text, NAME, empty=True), ["", "a"], ["-a", " ", None, 0]),
    ],
)  # fmt: skip
def test_values_are_believed_that_can_be(check: Any, sound: list[Any], unsound: list[Any]) -> None:
    assert [check(value) for value in sound] == sound
    for value in unsound:
        with pytest.raises(ValueError, match="is invalid"):
            check(value)
