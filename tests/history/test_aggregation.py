"""One answer of many: what is learned of answers, and what simple rules answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.history.run_times.aggregation import Aggregation
from metasched.history.run_times.simple_answers import LAST, SIMPLE, simple_answers

SECONDS = st.floats(1.0, 1e6)


@given(st.lists(st.tuples(st.lists(SECONDS, min_size=4, max_size=4), SECONDS), max_size=30))
def test_what_is_combined_lies_between_the_answers(past: list[tuple[list[float], float]]) -> None:
    combined = Aggregation(4)
    for said, truth in past:
        combined.learn("ada", np.array(said), truth)
    answers = np.array([60.0, 600.0, 3600.0, 900.0])
    assert 60.0 <= combined.mean("ada", answers) <= 3600.0
    assert 60.0 <= combined.mean("bob", answers) <= 3600.0


def test_a_single_answer_is_the_answer() -> None:
    combined = Aggregation(1)
    combined.learn("ada", np.array([60.0]), 90.0)
    assert combined.mean("ada", np.array([600.0])) == 600.0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_what_is_combined_does_not_depend_on_the_unit(scale: float) -> None:
    plain, scaled, generator = Aggregation(3), Aggregation(3), np.random.default_rng(1)
    for _ in range(50):
        answers, truth = generator.uniform(1.0, 9.0, 3), float(generator.uniform(1.0, 9.0))
        plain.learn("ada", answers, truth)
        scaled.learn("ada", scale * answers, scale * truth)
    answers = np.array([2.0, 5.0, 8.0])
    assert scaled.mean("ada", scale * answers) == pytest.approx(scale * plain.mean("ada", answers), rel=1e-6)


def test_the_absolute_error_is_hardly_above_that_of_the_best_answer_and_below_where_a_mean_is_better() -> None:
    combined, generator = Aggregation(5), np.random.default_rng(2)
    missed, of_each = [], []
    for _ in range(3000):
        truth = float(generator.lognormal(6.0, 0.5))
        answers = truth + np.array([90.0, 200.0, 900.0, 400.0, 300.0]) * generator.normal(size=5)
        missed.append(abs(combined.mean("ada", answers) - truth))
        of_each.append(np.abs(answers - truth))
        combined.learn("ada", answers, truth)
    assert np.mean(missed[500:]) < np.mean(of_each[500:], axis=0).min()


def test_users_differ_and_can_be_forgotten() -> None:
    combined, answers = Aggregation(2), np.array([100.0, 900.0])
    for _ in range(300):
        combined.learn("ada", answers, 100.0)
        combined.learn("bob", answers, 900.0)
    ada, new = combined.mean("ada", answers), combined.mean("eve", answers)
    assert ada < new < combined.mean("bob", answers)
    combined.forget("ada")
    assert combined.mean("ada", answers) == new


def test_simple_rules_say_what_they_are_called_by() -> None:
    own = np.array([[10.0, 20.0, 60.0, 500.0, 30.0], [100.0, 100.0, 100.0, 1000.0, 100.0]])
    same = np.array([[True, True, False, True, True], [True, True, True, False, True], [True] * 5])
    others = np.array([[40.0, 5.0], [80.0, 50.0]])
    found = simple_answers(own, others, same, np.array([False, True]), 100.0, 77.0)
    # Upper medians in seconds, then shares of the limit; others'; the last; means of shares.
    assert found == pytest.approx([20, 30, 30, 30, 30, 50, 10, 30, 25, 30, 100, 20, 34])


@given(st.integers(0, 3 * LAST), SECONDS)
def test_simple_rules_without_jobs_say_what_else_is_expected_and_none_exceeds_a_limit(jobs: int, limit: float) -> None:
    run = np.linspace(1.0, 2.0 * limit, jobs)
    own, none = np.stack([run, np.full(jobs, 2.0 * limit)]), np.zeros((3, jobs), dtype=bool)
    found = simple_answers(own, np.empty((2, 0)), none, np.empty(0, dtype=bool), limit, 0.5 * limit)
    assert len(found) == SIMPLE
    assert max(found) <= limit
    assert found[0] == found[5] == 0.5 * limit
