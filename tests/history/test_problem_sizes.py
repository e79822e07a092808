"""Problem sizes in names: found where a number explains run times, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.history.problem_sizes import SizeInName, size_in_names, stem_of


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_number_that_explains_run_times_is_found_beside_others(noise: float) -> None:
    draw = np.random.default_rng(1)
    sizes, processors, days = draw.integers(100, 5000, 80), 2 ** draw.integers(0, 5, 80), draw.integers(1, 31, 80)
    run_time = sizes**2.0 / processors * np.exp(draw.normal(0.0, noise, 80))
    names = [f"v3-{day}-p{count}-n{size}" for day, count, size in zip(days, processors, sizes, strict=True)]
    found = size_in_names(names, run_time, processors.astype(float))
    assert found is not None
    assert found[0] == 4
    assert found[1] > 0.95


def test_twenty_jobs_are_enough_and_nineteen_are_not() -> None:
    sizes = np.arange(100.0, 2100.0, 100.0)
    names = [f"n{size:.0f}" for size in sizes]
    assert size_in_names(names, sizes**2, np.ones(20)) == (1, 1.0)
    assert size_in_names(names[1:], sizes[1:] ** 2, np.ones(19)) is None


def test_numbers_that_explain_nothing_are_no_sizes() -> None:
    draw = np.random.default_rng(2)
    for _ in range(20):
        names = [f"run-{number}" for number in draw.integers(1, 1000, 60)]
        assert size_in_names(names, np.exp(draw.normal(6.0, 1.0, 60)), np.ones(60)) is None


@pytest.mark.parametrize(
    ("names", "run_time"),
    [
        ([f"n{size}" for size in range(1, 15)], list(range(1, 15))),  # too few jobs
        ([f"n{size % 3 + 1}" for size in range(60)], [size % 3 + 1 for size in range(60)]),  # too few values
        ([f"n{size}" for size in range(60)], list(range(1, 61))),  # a size of 0
        ([f"n{size:013d}" for size in range(1, 61)], list(range(1, 61))),  # an identifier
        (["same"] * 60, list(range(1, 61))),
        ([], []),
    ],
)
def test_what_cannot_be_told_is_not(names: list[str], run_time: list[float]) -> None:
    assert size_in_names(names, np.array(run_time, dtype=float), np.ones(len(names))) is None


@given(st.text(max_size=40), st.integers(1, 4))
def test_a_rule_takes_a_size_above_0_from_names_like_its_own_and_from_no_others(name: str, number: int) -> None:
    size = SizeInName(stem_of(name), number, "app").of(name)
    assert size is None or size > 0
    assert SizeInName(stem_of(name) + "x", number, "app").of(name) is None
