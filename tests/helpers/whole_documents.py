"""Documents compared place by place with those that are written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def leaves(part: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document with their places, and the number of parts of each part."""
    if isinstance(part, dict | list | tuple):
        yield place, len(part)
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(value, f"{place}/{key}")
    else:
        yield place, part


def expected(known: Any, rel: float) -> dict[str, Any]:
    """What the leaves of a document must be by their places: its numbers within a relative tolerance."""
    return {
        place: pytest.approx(value, rel=rel, abs=1e-9, nan_ok=True) if isinstance(value, float) else value
        for place, value in leaves(known)
    }


def known_answers(test: str, file: str = "answers.json") -> dict[str, Any]:
    """The answers by name that are written down beside a file of tests."""
    return dict(json.loads(Path(test).with_name(file).read_text(encoding="utf-8")))


def compared(test: str, answers: Callable[[], dict[str, Any]], rel: float, file: str = "answers.json") -> Any:
    """A test that each answer is the one that is written down; one that is meant to change is by ``make answers``.

    Parameters
    ----------
    test : path of the file of tests.
    answers : makes all of them, by name, once.
    rel : relative tolerance of their numbers.
    file : name of the file beside the tests that they are written down in.
    """
    known, found = known_answers(test, file), cache(answers)

    @pytest.mark.parametrize("name", known)
    def compare(name: str) -> None:
        assert found().keys() == known.keys()
        assert dict(leaves(found()[name])) == expected(known[name], rel)

    return compare


def rounded(part: Any, digits: int) -> Any:
    """A document with numbers of so many digits."""
    if isinstance(part, dict):
        return {key: rounded(value, digits) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [rounded(each, digits) for each in part]
    return float(f"{part:.{digits}g}") if isinstance(part, float) else part


def written_down(answers: dict[str, Any], digits: int) -> str:
    """Answers by name as a JSON document, each on a line, with numbers of so many digits."""
    lines = (f"{json.dumps(name)}: {json.dumps(rounded(value, digits))}" for name, value in answers.items())
    return "{\n" + ",\n".join(lines) + "\n}"
