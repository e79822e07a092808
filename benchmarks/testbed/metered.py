"""Campaigns with clocks and energy: each run at one of four clocks, its energy measured by a meter that errs.

The truth is not of the form that is learned. A processor draws, per clock f and voltage V(f), which falls with the
clock down to a floor: leakage that grows with V^3, and V^2 f while it works, of which less while it waits for memory. A
process that waits for messages polls, and draws as one that computes, or yields and draws nothing: the library's way,
one for each campaign. Memory takes as long at any clock.

A meter shows joules in steps of a second with an error of 2 % for each run; of the steps that a run fills partly it is
given its part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.testbed import campaign as campaigns
from benchmarks.testbed import plan
from benchmarks.testbed.applications import APPLICATIONS, ApplicationModel
from benchmarks.testbed.catalogue import DESIGN, JUDGED, Collection
from benchmarks.testbed.clusters import CLUSTERS, ClusterModel
from benchmarks.testbed.loading import LOADINGS
from benchmarks.testbed.monitoring import watch
from benchmarks.testbed.simulator import Job, Outcome, Progress, silent, simulate_all
from benchmarks.testbed.timeline import Timeline
from metasched.records import Run

#: Standard deviation of a measured energy, relative, and the step of the meter (s).
METER_ERROR, STEP = 0.02, 1.0
#: Clocks relative to the highest; training runs have the second and the last of them.
CLOCKS = (0.55, 0.7, 0.85, 1.0)
LEARNED = (1, 3)
#: Power of a processor that waits for memory, relative to one that computes, both without leakage.
STALLED = 0.6


@dataclass(frozen=True)
class Processor:
    """What a processor draws.

    Parameters
    ----------
    megahertz : its highest clock.
    leakage, switching : power at the highest clock (W): always, and while it works.
    floor : lowest voltage relative to the highest, reached at 0.7 of the clock.
    base : its part of what the rest of the node draws (W).
    """

    megahertz: float
    leakage: float
    switching: float
    floor: float
    base: float

    def watts(self, clock: float) -> tuple[float, float]:
        """Power of a processor that does nothing and of one at work (W), at a clock relative to the highest.

        Examples
        --------
        >>> [round(each, 1) for each in Processor(2000, 10.0, 40.0, 0.8, 20.0).watts(0.7)]
        [25.1, 43.0]
        """
        volts = max(self.floor, self.floor + (1.0 - self.floor) * (clock - 0.7) / 0.3)
        idle = self.base + self.leakage * volts**3
        return idle, idle + self.switching * volts**2 * clock


PROCESSORS = {
    "intel": Processor(2800, leakage=14.0, switching=52.0, floor=0.86, base=38.0),
    "amd": Processor(2200, leakage=9.0, switching=38.0, floor=0.82, base=21.0),
    "woodcrest": Processor(2000, leakage=12.0, switching=27.0, floor=0.88, base=26.0),
}
#: Application, cluster, loading, and whether waiting polls; the design has the first three alone.
METERED = [
    ("cg", "intel", "random", True),
    ("md", "amd", "grid", False),
    ("poisson", "woodcrest", "random", True),
    ("ssor", "intel", "grid", False),
    ("is", "amd", "random", True),
    ("eigen", "woodcrest", "random", False),
]
DESIGNED = 3


def scenarios(collection: Collection = DESIGN) -> list[tuple[campaigns.Scenario, bool]]:
    """Every metered campaign of a collection, and whether waiting polls there."""
    predictions = JUDGED.predictions
    rows = METERED[:DESIGNED] if collection == DESIGN else METERED
    return [
        (
            campaigns.Scenario(
                APPLICATIONS[application], CLUSTERS[cluster], loading, LOADINGS[loading], collection.seed, predictions
            ),
            polls,
        )
        for application, cluster, loading, polls in rows
    ]


def make(scenario: campaigns.Scenario, polls: bool, workers: int = 1, progress: Progress = silent) -> campaigns.Made:
    """Simulate a metered campaign; parameters as of :func:`benchmarks.testbed.campaign.make`."""
    cluster, processor = scenario.cluster, PROCESSORS[scenario.cluster.name]
    named = replace(scenario, loading=f"metered-{scenario.loading}")
    drawn = campaigns.draw_runs(named, _drawn)
    rng = np.random.default_rng([scenario.seed, *f"meter {scenario.name}".encode()])
    places = [
        int(rng.choice(LEARNED)) if request.phase == "train" else int(rng.integers(len(CLOCKS)))
        for request in drawn.requests
    ]
    errors = np.exp(rng.normal(0.0, METER_ERROR, len(places)))
    idle = _simulated(cluster, processor, None, drawn.jobs, places, workers, progress)
    timeline, moments = drawn.schedule(scenario, [outcome.execution_time for outcome in idle])
    jobs = [replace(job, start_time=moment) for job, moment in zip(drawn.jobs, moments, strict=True)]
    outcomes = _simulated(cluster, processor, timeline, jobs, places, workers, progress)
    campaigns.check_order([outcome.end_time for outcome in outcomes], moments)
    samples = watch(cluster, timeline, outcomes[-1].end_time, drawn.for_sensors)
    noise = drawn.time_errors()
    runs: list[Run] = []
    for index, outcome in enumerate(outcomes):
        clock, job = CLOCKS[places[index]], jobs[index]
        run = campaigns.measured(job, cluster, outcome, samples, float(noise[index]))
        joules = consumed(outcome, processor.watts(clock), job.processors, timeline, polls)
        seen = metered(joules, outcome, processor.watts(clock)[0] * len(job.processors)) * float(errors[index])
        fields = {
            "energy": f"{seen:.1f}",
            "energy_covers": "node",
            "frequency": f"{clock * processor.megahertz:g}",
        }
        runs.append(replace(run, phase=drawn.requests[index].phase, extra=fields))
    return campaigns.Made(tuple(runs), (), samples)


def consumed(
    outcome: Outcome, watts: tuple[float, float], processors: Sequence[str], timeline: Timeline, polls: bool
) -> float:
    """What a run's processors really consumed (J), shared ones as far as they were its own."""
    idle, full = watts
    if not polls:
        return outcome.energy - (1.0 - STALLED) * (full - idle) * outcome.stalled
    # Whoever polls works whenever the processor is his.
    start, end = np.array([outcome.start_time]), np.array([outcome.end_time])
    own = sum(float(timeline.cpu[name].mean(start, end)[0]) for name in processors) * outcome.execution_time
    always = idle * len(processors) * outcome.execution_time
    return always + (full - idle) * (own - (1.0 - STALLED) * outcome.stalled)


