"""Forecasts of a made-up cluster, which :mod:`tests.history.test_whole_forecasts` compares with those written down.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from metasched.history.outcomes import Outcomes
from metasched.history.run_times.neighbours import Neighbours
from metasched.history.submission import Submission
from metasched.history.waits import WaitErrors

NAMES = ("relax-12", "relax-13", "md/long/", "7/short/", "")


def jobs(count: int) -> Iterator[tuple[float, Submission, float]]:
    """Jobs of five users: when each is submitted (s), what is known of it, and how long it runs (s)."""
    source, now = np.random.default_rng(11), 0.0
    for _ in range(count):
        now += float(source.exponential(400.0))
        user = int(source.integers(5))
        name = NAMES[int(source.integers(len(NAMES)))]
        limit = float(source.choice([600.0, 3600.0, 7200.0]))
        usual = 300.0 * (1 + user) * (1.5 if "md" in name else 0.7) * (limit / 3600.0) ** 0.5
        run_time = min(limit, usual * float(source.lognormal(0.0, 0.4)))
        program = ("a.out", "b.out", "")[int(source.integers(3))]
        yield now, Submission(f"u{user}", int(source.choice([1, 4, 16])), limit, name, program), round(run_time, 1)


def forecasts() -> dict[str, Any]:
    """What is expected of run times, of what is left of runs, and of waits, by name."""
    past, running = Neighbours(), {}
    found: dict[str, Any] = {}
    for number, (now, job, run_time) in enumerate(jobs(900)):
        for key, (ends, ran) in list(running.items()):
            if ends <= now:
                past.ended(key, ran, ends)
                del running[key]
        told = past.submitted(number, job, now)
        past.started(number, now)
        running[number] = (now + run_time, run_time)
        if number >= 60 and number % 12 == 0:
            found[f"job {number}"] = [
                told.run_time, told.low, told.high, *told.quantiles.tolist(), *told.answers.tolist(),
                *past.left(number, 100.0, np.array([0.1, 0.5, 0.9])).tolist(),
            ]  # fmt: skip
            found[f"reason {number}"] = past.reason(job, now)
            other = replace(job, user="newcomer")
            told = past.expect(other, now)
            found[f"job {number} of a newcomer"] = [told.run_time, told.low, told.high, *told.answers.tolist()]
            found[f"reason {number} of a newcomer"] = past.reason(other, now)
    errors, source = WaitErrors(), np.random.default_rng(12)
    for number in range(400):
        simulated = float(source.choice([0.0, 30.0, 400.0, 3000.0, 1e4, 5e4, 2e5]))
        forecast = errors.expect(simulated)
        if number % 10 == 0:
            found[f"wait {number}"] = list(forecast)
        errors.learn(forecast, simulated * float(source.lognormal(0.2, 0.7)) + float(source.exponential(60.0)))
    outcomes = Outcomes()
    for number, (_, job, run_time) in enumerate(jobs(400)):
        if number % 10 == 0:
            chances = outcomes.chances(job)
            found[f"chances {number}"] = [chances.early_failure, chances.time_limit, chances.jobs]
        outcomes.learn(job, run_time, ("COMPLETED", "FAILED", "TIMEOUT", "")[number % 4])
    return found


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in forecasts().items())
    print("{\n" + ",\n".join(lines) + "\n}")
