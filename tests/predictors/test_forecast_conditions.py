"""Predictions judged with forecast loads: the forecast that places jobs, of the nodes that a run had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.forecast import RecordedLoads
from metasched.predictors.judging.conditions import Forecast
from metasched.predictors.judging.peers import RidgeQuadratic
from metasched.records import InputError, Interval, Prediction, Request, Run
from monitors.forecasters.sets import forecast_sets

TIME = 10.0 * np.arange(200)
RUN = Run("cg", "c", 100, 2, 0.5, 80.0, 30.0, start_time=1500.0, nodes=("b", "d"))
TRAINING = [Run("cg", "c", n, p, 0.5, 80.0, n / p) for n in (50, 100, 150, 200) for p in (1, 2, 4)]


def loads() -> tuple[np.ndarray, np.ndarray]:
    """Four nodes at random; the first one is silent until the run has started."""
    cpu = np.random.default_rng(3).uniform(0.2, 1.0, (200, 4))
    cpu[TIME <= 1500.0, 0] = np.nan
    return cpu, 100 * cpu


def test_what_is_judged_is_what_places_jobs() -> None:
    cpu, bandwidth = loads()
    predictor = RidgeQuadratic().fit(TRAINING)
    asked = Forecast(TIME, "abcd", cpu, bandwidth)(RUN, predictor, 0.9)
    horizon = predictor.predict(asked.request).execution_time
    placed = forecast_sets(TIME, cpu[:, 1:], bandwidth[:, 1:], 1500.0, horizon)
    least = placed.cpu[[0, 2]].min()
    assert 0.8 * least <= asked.request.available_cpu <= 1.02 * least
    assert asked.doubt is not None
    assert asked.doubt.cpu[0] < 1 < asked.doubt.cpu[1]


def test_a_run_on_all_nodes_is_judged_by_the_minima_and_the_doubt_of_its_placement() -> None:
    class Minute:
        """A minute, whatever the loads."""

        def predict(self, request: Request, level: float = 0.9) -> Prediction:
            return Prediction(60.0, Interval(60.0, 60.0, level), "")

    cpu, bandwidth = (each[:, 1:] for each in loads())
    bandwidth = bandwidth[:, ::-1]  # so that not the same nodes hold both back
    predictor: Any = Minute()
    run = replace(RUN, processors=3, nodes=("b", "c", "d"))
    asked = Forecast(TIME, "bcd", cpu, bandwidth)(run, predictor, 0.8)
    cluster = ClusterState.make("c", ["b", "c", "d"], processors=1)
    placed = RecordedLoads(TIME, cluster.nodes, cpu, bandwidth, 1500.0)(cluster, 60.0)
    assert placed.minima is not None
    of_cpu, of_bandwidth = placed.minima.at(3)
    assert max(of_cpu, of_bandwidth) < 0.95
    assert asked.request.available_cpu == pytest.approx(placed.available_cpu.min() * of_cpu)
    assert asked.request.available_bandwidth == pytest.approx(placed.available_bandwidth.min() * of_bandwidth)
    doubt = placed.doubt(3, 0.8)
    assert doubt is not None
    assert asked.doubt is not None
    assert asked.doubt.cpu.tolist() == pytest.approx(doubt.cpu.tolist())
    assert asked.doubt.bandwidth.tolist() == pytest.approx(doubt.bandwidth.tolist())


def test_the_doubt_follows_the_level() -> None:
    condition, predictor = Forecast(TIME, "abcd", *loads()), RidgeQuadratic().fit(TRAINING)
    wide, narrow = (condition(RUN, predictor, level).doubt for level in (0.95, 0.5))
    assert wide is not None
    assert narrow is not None
    assert wide.cpu[0] < narrow.cpu[0] < narrow.cpu[1] < wide.cpu[1]


@pytest.mark.parametrize("without", [{"start_time": None}, {"nodes": ()}])
def test_a_run_without_its_start_or_its_nodes_is_refused(without: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="a run has no start_time or no nodes, expected both"):
        Forecast(TIME, "abcd", *loads())(replace(RUN, **without), RidgeQuadratic().fit(TRAINING), 0.9)


@pytest.mark.parametrize("node", ["a", "z"])
def test_a_node_without_loads_by_then_is_named(node: str) -> None:
    run = Run("cg", "c", 100, 2, 0.5, 80.0, 30.0, start_time=1500.0, nodes=("b", node))
    with pytest.raises(InputError, match=f"node {node} has no loads by then, expected"):
        Forecast(TIME, "abcd", *loads())(run, RidgeQuadratic().fit(TRAINING), 0.9)
