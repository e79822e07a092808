"""Placements count with the loads to expect over the run, not with those of the moment."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from metasched.advised_placements import Ask
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.records import Load
from metasched.service.state.load_forecasts import LADDER, LEAST_ROWS, STEP, LoadForecaster
from metasched.store.files.loads import Loads
from tests.service.daemons import running


def test_each_horizon_of_the_ladder_is_the_forecast_of_the_recorded_loads() -> None:
    draw, forecaster = np.random.default_rng(2), LoadForecaster()
    values = draw.uniform(0.2, 0.9, (60, 3))
    for k, row in enumerate(values):
        forecaster.note([Load(k * STEP, f"n{j}", float(cpu), 80.0) for j, cpu in enumerate(row)], k * STEP)
    now = 59 * STEP
    state = ClusterState.make("c", ["n2", "n0", "other"])
    forecaster.forecast([state], now)
    recorded = RecordedLoads(np.arange(60) * STEP, ("n2", "n0"), values[:, [2, 0]], np.full((60, 2), 80.0), now)
    for horizon in LADDER:
        expected, got = recorded(state, horizon), forecaster.forecasts.over(state, horizon)
        assert got.available_cpu.tolist() == expected.available_cpu.tolist()
        assert got.available_bandwidth.tolist() == pytest.approx([80.0, 80.0, 1000.0])
        assert got.minima is not None
        assert expected.minima is not None
        assert got.minima.cpu_ends.tolist() == expected.minima.cpu_ends.tolist()


def test_nothing_is_forecast_of_nodes_with_little_past_or_none_lately() -> None:
    forecaster, state = LoadForecaster(), ClusterState.make("c", ["n0", "n1"], available_cpu=0.9)
    for k in range(LEAST_ROWS - 1):
        forecaster.note([Load(k * STEP, "n0", 0.5, 80.0)], k * STEP)
    forecaster.forecast([state], LEAST_ROWS * STEP)
    assert forecaster.forecasts.over(state, 60.0) is state
    forecaster.note([Load(LEAST_ROWS * STEP, "n0", 0.5, 80.0)], LEAST_ROWS * STEP)
    forecaster.forecast([state], LEAST_ROWS * STEP)
    assert forecaster.forecasts.over(state, 60.0).available_cpu.tolist() == pytest.approx([0.5, 0.9])


def test_what_a_silent_node_had_last_is_not_taken_for_what_it_has() -> None:
    forecaster, state = LoadForecaster(), ClusterState.make("c", ["n0", "n1"], available_cpu=0.9)
    steps = LEAST_ROWS + math.ceil(STALE_AFTER / STEP)
    for k in range(steps):
        forecaster.note([Load(k * STEP, "n0", 0.5, 80.0), Load(0.0, "n1", 0.25, 80.0)], k * STEP)
    forecaster.forecast([state], (steps - 1) * STEP)
    assert forecaster.forecasts.over(state, 60.0).available_cpu.tolist() == pytest.approx([0.5, 0.9])


def test_where_the_clock_was_set_back_loads_of_later_times_are_forecast_no_more() -> None:
    forecaster, state = LoadForecaster(), ClusterState.make("c", ["n0"], available_cpu=0.25)
    before = 2 * LEAST_ROWS
    for k in range(before):
        forecaster.note([Load(k * STEP, "n0", 0.75, 80.0)], k * STEP)
    forecaster.forecast([state], before * STEP)
    assert forecaster.forecasts.over(state, 60.0).available_cpu == pytest.approx([0.75])
    for k in range(LEAST_ROWS):
        assert k == 0 or forecaster.forecasts.over(state, 60.0) is state
        forecaster.note([Load(-1000.0 + k * STEP, "n0", 0.25, 80.0)], -1000.0 + k * STEP)
        forecaster.forecast([state], -1000.0 + k * STEP)
    assert forecaster.forecasts.over(state, 60.0).available_cpu == pytest.approx([0.25])


def test_what_was_measured_before_a_restart_is_taken_up_before_what_was_noted_since() -> None:
    """Samples of two nodes at times of their own, in parts that cut steps, go into the rows that were noted without."""
    draw, noted, restored = np.random.default_rng(4), LoadForecaster(), LoadForecaster()
    time, cpu = np.arange(1.0, 60 * STEP, 10.0), draw.uniform(0.2, 0.9, (2, 180))
    samples = [Load(at + 3.0 * j, f"n{j}", float(cpu[j, k]), 80.0) for k, at in enumerate(time) for j in (0, 1)]
    for row in range(1, 61):
        newest = {each.node: each for each in samples if each.time <= row * STEP}
        noted.note(newest.values(), row * STEP)
        if row >= 50:
            restored.note(newest.values(), row * STEP)
    cuts = [-math.inf, 405.0, 410.0, 900.0, 1234.5, math.inf]
    parts = [[each for each in samples if first <= each.time < end] for first, end in pairwise(cuts)]
    fields = "node", "time", "available_cpu", "available_bandwidth"
    restored.restore(Loads.sort(*([getattr(each, name) for each in part] for name in fields)) for part in parts)
    state, now = ClusterState.make("c", ["n0", "n1"]), 60 * STEP
    for each in (noted, restored):
        each.forecast([state], now)
    for horizon in LADDER:
        known, got = (each.forecasts.over(state, horizon) for each in (noted, restored))
        assert got.available_cpu == pytest.approx(known.available_cpu)
        assert got.minima is not None
        assert known.minima is not None
        assert got.minima.cpu_ends == pytest.approx(known.minima.cpu_ends)


def test_the_daemon_prefers_the_node_that_will_be_free_to_the_one_that_is_free_now(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.work.stop()
        now = time.time()
        for k in range(100):
            at = now - (99 - k) * STEP
            # e1 is nearly always busy and free just now; e2 the other way round; the rest is busy.
            loads = {"e1": 0.95 if k == 99 else 0.2, "e2": 0.6 if k == 99 else 0.9, "e3": 0.15, "e4": 0.15}
            batch = [Load(at, node, cpu, 100.0) for node, cpu in loads.items()]
            batch += [Load(at, f"w{j}", 0.1, 100.0) for j in range(1, 5)]
            daemon.clusters.note(batch)
            daemon.load_forecaster.note(daemon.clusters.latest.values(), at)
        daemon.clusters.refresh(now)
        ask = Ask(application="cg", problem_size=1800, processors=[1])
        assert daemon.placer.answer(ask, now).nodes == "e1"
        daemon.load_forecaster.forecast([each.state for each in daemon.clusters.view.partitions], now)
        answer = daemon.placer.answer(ask, now)
        assert answer.nodes == "e2"
        assert answer.placement is not None
        assert 0.6 < answer.placement.resource_set.available_cpu < 0.95
