"""Numbers and spans at the limits between the ways in which they are written."""

from __future__ import annotations

import pytest

from metasched.plain_numbers import number_of, plain, span


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (None, "–"), (0.0, "0 s"), (0.0999, "0.1 s"), (0.1, "0.1 s"), (0.104, "0.1 s"), (99.94, "99.9 s"),
        (100.0, "100 s"), (599.4, "599 s"), (600.0, "10.0 min"), (5999.0, "100.0 min"), (6000.0, "1.7 h"),
    ],
)  # fmt: skip
def test_a_span_has_the_unit_that_suits_it(seconds: float | None, written: str) -> None:
    assert span(seconds) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"), (-0.5, "-0.5"), (12345.6, "12346"), (-12345.6, "-12346"), (9.994e14, "999400000000000"),
        (1e15, "1e+15"), (-1e15, "-1e+15"), (1e-5, "1e-05"), (float("nan"), "nan"),
    ],
)  # fmt: skip
def test_large_numbers_are_written_in_full_up_to_a_limit(value: float, written: str) -> None:
    assert plain(value) == written


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ((0, "run"), "0 runs"), ((1, "search", "searches"), "1 search"), ((2, "search", "searches"), "2 searches"),
        ((1000, "node"), "1000 nodes"), ((1000, "node", "", " "), "1 000 nodes"),
    ],
)  # fmt: skip
def test_a_noun_agrees_with_its_number(arguments: tuple[int, str], written: str) -> None:
    assert number_of(*arguments) == written
