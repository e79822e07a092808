"""Placements count with the loads to expect over the run, not with those of the moment."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from metasched.placement.cluster import ClusterState
from metasched.records import Load
from metasched.service.ahead import LADDER, LEAST_ROWS, STEP, Ahead
from metasched.service.messages import Ask
from monitors.forecasters.horizon import forecast_each
from tests.service.made import running


def test_each_rung_is_the_forecast_of_its_horizon() -> None:
    draw, ahead = np.random.default_rng(2), Ahead()
    values = draw.uniform(0.2, 0.9, (60, 3))
    for k, row in enumerate(values):
        ahead.note([Load(k * STEP, f"n{j}", float(cpu), 80.0) for j, cpu in enumerate(row)], k * STEP)
    now = 59 * STEP
    ahead.forecast(now)
    state = ClusterState.make("c", ["n2", "n0", "other"])
    for horizon in LADDER:
        expected = forecast_each(np.arange(60) * STEP, values, now, horizon)
        got = ahead.forecasts.over(state, horizon)
        assert got.available_cpu.tolist() == pytest.approx([expected[2], expected[0], 1.0])
        assert got.available_bandwidth.tolist() == pytest.approx([80.0, 80.0, 1000.0])


def test_nothing_is_forecast_of_nodes_with_little_past_or_none_lately() -> None:
    ahead = Ahead()
    for k in range(LEAST_ROWS - 1):
        ahead.note([Load(k * STEP, "n0", 0.5, 80.0)], k * STEP)
    ahead.forecast(LEAST_ROWS * STEP)
    state = ClusterState.make("c", ["n0"], available_cpu=0.9, age=[1000.0])
    assert ahead.forecasts.over(state, 60.0) is state
    ahead.note([Load(LEAST_ROWS * STEP, "n0", 0.5, 80.0)], LEAST_ROWS * STEP)
    ahead.forecast(LEAST_ROWS * STEP)
    assert ahead.forecasts.over(state, 60.0) is state
    fresh = ClusterState.make("c", ["n0"], available_cpu=0.9)
    assert ahead.forecasts.over(fresh, 60.0).available_cpu.tolist() == pytest.approx([0.5])


def test_the_daemon_prefers_the_node_that_will_be_free_to_the_one_that_is_free_now(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon._scheduler.pause()
        now = time.time()
        for k in range(100):
            at = now - (99 - k) * STEP
            # e1 is nearly always busy and free just now; e2 the other way round; the rest is busy.
            loads = {"e1": 0.95 if k == 99 else 0.2, "e2": 0.6 if k == 99 else 0.9, "e3": 0.15, "e4": 0.15}
            batch = [Load(at, node, cpu, 100.0) for node, cpu in loads.items()]
            batch += [Load(at, f"w{j}", 0.1, 100.0) for j in range(1, 5)]
            daemon.board.note(batch)
            daemon.ahead.note(daemon.board.latest.values(), at)
        daemon.board.refresh(now)
        ask = Ask(application="cg", problem_size=1800, processors=[1])
        assert daemon.placer.answer(ask, now).nodes == "e1"
        daemon.ahead.forecast(now)
        answer = daemon.placer.answer(ask, now)
        assert answer.nodes == "e2"
        assert answer.placement is not None
        assert 0.6 < answer.placement["available_cpu"] < 0.95
        daemon._scheduler.resume()
