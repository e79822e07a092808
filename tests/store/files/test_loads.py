"""Loads side by side, as forecasts want them, of nodes that were sampled together and of agents, which are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.forecast import RecordedLoads
from metasched.store.files.loads import Loads
from monitors.forecasters.samples import carried_forward


def test_nodes_that_were_sampled_together_keep_their_times_however_irregular() -> None:
    loads = Loads.sort("ababa", [0.0, 0.0, 7.0, 7.0, 8.0], [0.1, 0.2, 0.3, 0.4, 0.5], [1.0] * 5)
    time, cpu, _ = loads.grid()
    assert time.tolist() == [0.0, 7.0, 8.0]
    assert carried_forward(cpu).tolist() == [[0.1, 0.2], [0.3, 0.4], [0.5, 0.4]]


@given(st.dictionaries(st.sampled_from("abcd"), st.sets(st.integers(0, 5000), min_size=1, max_size=30), min_size=1))
def test_no_sample_is_known_before_its_time_and_the_newest_of_each_node_is_in_the_end(
    times: dict[str, set[int]],
) -> None:
    at = [(node, float(time)) for node, own in times.items() for time in own]
    nodes, moments = zip(*at, strict=True)
    loads = Loads.sort(nodes, moments, [time / 5000 for time in moments], [1.0 + time for time in moments])
    time, cpu, bandwidth = loads.grid()
    assert np.all(np.diff(time) > 0)
    assert len(time) <= len(set(moments))
    there = np.isfinite(cpu)
    assert np.all((5000 * cpu)[there] <= np.broadcast_to(time[:, None], cpu.shape)[there] + 1e-2)
    assert np.array_equal((5000 * cpu)[there].round(), bandwidth[there] - 1)
    assert carried_forward(cpu)[-1].tolist() == [max(times[node]) / 5000 for node in loads.nodes]


def test_agents_that_sample_at_times_of_their_own_are_forecast_as_if_they_sampled_together() -> None:
    """Two hundred nodes, each busy for ten minutes of thirty; rows of single nodes would last for half a minute."""
    random = np.random.default_rng(5)
    every, phase, offset = np.arange(0.0, 7200.0, 10.0), 1800 * random.random(200), 10 * random.random(200)
    found = []
    for shift in (np.zeros(200), offset):
        time = (every + shift[:, None]).ravel()
        busy = (every + shift[:, None] + phase[:, None]) % 1800 < 600
        names = np.repeat([f"n{k}" for k in range(200)], len(every))
        loads = Loads.sort(names, time, np.where(busy, 0.5, 1.0).ravel(), np.full(time.size, 90.0))
        times, cpu, bandwidth = loads.grid()
        assert cpu.size < 1.1 * time.size
        recorded = RecordedLoads(times, loads.nodes, cpu, bandwidth, now=7200.0)
        found.append(recorded(ClusterState.make("c", loads.nodes), 3600.0))
    assert found[1].available_cpu == pytest.approx(found[0].available_cpu, abs=0.05)
    ends = [state.minima.cpu_ends[:, 0] for state in found if state.minima is not None]
    assert ends[1] == pytest.approx(ends[0], rel=0.05)
