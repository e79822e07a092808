"""Times on clouds and of SPMD applications, which :mod:`tests.predictors.analytic.test_whole_answers` compares.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.predictors.analytic.cloud.baseline import ScalabilityAnalysis
from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.model import CloudModel
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.fitting import fit_surface
from metasched.predictors.analytic.spmd.surface import execution_time

SERVERS = (Server("a", 8), Server("b", 8), Server("c", 4, speed=0.5), Server("d", 2, speed=1.5))
#: What is known of where messages go: nothing, how far, how often is waited, or of which grid.
KNOWN: tuple[dict[str, Any], ...] = (
    {}, {"mean_distance": 1.8}, {"mean_distance": 1.0, "exchanges": 40.0}, {"dimensions": 1},
    {"dimensions": 2, "exchanges": 30.0},
)  # fmt: skip


def on_a_cloud(number: int) -> dict[str, Any]:
    """A model of some profiles, its laws, and its times where processes lie anyhow, side by side or apart."""
    source = np.random.default_rng(number)
    hardware = Hardware(SERVERS, word_time=8e-9, startup_time=float(source.choice([0.0, 1e-4])))
    grows, size, serial = source.choice([0.0, 10.0]), source.choice([1e4, 1e6]), source.choice([0.0, 0.3])
    profiles = [
        Profile(n, 50.0 + grows * n, size / n + 1e4, wait, 20.0 / n + serial + wait, **KNOWN[number % len(KNOWN)])
        for n in (4, 6, 8, 16)
        for wait in [0.05 * float(source.random()) * n]
    ]
    method: Any = ("synchronous", "published")[number // len(KNOWN) % 2]
    model = CloudModel.fit(profiles, hardware, method=method)
    places = [hardware.fill(n) for n in (1, 2, 7, 20)] + [hardware.spread(n) for n in (3, 9, 22, 40)]
    places += [each for each in source.integers(0, 5, (4, 4)) if each.sum() > 0]
    scaling = Scaling.of(np.array([1, 2, 5, 12, 22]), lambda n: model.execution_time(hardware, hardware.spread(n)))
    analysis = ScalabilityAnalysis.fit(profiles)
    return {
        "constants": [model.cpu_constant, model.net_constant, model.profiling_error],
        "notes": len(model.notes),
        "times": [model.execution_time(hardware, place) for place in places],
        "scaling": [scaling.efficiency.tolist(), scaling.fastest, scaling.pays_until],
        "analysis": [analysis.serial, analysis.parallel, analysis.execution_time(hardware, [2, 9, 40]).tolist()],
    }


def of_phases(number: int) -> dict[str, Any]:
    """The times of two phases on some processors and disks, and what a fit finds of the first."""
    source = np.random.default_rng(number)
    phases = [
        Phase(
            *source.choice([0.0, 0.05, 0.4], 6) * [1, 1, 1, 1, 1, 4] + [8.0, 0, 0, 0, 0, 0.1],
            contention=float(source.choice([0.0, 0.3, 1.0])),
            synchronization=(1, 2, 1, None)[2 * at + int(source.integers(2))],
            computation_bursts=float(source.choice([1.0, 2.5])),
            cycles=float(source.choice([1.0, 30.0])),
            dimensions=float(source.choice([1.0, 2.0, np.inf])),
            startup_exponent=float(source.choice([0.0, 0.5])),
            io=("synchronous", "bus", "clustered")[(number + at) % 3],
            spread=("exponential", "uniform")[int(source.integers(2))],
        )
        for at in range(2)
    ]  # fmt: skip
    processors, disks = (axis.ravel() for axis in np.meshgrid([1, 2, 4, 8, 12, 32], [1, 2, 4]))
    time = execution_time(Application("made", tuple(phases)), processors, disks)
    first = execution_time(Application("first", (phases[0],)), processors, disks)
    known = np.isfinite(first)
    answer = {"time": time.tolist()}
    if number % 3 < 2:  # Fits of clustered phases take long.
        noisy = first[known] * (1.0 + 0.01 * source.normal(size=known.sum()))
        found = fit_surface(phases[0], processors[known], disks[known], noisy)
        again = execution_time(Application("found", (found.phase,)), processors[known], disks[known])
        answer |= {"fitted": again.tolist(), "errors": [found.average_error, found.rms_error]}
    return answer


def answers() -> dict[str, Any]:
    """All answers by name."""
    clouds = {f"cloud {number}": on_a_cloud(number) for number in range(30)}
    return clouds | {f"phases {number}": of_phases(number) for number in range(12)}


if __name__ == "__main__":
    print(written_down(answers(), 7))
