"""Whether a committed campaign is still what the simulator makes: some of its runs simulated again, each by itself.

Making a campaign again takes minutes. But each of its runs is simulated by itself, from a start time that is recorded
and under loads that follow from the seed, so a few of them can be compared on their own.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.testbed.campaign import Draw, Scenario, draw_runs
from benchmarks.testbed.simulator import silent, simulate_all
from metasched.records import Run

#: Relative difference that rounding explains: times are kept to 0.1 ms and start times to 1 ms.
ROUNDING = 1e-4
#: A start time may be late by what the simulator's false deadlocks take, seconds.
LATE = 0.5


@dataclass(frozen=True)
class Check:
    """How far the runs that were simulated again are off.

    Parameters
    ----------
    compared : how many runs were.
    idle, loaded : largest relative difference of the times on the idle cluster and under load.
    starts : largest difference of a start time from the one planned, all runs, seconds.
    same_plan : whether all sizes and processors are those that the seed draws.
    seconds : of processor time for one simulation, mean.
    """

    compared: int
    idle: float
    loaded: float
    starts: float
    same_plan: bool
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether the campaign is still what the simulator makes."""
        return self.same_plan and max(self.idle, self.loaded) < ROUNDING and self.starts < LATE


def check(
    scenario: Scenario, committed: Sequence[Run], count: int, workers: int = 1, draw: Draw | None = None
) -> Check:
    """Simulate ``count`` runs again, spread evenly over the campaign, and compare them with the committed ones.

    What runs were wanted ``draw`` says, as when the campaign was made.
    """
    drawn = draw_runs(scenario, draw)
    timeline, moments = drawn.schedule(scenario, [_dedicated(run) for run in committed])
    errors = drawn.time_errors()
    chosen = np.unique(np.linspace(0, len(committed) - 1, count).astype(int))
    before = _processor_time()
    idle = simulate_all(scenario.cluster, None, [(drawn.jobs[index],) for index in chosen], workers, silent)
    groups = [(replace(drawn.jobs[index], start_time=_start(committed[index])),) for index in chosen]
    loaded = simulate_all(scenario.cluster, timeline, groups, workers, silent)
    seconds = (_processor_time() - before) / (2 * len(chosen))
    off = np.array(
        [
            (
                _difference(alone.execution_time, _dedicated(committed[index])),
                _difference(slowed.execution_time * errors[index], committed[index].execution_time),
            )
            for index, (alone,), (slowed,) in zip(chosen, idle, loaded, strict=True)
        ]
    )
    worst = off.max(axis=0)
    return Check(
        compared=len(chosen),
        idle=float(worst[0]),
        loaded=float(worst[1]),
        starts=max(abs(_start(run) - moment) for run, moment in zip(committed, moments, strict=True)),
        same_plan=all(
            (job.problem_size, job.processors) == (run.problem_size, run.nodes)
            for job, run in zip(drawn.jobs, committed, strict=True)
        ),
        seconds=seconds,
    )


def _difference(found: float, recorded: float) -> float:
    """Relative difference of two times; below a second, where they are rounded, the difference in seconds."""
    return abs(found - recorded) / max(recorded, 1.0)


def _dedicated(run: Run) -> float:
    return float(run.extra["dedicated_time"])


def _start(run: Run) -> float:
    assert run.start_time is not None  # every run of the testbed has one
    return run.start_time


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
