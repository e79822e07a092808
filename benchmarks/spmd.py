"""How well the models of SPMD applications do: ``python -m benchmarks.spmd`` prints the figures of docs/spmd.md.

BTIO beside the paper's table, QCRD's surface recovered from noisy points, and each model beside a simulation, where
its assumptions hold and where they do not.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks.spmd_simulation import Simulated, System
from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.fitting import fit_surface
from metasched.predictors.analytic.spmd.surface import execution_time, speedup
from tests.predictors.analytic.spmd.test_fitting import DISKS, PROCESSORS, QCRD
from tests.predictors.analytic.spmd.test_models import BTIO

DRAWS = 100


def btio() -> None:
    model = execution_time(Application("BTIO", (BTIO,)), [9, 64], 3)
    print("BTIO, five time steps           p = 9   p = 64")
    print(f"  paper's model (s)             {13.1:5.2f}   {6.2:6.2f}")
    print(f"  ours (s)                      {model[0]:5.2f}   {model[1]:6.2f}")
    print(f"  difference                   {model[0] / 13.1 - 1:+6.2%}  {model[1] / 6.2 - 1:+6.2%}")


def qcrd() -> None:
    truth = speedup(Application("QCRD", (QCRD,)), PROCESSORS, DISKS, reference_time=1.0)
    average, rms, seconds = [], [], []
    for seed in range(DRAWS):
        observed = truth * (1 + 0.02 * np.random.default_rng(seed).standard_normal(truth.size))
        start = time.perf_counter()
        fit = fit_surface(Phase(1.0, io="bus"), PROCESSORS, DISKS, 1 / observed)
        seconds.append(time.perf_counter() - start)
        error = speedup(Application("fit", (fit.phase,)), PROCESSORS, DISKS, reference_time=1.0) / truth - 1
        average.append(np.sqrt((error**2).sum()) / error.size)
        rms.append(np.sqrt((error**2).mean()))
    print(f"QCRD, {truth.size} points with 2 % noise, {DRAWS} draws; error of the recovered surface")
    print(f"  paper's average error         median {np.median(average):.3%}, largest {max(average):.3%} (limit 0.5 %)")
    print(f"  root mean square error        median {np.median(rms):.3%}, largest {max(rms):.3%}")
    print(f"  seconds for a fit             median {np.median(seconds):.2f}")


def beside_simulation() -> None:
    base = Phase(4.0, 0.1, 0.05, 1.5, 0.1, 4.0, contention=0.5, computation_bursts=2.0, dimensions=2.0)
    many, deterministic = replace(base, computation_bursts=40.0), {"service": "deterministic"}
    print("model against simulation (99 % interval), p = 8, d = 2, seconds of a cycle")
    print(f"  {'':58}{'model':>8}{'simulated':>18}{'model off by':>14}")
    for label, phase, options in (
        ("SIO, exponential delay, no contention", replace(base, contention=0.0), {"merged": True}),
        ("SIO, exponential delay, contention, 40 bursts a cycle", many, {"merged": True}),
        ("SIO, exponential delay, contention, 2 bursts a cycle", base, {"merged": True}),
        ("SIO, CPU and startup drawn apart, 2 bursts a cycle", base, {}),
        ("SIO, CPU and startup drawn apart, 40 bursts a cycle", many, {}),
        ("SIO, constant service times, 40 bursts a cycle", many, deterministic),
        ("BUS-AIO, exponential", replace(base, io="bus"), {}),
        ("BUS-AIO, exponential, c = 2", replace(base, io="bus", synchronization=2), {}),
        ("BUS-AIO, constant service times", replace(base, io="bus"), deterministic),
        ("CLU-AIO, exponential", replace(base, io="clustered"), {}),
        ("CLU-AIO, exponential, c = 2", replace(base, io="clustered", synchronization=2), {}),
        ("CLU-AIO, constant service times", replace(base, io="clustered"), deterministic),
    ):
        model = float(execution_time(Application("a", (phase,)), 8, 2))
        simulated = _simulate(phase, options)
        verdict = "inside" if simulated.holds(model) else f"{model / simulated.cycle_time - 1:+.1%}"
        interval = f"{simulated.cycle_time:.3f} +- {simulated.half_width:.3f}"
        print(f"  {label:58}{model:8.3f}{interval:>18}{verdict:>14}")


def _simulate(phase: Phase, options: dict[str, object]) -> Simulated:
    system = System(phase, 8, 2, seed=1, **options)  # type: ignore[arg-type]
    work = phase.computation_bursts
    return system.synchronous(int(8_000 / work**0.5)) if phase.io == "synchronous" else system.asynchronous(8_000)


if __name__ == "__main__":
    btio()
    qcrd()
    beside_simulation()
