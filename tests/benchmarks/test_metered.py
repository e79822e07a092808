"""Metered campaigns of the testbed: what a run consumes, what a meter tells of it, and that the driver counts it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.testbed.campaign import Scenario
from benchmarks.testbed.catalogue import DESIGN, JUDGED, Collection
from benchmarks.testbed.clusters import CLUSTERS, write_platform
from benchmarks.testbed.metered import CLOCKS, LEARNED, PROCESSORS, STALLED, Processor, consumed, metered, scenarios
from benchmarks.testbed.simulator import Job, Outcome, available, driver, simulate
from benchmarks.testbed.timeline import Series, Timeline
from metasched.store.files.runs import read_runs

WATTS = PROCESSORS["intel"].watts(1.0)
INTEL = CLUSTERS["intel"]


def half_used() -> Timeline:
    cpu = {name: Series(np.array([0.0]), np.array([0.5])) for name in INTEL.processors}
    return Timeline(cpu, {name: Series(np.array([0.0]), np.array([100.0])) for name in INTEL.nodes}, 1e6)


def test_whoever_polls_draws_full_power_while_the_processor_is_his() -> None:
    outcome = Outcome(0.0, 10.0, (), energy=700.0, stalled=1.0)
    idle, full = WATTS
    polling = consumed(outcome, WATTS, ("n0", "n1"), half_used(), polls=True)
    assert polling == pytest.approx(20.0 * idle + (full - idle) * (10.0 - (1.0 - STALLED)))
    yielding = consumed(outcome, WATTS, ("n0", "n1"), half_used(), polls=False)
    assert yielding == pytest.approx(700.0 - (1.0 - STALLED) * (full - idle))


def test_a_meter_that_steps_gives_a_run_its_part_of_the_steps_that_it_fills_partly() -> None:
    whole = Outcome(5.0, 15.0, ())
    assert metered(1000.0, whole, idle=50.0) == pytest.approx(1000.0)
    short = Outcome(5.25, 5.75, ())
    assert metered(100.0, short, idle=50.0) == pytest.approx((100.0 + 50.0 * 0.5) * 0.5)


@pytest.mark.parametrize("processor", PROCESSORS.values(), ids=PROCESSORS)
def test_a_lower_clock_draws_less_down_to_the_floor_of_its_voltage(processor: Processor) -> None:
    answer = [processor.watts(clock) for clock in (0.4, 0.55, 0.7, 0.85, 1.0)]
    assert [full for _, full in answer] == sorted(full for _, full in answer)
    assert answer[0][0] == answer[1][0] == answer[2][0] < answer[3][0]


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="SimGrid with SMPI is not installed")
def test_the_driver_counts_what_the_processors_of_a_job_consume(tmp_path: Path) -> None:
    platform = write_platform(INTEL, None, tmp_path, WATTS)
    idle, full = WATTS
    (alone,) = simulate(driver(), platform, [Job("cg", 1000, 5.0, ("n0",))], metered=True)
    assert alone.energy == pytest.approx(full * alone.execution_time, rel=1e-6)
    (two,) = simulate(driver(), platform, [Job("cg", 1000, 5.0, ("n0", "n1"))], metered=True)
    assert 2.0 * idle * two.execution_time < two.energy < 2.0 * full * two.execution_time
    (plain,) = simulate(driver(), write_platform(INTEL, None, tmp_path), [Job("cg", 1000, 5.0, ("n0",))])
    assert math.isnan(plain.energy)
    assert replace(plain, energy=0.0, stalled=0.0) == replace(alone, energy=0.0, stalled=0.0)


@pytest.mark.parametrize(
    ("collection", "scenario"),
    [
        pytest.param(collection, scenario, id=f"{scenario.name}-{scenario.seed}")
        for collection in (DESIGN, JUDGED)
        for scenario, _ in scenarios(collection)
    ],
)
def test_a_committed_campaign_trains_at_two_clocks_and_predicts_at_four(
    collection: Collection, scenario: Scenario
) -> None:
    runs = read_runs(collection.folder / "metered" / scenario.name / "runs.csv")
    processor = PROCESSORS[scenario.cluster.name]
    highest = processor.megahertz
    clocks = {
        phase: {round((run.settings.frequency or 0.0) / highest, 3) for run in runs if run.phase == phase}
        for phase in ("train", "predict")
    }
    assert clocks == {"train": {CLOCKS[place] for place in LEARNED}, "predict": set(CLOCKS)}
    assert {run.energy_covers for run in runs} == {"node"}
    full = processor.watts(1.0)[1]
    least = processor.watts(CLOCKS[0])[0]
    assert all(0.8 * least < (run.energy or 0.0) / run.execution_time / run.processors < 1.2 * full for run in runs)
