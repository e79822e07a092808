"""Numbers as the pages of docs/ state them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LARGER = {12: "twelve", 20: "twenty"}


def word(number: float) -> str:
    """A small whole number as a word; any other one as it is."""
    if number in _LARGER:
        return _LARGER[int(number)]
    return _WORDS[int(number)] if number == int(number) and 0 <= number < len(_WORDS) else f"{number:g}"


@cache
def page(name: str) -> str:
    """The text of a page in one line."""
    return " ".join((DOCS / f"{name}.md").read_text(encoding="utf-8").split())
