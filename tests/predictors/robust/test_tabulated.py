"""What is kept of answers is what would be answered anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.predictors.robust.model import MOST_ANSWERS, Model
from metasched.predictors.robust.tabulated import OfCounts, Tabulated
from tests.predictors.robust.test_model import asked, measured, runs

COUNTS = st.lists(st.integers(1, 300), min_size=1, max_size=20, unique=True).map(sorted)


@given(st.lists(COUNTS, min_size=1, max_size=8))
def test_rows_of_counts_are_made_once_and_come_in_the_order_asked_for(questions: list[list[int]]) -> None:
    made: list[float] = []

    def rows(counts: np.ndarray) -> np.ndarray:
        made.extend(counts.tolist())
        return np.stack([counts, counts**2], axis=1)

    table = OfCounts(rows)
    for counts in questions:
        assert table.of(np.array(counts)).tolist() == [[count, count**2] for count in counts]
    assert sorted(made) == sorted({count for counts in questions for count in counts})


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(3, 60), st.integers(1, 40), st.sampled_from([0, 1]))
def test_times_asked_for_again_are_those_of_the_model(seed: int, count: int, requests: int, sizes: int) -> None:
    model = Model.fit(measured(runs(count, seed=seed)))
    tabulated, where = Tabulated(model), asked(requests, seed, sizes=sizes)
    plain, spread = model.predict(*where)
    for part in (slice(None), slice(0, 1), slice(None, None, 2), slice(None)):
        columns = [column[part] for column in where]
        assert tabulated.expect(*columns) == pytest.approx(plain[part], rel=1e-9)
        assert tabulated.predict(*columns)[1] == pytest.approx(spread[part], rel=1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.floats(1.0, 1e5), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_times_at_a_few_points_are_those_of_many(seed: int, size: float, counts: list[int]) -> None:
    tabulated, draw = Tabulated(Model.fit(measured(runs(20, seed=seed)))), np.random.default_rng(seed)
    cpu, bandwidth = draw.uniform(0.01, 2.0, len(counts)), draw.uniform(0.1, 2000.0, len(counts))
    many = tabulated.expect(np.full(len(counts), size), np.array(counts, dtype=np.float64), cpu, bandwidth)
    points = list(zip(counts, cpu.tolist(), bandwidth.tolist(), strict=True))
    assert tabulated.expect_few(size, points) == pytest.approx(many, rel=1e-9)
    assert tabulated.expect_few(size, [(2, 0.0, 90.0), (2, 0.5, 0.0)]) == [math.inf, math.inf]
    assert tabulated.expect_few(1e300, [(2, 0.5, 90.0)]) == [math.inf]
    assert tabulated.expect_few(5e-324, [(2, 5e-324, 5e-324)])[0] >= 0.0


def test_single_answers_are_kept_and_given_up_in_turn() -> None:
    model = Model.fit(measured(runs(30)))
    sizes = np.linspace(100.0, 900.0, MOST_ANSWERS + 5).tolist()
    first = [model.predict_one(size, 4, 0.5, 90.0) for size in sizes]
    assert [model.predict_one(size, 4, 0.5, 90.0) for size in sizes] == first
    assert len({time for time, _ in first}) == len(sizes)
    assert len(model._answers) <= MOST_ANSWERS