def metered(joules: float, outcome: Outcome, idle: float) -> float:
    """What a meter with steps of a second tells of a run, before its error (J)."""
    first, last = (STEP * f(at / STEP) for f, at in ((math.floor, outcome.start_time), (math.ceil, outcome.end_time)))
    window = last - first
    return (joules + idle * (window - outcome.execution_time)) * outcome.execution_time / window


def _drawn(application: ApplicationModel, cluster: ClusterModel, rng: np.random.Generator) -> list[plan.Request]:
    return plan.requests(application, cluster, rng, JUDGED.predictions)


def _simulated(
    cluster: ClusterModel,
    processor: Processor,
    timeline: Timeline | None,
    jobs: Sequence[Job],
    places: Sequence[int],
    workers: int,
    progress: Progress,
) -> list[Outcome]:
    """Each job on processors of its clock, in the order of the jobs."""
    found: dict[int, Outcome] = {}
    for place, clock in enumerate(CLOCKS):
        own = [index for index, its in enumerate(places) if its == place]
        # As many operations pass while memory delivers a byte as the clock makes them.
        slowed = replace(cluster, speed=cluster.speed * clock, balance=cluster.balance * clock)
        groups = [(jobs[index],) for index in own]
        outcomes = simulate_all(slowed, timeline, groups, workers, progress, processor.watts(clock))
        found |= {index: outcome for index, (outcome,) in zip(own, outcomes, strict=True)}
    return [found[index] for index in range(len(jobs))]
