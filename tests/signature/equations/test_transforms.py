"""How counts grow with the number of processes: forms that are known are found, and none where none fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from metasched.signature.equations.transforms import (
    TRANSFORMS,
    PowerLaw,
    WholeForm,
    are_whole,
    r_squared,
    weight_form,
)


def test_each_transform_is_what_its_name_says() -> None:
    values = {name: [transform(n) for n in (1, 8, 64, 27)] for name, transform in TRANSFORMS.items()}
    assert values == {
        "sqrt(n)": [1.0, math.sqrt(8.0), 8.0, math.sqrt(27.0)],
        "log2(n)": [0.0, 3.0, 6.0, math.log2(27.0)],
        "n": [1.0, 8.0, 64.0, 27.0],
        "cbrt(n)": [1.0, 2.0, 4.0, 3.0],
        "n log2(n)": [0.0, 24.0, 384.0, 27.0 * math.log2(27.0)],
    }
    assert [*TRANSFORMS] == ["sqrt(n)", "log2(n)", "n", "cbrt(n)", "n log2(n)"]


@pytest.mark.parametrize(
    ("form", "text", "values"),
    [
        (WholeForm(7), "7", (7, 7)),
        (WholeForm(0), "0", (0, 0)),
        (WholeForm(-7), "-7", (-7, -7)),
        (WholeForm(0, (("n", 1),)), "n", (8, 64)),
        (WholeForm(3, (("n", -1),)), "-n + 3", (-5, -61)),
        (WholeForm(-1, (("n", 2), ("log2(n)", -3))), "2 n - 3 log2(n) - 1", (6, 109)),
        (WholeForm(1, (("cbrt(n)", 5),)), "5 cbrt(n) + 1", (11, 21)),
        (WholeForm(0, (("sqrt(n)", 10),)), "10 sqrt(n)", (28, 80)),
    ],
)
def test_a_form_is_written_and_evaluated_to_whole_numbers(form: WholeForm, text: str, values: tuple[int, int]) -> None:
    assert (str(form), form(8), form(64)) == (text, *values)


SQUARES, POWERS, CUBES = (16, 64, 256), (8, 32, 128), (8, 27, 125)


@pytest.mark.parametrize(
    ("counts", "grows", "text"),
    [
        (SQUARES, lambda n: 12 * math.isqrt(n) - 12, "12 sqrt(n) - 12"),
        (SQUARES, lambda n: 12 * math.isqrt(n), "12 sqrt(n)"),
        (SQUARES, lambda n: 5 * math.isqrt(n) + 5, "5 sqrt(n) + 5"),
        (SQUARES, lambda n: 5 * math.isqrt(n) + 17, "5 sqrt(n) + 17"),
        (POWERS, lambda n: 9 * (n.bit_length() - 1) - 18, "9 log2(n) - 18"),
        (POWERS, lambda n: 9 * (n.bit_length() - 1), "9 log2(n)"),
        (POWERS, lambda n: 3 * n + 4, "3 n + 4"),
        (POWERS, lambda n: 2 * n * (n.bit_length() - 1), "2 n log2(n)"),
        (CUBES, lambda n: 7 * round(n ** (1 / 3)) - 7, "7 cbrt(n) - 7"),
        ((10, 20, 50), lambda n: n, "n"),
        ((10, 20, 50), lambda n: 1000 - 7 * n, "-7 n + 1000"),
        (SQUARES, lambda n: 42, "42"),
        ((10, 20, 50), lambda n: n * n, None),
    ],
)
def test_the_form_by_which_counts_were_made_is_found(counts: tuple[int, ...], grows, text: str | None) -> None:
    found = weight_form(counts, [grows(n) for n in counts])
    assert (None if found is None else str(found)) == text
    if found is not None:
        assert (found.error, [found(n) for n in counts]) == (0.0, [grows(n) for n in counts])


@pytest.mark.parametrize(
    ("weights", "text", "error"),
    [
        ((1000, 1001, 1002), "1001", 2.0),  # two of a thousand may have been missed
        ((999, 999, 1000), None, None),  # of fewer none
        ((1000, 1000, 1003), None, None),
        ((4003, 8001, 16_000), None, None),
        ((4002, 8001, 16_000), "1000 sqrt(n)", 2.0),
        ((3998, 8002, 16_000), "1000 sqrt(n)", 2.0),
    ],
)
def test_a_count_of_a_thousand_may_miss_two(weights: tuple[int, ...], text: str | None, error: float | None) -> None:
    found = weight_form(SQUARES, weights)
    if error is None:
        assert found is None
    else:
        assert found is not None
        assert (str(found), found.error) == (text, error)


@pytest.mark.parametrize(
    ("values", "whole"),
    [([1.0, -2.0, 3e9], True), ([1.0 + 5e-10], True), ([1.0 + 2e-9], False), ([0.5], False), ([], True)],
)
def test_whole_is_what_is_whole_but_for_rounding(values: list[float], whole: bool) -> None:
    assert are_whole(values) is whole


def test_a_power_law_is_the_line_through_the_logarithms() -> None:
    counts, values = [4.0, 8.0, 16.0, 64.0], [900.0, 500.0, 210.0, 60.0]
    line = scipy.stats.linregress(np.log(counts), np.log(values))
    law = PowerLaw.fitted(counts, values)
    assert (law.exponent, law.factor, law.r_squared) == pytest.approx(
        (line.slope, math.exp(line.intercept), line.rvalue**2)
    )
    assert law(32.0) == pytest.approx(math.exp(line.intercept + line.slope * math.log(32.0)))


@pytest.mark.parametrize(("power", "found"), [(3.9, 3.9), (4.5, 4.0), (-4.5, -4.0)])
def test_no_power_is_steeper_than_the_fourth(power: float, found: float) -> None:
    """Then it is the law of that power through the middle of the points."""
    counts = [1.0, 4.0]
    law = PowerLaw.fitted(counts, [2.0, 2.0 * 4.0**power])
    assert law.exponent == pytest.approx(found)
    assert law(2.0) == pytest.approx(2.0 * 2.0**power)


def test_a_fit_explains_all_of_no_variance_and_none_where_it_is_the_mean() -> None:
    assert r_squared([5.0, 5.0], [9.0, 1.0]) == 1.0
    assert r_squared([1.0, 3.0], [2.0, 2.0]) == 0.0
    assert r_squared([1.0, 3.0], [1.0, 2.0]) == 0.5
    assert r_squared([1.0, 3.0], [3.0, 1.0]) == -3.0
