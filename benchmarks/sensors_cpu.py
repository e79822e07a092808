"""Available CPU as the sensor says it, against what a new process then really gets, beside the passive views alone.

    python -m benchmarks.sensors_cpu [--rounds 3]

On one processor, spinners keep duty cycles from nothing to two endless competitors. After a reading a process
that does nothing but work runs for three seconds; the share it got is the truth. Other load of the machine is part of
the test: it falls on sensor and truth alike.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time

import numpy as np

from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.schedule import ProbeSchedule
from monitors.sensors.spin import spin

#: Duty cycles of the spinners that run together.
LOADS: tuple[tuple[float, ...], ...] = ((), (0.25,), (0.5,), (0.75,), (1.0,), (0.5, 0.5), (1.0, 1.0))
#: Length of one duty cycle (s).
PERIOD = 0.05


def cycle(duty: float) -> None:
    while True:
        start = time.perf_counter()
        while time.perf_counter() - start < duty * PERIOD:
            pass
        time.sleep(max(PERIOD - (time.perf_counter() - start), 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long the truth is measured")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    fork = multiprocessing.get_context("fork")
    sensors = {
        "probed": ProbedCpu(schedule=ProbeSchedule(shortest=1.0, longest=10.0, budget=1.0)),
        "passive": ProbedCpu(probing=False),
    }
    misses: dict[str, list[float]] = {name: [] for name in sensors}
    print(f"{'spinners':<14}{'truth':>8}" + "".join(f"{name:>13}" for name in sensors))
    for _ in range(arguments.rounds):
        for load in LOADS:
            spinners = [fork.Process(target=cycle, args=(duty,), daemon=True) for duty in load]
            for spinner in spinners:
                spinner.start()
            for sensor in sensors.values():
                sensor.read()
            time.sleep(arguments.seconds)
            readings = {name: sensor.read() for name, sensor in sensors.items()}
            truth = spin(arguments.seconds).share
            for spinner in spinners:
                spinner.terminate()
                spinner.join()
            for name, reading in readings.items():
                misses[name].append(abs(reading - truth))
            print(
                f"{'+'.join(map(str, load)) or 'none':<14}{truth:>8.3f}"
                + "".join(f"{r:>13.3f}" for r in readings.values())
            )
    for name, values in misses.items():
        print(f"{name}: mean absolute error {np.mean(values):.3f} of a processor (aim 0.05)")


if __name__ == "__main__":
    main()
