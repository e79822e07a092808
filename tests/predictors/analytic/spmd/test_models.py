from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.bursts import bursts, synchronization_cost
from metasched.predictors.analytic.spmd.surface import execution_time, speedup
from metasched.queueing.multi_class import solve_exactly
from metasched.records import InputError

#: BTIO on the SP-2 (section 5.1): 18 messages of 64 KB on 9 processors, growing as the text says.
BTIO = Phase(
    parallel_computation=830 / 120,
    serial_computation=10 / 120,
    communication_startup=150e-6 * 6,
    communication_transfer=1.152 * 9 ** (1 / 6) / 27,
    io_transfer=1.0,
    contention=0.23,
    computation_bursts=5,
    dimensions=1.2,
    startup_exponent=0.5,
)

seconds = st.floats(0.0, 10.0)
phases = st.builds(
    Phase,
    parallel_computation=st.floats(0.1, 10.0),
    serial_computation=seconds,
    communication_startup=seconds,
    communication_transfer=seconds,
    io_startup=seconds,
    io_transfer=seconds,
    contention=st.floats(0.0, 1.0),
    computation_bursts=st.floats(1.0, 20.0),
    cycles=st.floats(0.5, 50.0),
    dimensions=st.sampled_from([1.0, 2.0, 3.0, math.inf]),
    io=st.sampled_from(["synchronous", "bus", "clustered"]),
    spread=st.sampled_from(["exponential", "uniform"]),
)


def times(phase: Phase, p: object, d: object) -> np.ndarray:
    return execution_time(Application("a", (phase,)), p, d)  # type: ignore[arg-type]


def test_btio_takes_what_the_papers_table_3_says() -> None:
    assert times(BTIO, [9, 64], 3) == pytest.approx([13.1, 6.2], rel=0.01)


def r1_of_equation_17(i: int, z: float, x: float) -> float:
    pairs = [(e1, i - 1 - e1) for e1 in range(i)]
    weights = [x**e1 * z**e2 / math.factorial(e2) for e1, e2 in pairs]
    return x * sum((e1 + 1) * w for (e1, _), w in zip(pairs, weights, strict=True)) / sum(weights)


def r2_of_equation_22(jobs: int, z: float, x: float, y: float) -> float:
    triples = [(e1, e2, jobs - 1 - e1 - e2) for e1 in range(jobs) for e2 in range(jobs - e1)]
    weights = [x**e1 * y**e2 * z**e3 / math.factorial(e3) for e1, e2, e3 in triples]
    return x * sum((e1 + 1) * w for (e1, _, _), w in zip(triples, weights, strict=True)) / sum(weights)


@given(phases, st.integers(1, 7), st.integers(1, 4))
def test_synchronous_model_is_equations_16_to_18_written_out(phase: Phase, p: int, d: int) -> None:
    phase = replace(phase, io="synchronous")
    at = bursts(phase, np.array([p]), np.array([d]))
    z, x = float(at.delay[0]), float(at.network[0])
    computation = phase.computation_bursts * sum((z + r1_of_equation_17(i, z, x)) / i for i in range(1, p + 1))
    expected = phase.cycles * (computation + phase.io_startup + phase.io_transfer / d)
    assert times(phase, p, d) == pytest.approx(expected, rel=1e-9)


@given(phases, st.integers(1, 6), st.integers(1, 4))
def test_bus_model_is_equations_19_to_22_written_out(phase: Phase, p: int, d: int) -> None:
    phase = replace(phase, io="bus")
    at = bursts(phase, np.array([p]), np.array([d]))
    n = phase.computation_bursts
    z, x = float(at.delay[0]) * n, float(at.network[0]) * n
    y = phase.io_startup + phase.io_transfer / d / p
    expected = phase.cycles * (z + r2_of_equation_22(p, z, x, y) + r2_of_equation_22(p, z, y, x))
    assert times(phase, p, d) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(phases, st.integers(1, 3), st.integers(1, 4))
