"""Problem sizes that jobs state: found where a number explains run times, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.arrays import Floats
from metasched.history.problem_sizes import SizeRule, explaining_places, stated_numbers, stem_of


def places_in(names: list[str], run_time: Floats, processors: Floats) -> list[tuple[str, float]]:
    return explaining_places([stated_numbers(name, "") for name in names], run_time, processors)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_number_that_explains_run_times_is_found_beside_others(noise: float) -> None:
    draw = np.random.default_rng(1)
    sizes, processors, days = draw.integers(100, 5000, 80), 2 ** draw.integers(0, 5, 80), draw.integers(1, 31, 80)
    run_time = sizes**2.0 / processors * np.exp(draw.normal(0.0, noise, 80))
    names = [f"v3-{day}-p{count}-n{size}" for day, count, size in zip(days, processors, sizes, strict=True)]
    ((place, share),) = places_in(names, run_time, processors.astype(float))
    assert place == "4"
    assert share > 0.95


def test_twenty_jobs_are_enough_and_nineteen_are_not() -> None:
    sizes = np.arange(100.0, 2100.0, 100.0)
    names = [f"n{size:.0f}" for size in sizes]
    assert places_in(names, sizes**2, np.ones(20)) == [("1", 1.0)]
    assert places_in(names[1:], sizes[1:] ** 2, np.ones(19)) == []


def test_numbers_that_explain_nothing_are_no_sizes() -> None:
    draw = np.random.default_rng(2)
    for _ in range(20):
        names = [f"run-{number}" for number in draw.integers(1, 1000, 60)]
        assert places_in(names, np.exp(draw.normal(6.0, 1.0, 60)), np.ones(60)) == []


def test_of_many_numbers_in_arguments_none_is_found_by_chance() -> None:
    draw, mistaken = np.random.default_rng(3), 0
    for _ in range(50):
        stated = [{f"-{letter}": str(draw.integers(1, 1000)) for letter in "abcdefghijklmnop"} for _ in range(30)]
        mistaken += bool(explaining_places(stated, np.exp(draw.normal(6.0, 1.0, 30)), np.ones(30)))
    assert mistaken == 0


def test_a_number_is_found_wherever_it_has_been_moved_to() -> None:
    draw = np.random.default_rng(4)
    sizes, steps = draw.integers(100, 5000, 90), draw.integers(1, 9, 90)
    stated = [
        {"-s": str(step), **({"$1": str(size)} if job < 40 else {"-n": str(size)} if job < 70 else {})}
        for job, (size, step) in enumerate(zip(sizes, steps, strict=True))
    ]
    found = explaining_places(stated, 0.01 * sizes**1.5, np.ones(90))
    assert [place for place, _ in found] == ["$1", "-n"]


def test_the_number_of_processors_is_no_problem_size() -> None:
    counts = 2.0 ** np.random.default_rng(5).integers(0, 6, 60)
    assert explaining_places([{"-np": f"{count:.0f}"} for count in counts], 600.0 / counts, counts) == []


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
    assert places_in(names, np.array(run_time, dtype=float), np.ones(len(names))) == []


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["1", "2", "-n", "$1", "script:-n"]))
def test_a_rule_takes_a_size_above_0_from_jobs_like_its_own_and_from_no_others(
    name: str, numbers: str, place: str
) -> None:
    size = SizeRule(stem_of(name), place, "app").of(name, numbers)
    assert size is None or size > 0
    assert SizeRule(stem_of(name) + "x", place, "app").of(name, numbers) is None


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("l\u00f6se_#", "l\u00f6se_1400"),
        ("l\u00f6se_#", "l??se_1400"),
        ("l??se_#", "l\u00f6se_1400"),
        ("x\u0663_#", "x??_1400"),
    ],
)
def test_a_name_with_other_letters_is_known_by_what_hooks_tell_of_it(rule: str, name: str) -> None:
    assert SizeRule(rule, "1", "solve").of(name) == 1400.0
    assert SizeRule(rule, "1", "solve").of(f"_{name}") is None
