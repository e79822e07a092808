"""What it takes to learn run times of very many users."""

from __future__ import annotations

import resource
import time

import numpy as np

from metasched.history.run_times.neighbours import Neighbours
from metasched.history.submission import Submission


def learned(users: int) -> tuple[float, float]:
    """The time to learn a job of one of so many users, each of whom has three (s), and this process's memory (MiB)."""
    draw, past, begun = np.random.default_rng(1), Neighbours(), time.process_time()
    for number in range(3 * users):
        now, user = 10.0 * number, number % users
        job = Submission(f"user{user}", int(draw.integers(1, 33)), 3600.0, name=f"solve{user % 500}/batch/a{user % 50}")
        past.submitted(number, job, now)
        past.started(number, now)
        past.ended(number, float(draw.uniform(10.0, 600.0)), now + 600.0)
    return (time.process_time() - begun) / (3 * users), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
