"""Each model against an event-by-event simulation of the system it stands for, where its assumptions hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("simpy")

from benchmarks.spmd_simulation import System
from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.surface import execution_time

pytestmark = pytest.mark.slow

PHASE = Phase(
    parallel_computation=4.0,
    serial_computation=0.1,
    communication_startup=0.05,
    communication_transfer=1.5,
    io_startup=0.1,
    io_transfer=4.0,
    contention=0.5,
    computation_bursts=2.0,
    dimensions=2.0,
)


def cycle_time(phase: Phase, p: int, d: int) -> float:
    return float(execution_time(Application("a", (phase,)), p, d))


@pytest.mark.parametrize(("p", "d", "c"), [(4, 1, 1), (8, 2, 2), (16, 3, 4)])
def test_bus_model_lies_in_the_confidence_interval(p: int, d: int, c: int) -> None:
    phase = replace(PHASE, io="bus", synchronization=c)
    simulated = System(phase, p, d, seed=p).asynchronous(40_000 // p)
    assert simulated.half_width < 0.03 * simulated.cycle_time
    assert simulated.holds(cycle_time(phase, p, d))


@pytest.mark.parametrize(("p", "d", "c"), [(4, 2, 1), (8, 4, 1), (16, 2, 2)])
def test_clustered_model_lies_in_the_confidence_interval(p: int, d: int, c: int) -> None:
    phase = replace(PHASE, io="clustered", synchronization=c)
    simulated = System(phase, p, d, seed=p).asynchronous(40_000 // p)
    assert simulated.half_width < 0.03 * simulated.cycle_time
    assert simulated.holds(cycle_time(phase, p, d))


@pytest.mark.parametrize("p", [2, 4, 8])
def test_synchronous_model_without_contention_lies_in_the_confidence_interval(p: int) -> None:
    phase = replace(PHASE, contention=0.0)
    simulated = System(phase, p, 2, seed=p, merged=True).synchronous(4_000)
    assert simulated.half_width < 0.04 * simulated.cycle_time
    assert simulated.holds(cycle_time(phase, p, 2))


@pytest.mark.parametrize("p", [2, 4, 8])
def test_synchronous_model_with_contention_lies_in_the_interval_when_bursts_are_many(p: int) -> None:
    phase = replace(PHASE, computation_bursts=40.0)
    simulated = System(phase, p, 2, seed=p, merged=True).synchronous(1_500)
    assert simulated.half_width < 0.06 * simulated.cycle_time
    assert simulated.holds(cycle_time(phase, p, 2))