def test_clustered_model_is_what_multiclass_mean_value_analysis_gives(phase: Phase, k: int, d: int) -> None:
    phase = replace(phase, io="clustered")
    at = bursts(phase, np.array([k * d]), np.array([d]))
    n = phase.computation_bursts
    demands = np.vstack([np.eye(d) * at.io, np.full((1, d), at.network[0] * n)])
    steady = solve_exactly(demands, np.full(d, at.delay[0] * n), [k] * d, np.ones((d + 1, k * d)))
    assert times(phase, k * d, d) == pytest.approx(phase.cycles * k / steady.throughput[0], rel=1e-9)


@given(phases)
def test_one_processor_and_one_disk_take_the_reference_time(phase: Phase) -> None:
    assert times(phase, 1, 1) == pytest.approx(phase.reference_time, rel=1e-9)
    assert speedup(Application("a", (phase,)), 1, 1) == pytest.approx(1.0, rel=1e-9)


@given(phases, st.integers(1, 16))
def test_more_disks_are_never_slower(phase: Phase, p: int) -> None:
    line = times(phase, p * 4, [1, 2, 4])
    assert np.all(np.diff(line) <= 1e-9 * line[:-1])


@given(phases, st.floats(0.1, 100.0))
def test_time_scales_with_its_unit(phase: Phase, factor: float) -> None:
    names = [name for name in Phase.__slots__ if name.startswith(("parallel", "serial", "communication", "io_"))]
    scaled = replace(phase, **{name: factor * getattr(phase, name) for name in names})
    assert times(scaled, 8, 2) == pytest.approx(factor * times(phase, 8, 2), rel=1e-9)


def test_phases_add_up() -> None:
    first, second = Phase(4.0, io_transfer=1.0), Phase(3.0, io="bus", io_transfer=2.0, cycles=7)
    both = execution_time(Application("a", (first, second)), [[2], [8]], [1, 4])
    assert both == pytest.approx(times(first, [[2], [8]], [1, 4]) + times(second, [[2], [8]], [1, 4]))


def test_synchronisation_of_all_is_synchronisation_of_p() -> None:
    every = times(Phase(4.0, synchronization=None), [2, 6], 1)
    assert every == pytest.approx([float(times(Phase(4.0, synchronization=p), p, 1)) for p in (2, 6)])


def test_cost_of_synchronisation_is_the_mean_of_the_slowest() -> None:
    draws = np.random.default_rng(1)
    slowest = draws.exponential(1.0, (200_000, 5)).max(axis=1).mean()
    assert synchronization_cost(5) == pytest.approx(slowest, rel=0.01)
    slowest = draws.uniform(0.0, 2.0, (200_000, 5)).max(axis=1).mean()
    assert synchronization_cost(5, "uniform") == pytest.approx(slowest, rel=0.01)


def test_points_where_a_model_is_not_defined_are_nan() -> None:
    assert np.isnan(times(Phase(4.0, synchronization=4), [4, 6], 1)).tolist() == [False, True]
    assert np.isnan(times(Phase(4.0, io="clustered"), 4, [1, 2, 3])).tolist() == [False, False, True]


def test_many_clusters_stay_exact_where_the_lattice_would_not_fit() -> None:
    # Where nobody shares the network each cluster is a network of its own: a delay and one disk.
    phase = Phase(4.0, io_transfer=64.0, io="clustered")
    alone = solve_exactly([[64.0 / 512]], [4.0 / 512], [8], np.ones((1, 8)))
    assert times(phase, 512, 64) == pytest.approx(8 / alone.throughput[0], rel=1e-9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("serial_computation", -1.0),
        ("io_transfer", math.nan),
        ("contention", 1.5),
        ("synchronization", 0),
        ("computation_bursts", 0.5),
        ("cycles", 0.0),
        ("dimensions", 0.5),
        ("startup_exponent", math.inf),
        ("io", "raid"),
        ("spread", "normal"),
    ],
)
def test_parameters_that_make_no_sense_are_named(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{field} is .*expected"):
        replace(Phase(1.0), **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("processors", [0, 2.5, 10**9, math.nan])
def test_processors_that_make_no_sense_are_named(processors: float) -> None:
    with pytest.raises(InputError, match="processors holds"):
        times(Phase(1.0), processors, 1)
