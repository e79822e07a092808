"""Each model against an event-by-event simulation of the system it stands for, where its assumptions hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("simpy")

from benchmarks.spmd_simulation import System
from metasched.predictors.analytic.spmd.application import Application, InputOutput, Phase
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


@pytest.mark.parametrize(
    ("io", "p", "d", "c"),
    [("bus", 4, 1, 1), ("bus", 8, 2, 2), ("bus", 16, 3, 4), ("clustered", 4, 2, 1), ("clustered", 8, 4, 1),
     ("clustered", 16, 2, 2)],
)  # fmt: skip
def test_a_model_of_groups_lies_in_the_confidence_interval(io: InputOutput, p: int, d: int, c: int) -> None:
    phase = replace(PHASE, io=io, synchronization=c)
    simulated = System(phase, p, d, seed=p).asynchronous(40_000 // p)
    assert simulated.half_width < 0.03 * simulated.cycle_time
    assert simulated.holds(cycle_time(phase, p, d))


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize(
    ("phase", "cycles", "narrow"),
    [(replace(PHASE, contention=0.0), 4_000, 0.04), (replace(PHASE, computation_bursts=40.0), 1_500, 0.06)],
    ids=["without contention", "many bursts"],
)
def test_the_synchronous_model_lies_in_the_confidence_interval(
    phase: Phase, cycles: int, narrow: float, p: int
) -> None:
    simulated = System(phase, p, 2, seed=p, merged=True).synchronous(cycles)
    assert simulated.half_width < narrow * simulated.cycle_time
    assert simulated.holds(cycle_time(phase, p, 2))
