from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_functions.terms import Observations
from metasched.predictors.extrapolation import PRIOR_RATE, Extrapolation
from metasched.predictors.robust import RobustPredictor
from metasched.records import Request, Run

BOX = Extrapolation.of(Observations.of([100, 800], [2, 8], [0.5, 1.0], [50.0, 100.0], [1.0, 1.0]))
positive = st.floats(1e-3, 1e6)


def at(*values: float) -> tuple[np.ndarray, ...]:
    return tuple(np.array([float(value)]) for value in values)


@given(st.floats(100, 800), st.floats(2, 8), st.floats(0.5, 1.0), st.floats(50, 100))
def test_inside_the_box_nothing_is_added(n: float, p: float, cpu: float, bw: float) -> None:
    assert BOX.spread(*at(n, p, cpu, bw))[0] == pytest.approx(0.0, abs=1e-12)


@given(positive, positive, positive, positive, st.floats(1.0, 10.0))
def test_the_farther_outside_the_less_sure(n: float, p: float, cpu: float, bw: float, factor: float) -> None:
    farther = BOX.spread(*at(max(n, 800.0) * factor, p, cpu, bw))[0]
    assert farther >= BOX.spread(*at(max(n, 800.0), p, cpu, bw))[0]


def test_the_rate_is_that_of_the_errors_seen() -> None:
    distance = np.linspace(0.5, 3.0, 2000)
    errors = 0.4 * distance * np.random.default_rng(1).normal(size=2000)
    judged = BOX.judged(distance, errors, np.zeros(2000))
    assert judged.rate == pytest.approx(0.4, rel=0.1)
    assert BOX.rate == PRIOR_RATE


def test_an_error_that_was_expected_anyway_says_nothing_of_the_rate() -> None:
    judged = BOX.judged(np.ones(50), np.full(50, 0.1), np.full(50, 0.2))
    assert judged.rate < PRIOR_RATE


def test_a_box_that_has_grown_holds_the_new_runs() -> None:
    grown = BOX.grown(Observations.of([3000], [64], [0.1], [5.0], [1.0]))
    assert grown.spread(*at(3000, 64, 0.1, 5.0))[0] == pytest.approx(0.0, abs=1e-12)
    assert grown.spread(*at(100, 2, 0.5, 50.0))[0] == pytest.approx(0.0, abs=1e-12)


def test_runs_that_repeat_exactly_do_not_make_the_unknown_certain() -> None:
    runs = [
        Run("a", "c", n, p, 1.0, 100.0, 1e-3 * n / p + 0.01 * np.log2(p))
        for n in (1e4, 2e4, 4e4, 8e4, 16e4)
        for p in (2, 4, 8)
        for _ in range(3)
    ]
    predictor = RobustPredictor().fit(runs)

    def width(processors: int) -> float:
        interval = predictor.predict(Request(4e4, processors, 1.0, 100.0)).interval
        return float(np.log(interval.high / interval.low))

    assert width(32) > 2.0 * width(8)
    assert width(128) > width(32)


def test_one_prediction_is_as_unsure_as_one_of_many_inside_and_outside() -> None:
    rng = np.random.default_rng(3)
    runs = [
        Run("a", "c", n, p, cpu, 90.0, 1e-2 * n / (p * cpu) * noise)
        for n, p, cpu, noise in zip(
            rng.uniform(100, 900, 40), rng.choice([1, 2, 4], 40), rng.uniform(0.4, 1.0, 40), rng.uniform(0.9, 1.1, 40),
            strict=True,
        )
    ]  # fmt: skip
    predictor = RobustPredictor().fit(runs)
    for size, processors in ((500, 2), (9000, 2), (500, 64)):
        one = predictor.predict(Request(size, processors, 0.7, 90.0))
        many = predictor.predict_many(size, processors, 0.7, 90.0)
        assert one.interval.low == pytest.approx(many.low.item())
        assert one.interval.high == pytest.approx(many.high.item())
        among, others = predictor.predict_among(Request(size, processors, 0.7, 90.0), [[1, 4], [0.5, 0.5], [90.0, 9.0]])
        assert among.execution_time == pytest.approx(many.execution_time.item())
        assert others == pytest.approx(predictor.expect_many(size, [1, 4], 0.5, [90.0, 9.0]))
