from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_functions.terms import Observations
from metasched.predictors.porting.factors import bandwidth_factor, cpu_factor, dedicated
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.records import InputError, Run


def alone(sizes, times, cpu=1.0) -> Observations:
    ones = np.ones(len(sizes))
    return Observations.of(sizes, ones, cpu * ones, 90.0 * ones, times)


SIZES = np.geomspace(100, 900, 6)


@given(ratio=st.floats(0.01, 100.0), exponent=st.floats(0.5, 3.0))
def test_rcpu_is_the_ratio_of_times_whatever_the_complexity(ratio: float, exponent: float) -> None:
    found = cpu_factor(alone(SIZES, SIZES**exponent), alone(SIZES, ratio * SIZES**exponent))
    assert found.value == pytest.approx(ratio)
    assert found.low <= found.value <= found.high


@given(ratio=st.floats(0.1, 10.0))
def test_platforms_exchanged_have_the_inverse_rcpu(ratio: float) -> None:
    rng = np.random.default_rng(3)
    here, there = (alone(SIZES, SIZES * np.exp(rng.normal(0, 0.1, 6))) for _ in range(2))
    there = alone(SIZES, ratio * there.time)
    assert cpu_factor(here, there).value == pytest.approx(1.0 / cpu_factor(there, here).value)


def test_one_run_gone_wrong_does_not_move_rcpu_far() -> None:
    times = 0.5 * SIZES
    times[2] *= 10.0
    assert cpu_factor(alone(SIZES, SIZES), alone(SIZES, times)).value == pytest.approx(0.5)


def test_a_processor_not_quite_free_does_not_count_as_slow() -> None:
    assert cpu_factor(alone(SIZES, SIZES), alone(SIZES, SIZES / 0.92, cpu=0.92)).value == pytest.approx(1.0)


@pytest.mark.parametrize("sizes", [1, 2, 15])
def test_runs_that_agree_leave_a_range_for_rcpu_the_narrower_the_more_they_are(sizes: int) -> None:
    n = np.linspace(100.0, 400.0, sizes)
    found = cpu_factor(alone(n, n**1.5), alone(n, 0.5 * n**1.5))
    assert found.value == pytest.approx(0.5)
    assert found.low < found.value < found.high
    assert math.log(found.high / found.low) == pytest.approx(2 * 0.01 * math.sqrt(math.pi / 2 / sizes))


def test_platforms_without_sizes_in_common_are_refused() -> None:
    with pytest.raises(InputError, match="problem sizes 5000 to 9000, expected some within those of the reference"):
        cpu_factor(alone(SIZES, SIZES), alone([5000.0, 9000.0], [1.0, 2.0]))


@given(truth=st.floats(-3.0, 3.0), sharp=st.floats(1e3, 1e5))
def test_rbw_is_where_the_fit_is_best_and_its_range_ends_where_the_fit_is_that_of_the_reference(
    truth: float, sharp: float
) -> None:
    def misfit(log_rbw: float) -> float:
        return 0.2 + sharp * (log_rbw - truth) ** 2

    found = bandwidth_factor(misfit, 0.7, runs=15)
    assert np.log(found.value) == pytest.approx(truth, abs=0.01)
    assert misfit(np.log(found.low)) == pytest.approx(0.7, rel=1e-3)
    assert misfit(np.log(found.high)) == pytest.approx(0.7, rel=1e-3)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_rbw_is_found_at_either_end_of_its_range(side: float) -> None:
    found = bandwidth_factor(lambda log_rbw: 1e3 * (log_rbw - side * 9.0) ** 2, 0.5, runs=15)
    assert found.value == pytest.approx(10.0 ** (3.0 * side), rel=1e-3)


def test_rbw_stays_1_where_the_runs_cannot_tell() -> None:
    found = bandwidth_factor(lambda log_rbw: 1.0, 1.0, runs=15)
    assert found.value == pytest.approx(1.0, abs=1e-4)
    assert (found.low, found.high) == pytest.approx((1e-3, 1e3))


@pytest.mark.parametrize("undefined", [math.nan, math.inf])
def test_a_formula_that_is_not_defined_at_the_runs_is_refused(undefined: float) -> None:
    with pytest.raises(InputError, match="not defined at some dedicated runs"):
        bandwidth_factor(lambda log_rbw: undefined, 1.0, runs=15)
    with pytest.raises(InputError, match="not defined at some dedicated runs"):
        bandwidth_factor(lambda log_rbw: log_rbw**2, undefined, runs=15)


def test_loaded_runs_are_not_taken_for_dedicated_ones() -> None:
    loaded = Run("made", "c8", 100, 1, 0.5, 90.0, 3.0)
    free = Run("made", "c8", 100, 1, 0.97, 90.0, 2.0)
    assert dedicated([loaded, free], 1, where="here") == [free]
    with pytest.raises(InputError, match="here: no dedicated run on 1 processor"):
        dedicated([loaded], 1, where="here")


@pytest.mark.parametrize("side", ["reference", "target"])
def test_links_are_shared_by_one_node_or_more(side: str) -> None:
    with pytest.raises(InputError, match=f"^the {side} has 0 nodes, expected 1 or more$"):
        LinkSharing(**{side: 0})
    assert LinkSharing(**{side: 1}).congestion(np.array([1.0])).tolist() == [1.0]
