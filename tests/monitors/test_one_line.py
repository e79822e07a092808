"""What somebody else wrote, made one line."""

from __future__ import annotations

import pytest

from monitors.one_line import one_line


@pytest.mark.parametrize(
    ("said", "most", "line"),
    [
        ("a" * 301, 300, "a" * 300), ("a" * 300, 300, "a" * 300), ("a\t\r\nb  c ", 300, "a b c"), ("", 300, ""),
        (7, 300, "7"), ("abc def", 5, "abc d"), ("\x1b[31mred", 300, "[31mred"), ("\u202eabc", 300, "abc"),
        # Twice as many are looked at: blanks that are left out cost nothing up to there.
        (" " * 3 + "abcd", 4, "abcd"), (" " * 5 + "abcd", 4, "abc"),
        (ValueError(""), 300, "ValueError"), (ValueError("\n"), 300, "ValueError"), (ValueError("no"), 300, "no"),
        (ValueError, 300, "<class 'ValueError'>"),
    ],
)  # fmt: skip
def test_what_somebody_wrote_is_one_line_of_at_most_so_many_letters(said: object, most: int, line: str) -> None:
    assert one_line(said, most) == line
