"""The testbed's loads: step functions, the two loadings, replayed traces, what monitors make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.testbed.clusters import CLUSTERS
from benchmarks.testbed.loading import LOADINGS, grid_loading, random_loading
from benchmarks.testbed.monitoring import SENSOR_ERROR, watch
from benchmarks.testbed.statistics import describe
from benchmarks.testbed.timeline import Series, Timeline, lowest
from benchmarks.testbed.traces import trace_loading
from metasched.records import InputError

INTEL = CLUSTERS["intel"]
DAY = 86_400.0


@st.composite
def step_functions(draw: st.DrawFn) -> Series:
    steps = draw(st.lists(st.tuples(st.floats(0.5, 50.0), st.floats(0.05, 1.0)), min_size=1, max_size=8))
    times = np.concatenate(([0.0], np.cumsum([step for step, _ in steps])[:-1]))
    return Series(times, np.array([value for _, value in steps]))


@given(step_functions(), st.floats(0.0, 300.0), st.floats(0.1, 300.0))
def test_mean_of_a_series_agrees_with_a_fine_sum(series: Series, start: float, length: float) -> None:
    middles = start + (np.arange(20_000) + 0.5) * length / 20_000
    assert series.mean(start, start + length) == pytest.approx(series.at(middles).mean(), abs=1e-3)


@given(step_functions(), st.floats(0.0, 400.0), st.floats(0.1, 400.0))
def test_a_part_of_a_series_is_the_series_within_it(series: Series, start: float, length: float) -> None:
    moments = np.linspace(start, start + length, 50, endpoint=False)
    np.testing.assert_array_equal(series.between(start, start + length).at(moments), series.at(moments))


@given(st.lists(step_functions(), min_size=1, max_size=4), st.floats(0.0, 400.0))
def test_lowest_is_the_minimum_at_every_moment(many: list[Series], moment: float) -> None:
    assert lowest(many).at(moment) == min(float(one.at(moment)) for one in many)


@pytest.mark.parametrize("loading", ["random", "grid", "dedicated"])
@pytest.mark.parametrize("cluster", list(CLUSTERS))
def test_loads_stay_within_what_the_machines_have(loading: str, cluster: str) -> None:
    timeline = LOADINGS[loading](CLUSTERS[cluster], 3, 20_000.0)
    assert list(timeline.cpu) == list(CLUSTERS[cluster].processors)
    for series in timeline.cpu.values():
        assert series.times[0] == 0.0
        assert (np.diff(series.times) > 0).all()
        assert ((series.values > 0) & (series.values <= 1)).all()
    for series in timeline.bandwidth.values():
        assert ((series.values > 0) & (series.values <= CLUSTERS[cluster].bandwidth)).all()


@pytest.mark.parametrize("loading", ["random", "grid"])
def test_a_longer_horizon_keeps_what_came_before(loading: str) -> None:
    short, long = (LOADINGS[loading](INTEL, 5, horizon) for horizon in (5_000.0, 50_000.0))
    moments = np.linspace(0.0, 4_999.0, 997)
    for kind in ("cpu", "bandwidth"):
        assert len(getattr(short, kind)) == len(getattr(long, kind)) > 0
        for name, series in getattr(short, kind).items():
            assert np.array_equal(series.at(moments), getattr(long, kind)[name].at(moments))


def test_the_seed_decides_the_loads() -> None:
    one, same, other = (random_loading(INTEL, seed, 10_000.0).cpu["n0"] for seed in (1, 1, 2))
    assert np.array_equal(one.times, same.times)
    assert not np.array_equal(one.times, other.times)


@pytest.fixture(scope="module")
def grid() -> Timeline:
    return grid_loading(CLUSTERS["woodcrest"], 11, 4 * DAY)


@pytest.fixture(scope="module")
def random() -> Timeline:
    return random_loading(CLUSTERS["woodcrest"], 11, 4 * DAY)


def test_grid_cpu_has_the_statistics_it_was_matched_to(grid: Timeline) -> None:
    found = describe(grid.cpu, 120.0, grid.horizon)
    assert found.mean == pytest.approx(0.82, abs=0.04)
    assert found.autocorrelation == pytest.approx(0.96, abs=0.02)
    assert 1_800 < found.dwell < 5_400


def test_grid_network_has_the_statistics_it_was_matched_to(grid: Timeline) -> None:
    found = describe(grid.bandwidth, 120.0, grid.horizon, 100.0)
    assert found.mean == pytest.approx(0.72, abs=0.04)
    assert found.autocorrelation == pytest.approx(0.90, abs=0.04)
    assert 600 < found.dwell < 1_800


def test_random_cpu_loads_change_faster_than_those_of_a_grid(grid: Timeline, random: Timeline) -> None:
    assert describe(random.cpu, 120.0, DAY).dwell < 0.5 * describe(grid.cpu, 120.0, DAY).dwell


def test_random_network_loads_have_dynamics_like_those_of_a_grid(grid: Timeline, random: Timeline) -> None:
    first, second = (describe(one.bandwidth, 120.0, DAY, 100.0) for one in (grid, random))
    assert first.autocorrelation == pytest.approx(second.autocorrelation, abs=0.1)


def test_monitors_see_the_truth_within_their_error() -> None:
    timeline = random_loading(INTEL, 2, 30_000.0)
    samples = watch(INTEL, timeline, 30_000.0, np.random.default_rng(1))
    ends = samples.times
    assert samples.cpu.keys() == timeline.cpu.keys() != set()
    for name, seen in samples.cpu.items():
        true = timeline.cpu[name].mean(ends - samples.period, ends)
        assert np.std(seen / true - 1.0) < SENSOR_ERROR
        assert (seen[true > 1.0 - 1e-9] == 1.0).all()


@given(st.floats(0.0, 900.0), st.floats(0.05, 100.0))
def test_average_over_a_run_weighs_samples_by_their_part_in_it(start: float, length: float) -> None:
    end = start + length
    samples = watch(INTEL, random_loading(INTEL, 2, 2_000.0), 1_100.0, np.random.default_rng(1))
    seen = samples.cpu["n0"]
    held = Series(np.arange(len(seen)) * samples.period, seen)
    assert samples.average(seen, start, end) == pytest.approx(float(held.mean(start, end)), rel=1e-6)


def write_trace(folder: Path, rows: str) -> None:
    (folder / "nodes.csv").write_text("time,node,available_cpu,available_bandwidth\n" + rows)


def test_traces_are_replayed_and_their_best_bandwidth_is_the_links_own(tmp_path: Path) -> None:
    write_trace(tmp_path, "".join(f"{10 * k},a,{0.5 + 0.1 * (k % 3)},{400 + 100 * (k % 2)}\n" for k in range(50)))
    timeline = trace_loading(tmp_path)(INTEL, 1, 5_000.0)
    assert len(timeline.cpu) == len(timeline.bandwidth) > 0
    for series in timeline.cpu.values():
        assert set(np.round(series.values, 6)) == {0.5, 0.6, 0.7}
        assert series.times[-1] >= 5_000.0 - 10.0
    for series in timeline.bandwidth.values():
        assert set(np.round(series.values, 6)) == {80.0, 100.0}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("", "no loads"),
        ("0,a,0.5,10\n", "two samples"),
        ("0,a,0.5,0\n5,a,0.5,0\n", "bandwidth"),
        ("0,a,7,1\n", "row 2"),
    ],
)
def test_a_bad_trace_is_named(tmp_path: Path, rows: str, expected: str) -> None:
    write_trace(tmp_path, rows)
    with pytest.raises(InputError, match=expected):
        trace_loading(tmp_path)


def test_a_folder_without_traces_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected files in the form of"):
        trace_loading(tmp_path)
