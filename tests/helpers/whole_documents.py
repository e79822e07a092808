"""Documents compared place by place with those that are written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cached_property
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


class WholeAnswers:
    """Answers by name, made once, and those that are written down in ``answers.json`` beside a test.

    Parameters
    ----------
    test : path of the file of tests.
    answers : makes them.
    """

    def __init__(self, test: str, answers: Callable[[], dict[str, Any]]) -> None:
        self.known: dict[str, Any] = json.loads(Path(test).with_name("answers.json").read_text(encoding="utf-8"))
        self._answers = answers

    @cached_property
    def _found(self) -> dict[str, Any]:
        found = self._answers()
        assert found.keys() == self.known.keys()
        return found

    def both(self, name: str, rel: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """The leaves of an answer, and what they must be within a relative tolerance."""
        return dict(leaves(self._found[name])), expected(self.known[name], rel)


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
