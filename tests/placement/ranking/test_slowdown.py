"""The latest acceptable completion by hand: from what is expected of the loads, and the set that it is asked of."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from known_model import Known

from metasched.placement.clusters.constraints import NO_DEMANDS
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.ranking.slowdown import Latest, latest
from metasched.placement.search.joined_clusters import Layout, lay_out
from metasched.predictors.contract import Predictor
from metasched.records import Interval, Placement, Prediction, ResourceSet

#: Levels of the forecast's intervals, and of the intervals that count: one run in three is slower than the upper end.
FORECAST, COUNTED = 0.9, 1.0 / 3.0


def laid_out(minima: SetMinima | None, predictor: Predictor) -> Layout:
    """The clusters b and c, each with the nodes 1 and 2."""
    states = [ClusterState.make(name, [f"{name}1", f"{name}2"], available_bandwidth=100.0) for name in "bc"]
    states[1] = replace(states[1], minima=minima)
    return lay_out(states, predictor, NO_DEMANDS, avoid_shared=False, settings=())[0]


def placed(cpu: float, bandwidth: float) -> Placement:
    """Two processors of c: 200 s of computing, and 40 s of 2,000 Mbit, after a wait of 60 s."""
    return Placement(
        ResourceSet("c", ("c1", "c2"), 2, cpu, bandwidth), Prediction(240.0, Interval(240.0, 240.0, 0.9), ""), 60.0
    )


def test_without_a_forecast_it_is_later_by_the_share() -> None:
    found = latest(laid_out(None, Known(work=100.0)), placed(0.25, 50.0), 0.25, 1.0)
    assert found.here.tolist() == [False, True]
    assert (found.processors, found.cpu, found.bandwidth) == (2, 0.25, 50.0)
    assert found.own == pytest.approx([375.0, 375.0])
    assert found.other == pytest.approx([375.0, 375.0])


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 4.0])
def test_on_the_same_nodes_the_doubt_is_of_what_is_added_and_on_others_of_both_times(share: float) -> None:
    """The loads may fall to a half and to four fifths: by how much at a third, a normal distribution tells."""
    least = {"cpu": 0.5, "bandwidth": 0.8}
    of_cpu, of_bandwidth = np.array([1.0, 0.9]), np.array([1.0, 0.7])
    ends = [np.outer((low, 1.5), np.ones(2)) for low in least.values()]
    minima = SetMinima(of_cpu, of_bandwidth, *ends)
    found = latest(laid_out(minima, Known(work=100.0)), placed(0.25, 50.0), share, 1.0)
    quantile = NormalDist().inv_cdf
    power = quantile((1.0 + COUNTED) / 2.0) / quantile((1.0 + FORECAST) / 2.0)
    busier = math.log((200.0 / least["cpu"] ** power + 40.0) / 240.0)
    narrower = math.log((200.0 + 40.0 / least["bandwidth"] ** power) / 240.0)
    reach = math.sqrt(busier**2 + narrower**2)
    assert found.own == pytest.approx([300.0 * (1.0 + share * math.exp(-reach))] * 2)
    other = 300.0 * max((1.0 + share) * math.exp(-math.sqrt(2.0) * reach), 1.0)
    assert found.other == pytest.approx([other] * 2)
    # The loads of its nodes, before what a set of two has less.
    assert (found.cpu, found.bandwidth) == pytest.approx((0.25 / 0.9, 50.0 / 0.7))


def test_more_of_a_load_than_expected_and_times_that_are_no_numbers_leave_no_doubt() -> None:
    ends = np.outer((1.25, 1.5), np.ones(2))
    minima = SetMinima(np.ones(2), np.ones(2), ends, ends)
    assert latest(laid_out(minima, Known()), placed(0.25, 50.0), 0.5, 1.0).other == pytest.approx([450.0] * 2)
    ends = np.outer((0.0, 1.0), np.ones(2))
    with np.errstate(divide="ignore"):
        found = latest(laid_out(replace(minima, cpu_ends=ends), Known()), placed(0.25, 50.0), 0.5, 1.0)
    assert found.other == pytest.approx([450.0] * 2)


@pytest.mark.parametrize(
    ("cluster", "processors", "cpu", "bandwidth", "own"),
    [
        (1, 2, 0.5, 80.0, True),
        (1, 2, 0.6, 90.0, True),  # more to spare cannot be slower
        (1, 2, 0.5 * (1.0 - 1e-10), 80.0 * (1.0 - 1e-10), True),  # by rounding
        (1, 2, 0.5 * (1.0 - 1e-8), 80.0, False),
        (1, 2, 0.5, 80.0 * (1.0 - 1e-8), False),
        (1, 3, 0.1, 10.0, True),  # other numbers of processors mostly hold the same nodes
        (0, 2, 0.5, 80.0, False),
        (0, 3, 0.5, 80.0, False),
    ],
)
def test_what_may_be_the_same_nodes_has_the_limit_of_these(
    cluster: int, processors: int, cpu: float, bandwidth: float, own: bool
) -> None:
    limits = Latest(np.array([False, True]), 2, 0.5, 80.0, own=np.array([11.0, 12.0]), other=np.array([21.0, 22.0]))
    columns = (np.array([cluster]), np.array([processors]), np.array([cpu]), np.array([bandwidth]))
    assert limits.of(*columns).tolist() == [(11.0 if own else 21.0) + cluster]
    for part, passed in ((1.0, False), (1.0 + 1e-10, False), (1.0 + 1e-8, True)):
        assert limits.passed(part * limits.of(*columns), *columns).tolist() == [passed]
