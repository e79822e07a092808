"""``python -m benchmarks.accounting``: seconds of one processor for what accounting costs, with limits where there are.

A made log is imported twice, learned again as by a daemon that starts, asked, and a long queue is led on. Then three
jobs of each of very many users are learned.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import typer

from benchmarks.accounting.crowd import learned
from benchmarks.replay.made_log import as_csv, made_log
from metasched.history.queue import Line, PrecedingJob
from metasched.service.state.job_history import JobHistory
from metasched.store.database.store import Store
from metasched.store.files.job_logs import read_job_log
from metasched.store.pseudonyms import pseudonyms_of

Result = TypeVar("Result")

#: Nodes and waiting jobs of the long queue.
NODES, QUEUED = 1000, 10_000
#: Users of whom three jobs each are learned.
CROWD = 100_000
#: Possible run times of a job of the queue, in parts of their median; the limit is three times that.
SPREAD = (0.3, 0.6, 1.0, 1.6, 2.5)


def main(
    jobs: Annotated[int, typer.Option(min=1000, help="Jobs of the log.")] = 450_000,
    users: Annotated[int, typer.Option(min=1, help="Users of the log.")] = 900,
) -> None:
    """Print what each step took."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.csv")
        path.write_text(as_csv(made_log(jobs, seed=1, users=users, processors=1024)))
        before = _peak()
        with Store.open(Path(folder, "site.db")) as store:
            called = pseudonyms_of(store.past_jobs, str(Path(folder, "site.db")), plain=False)
            log = _timed(f"read {jobs:,} jobs", lambda: read_job_log(path))
            _timed("store them, users hidden", lambda: store.past_jobs.add(log, "c8", called))
            _timed("store them again, none of them new", lambda: store.past_jobs.add(log, "c8", called))
            print(f"{'peak memory':44} {_peak():8.0f} MiB, {before:.0f} before")
            history = JobHistory(store)
            _timed("learn again what counts, as at the start", lambda: history.restore(rest=0.0))
            now = float(log.submit_time[-1])
            asked = [("user" + str(number % users), 2 ** (number % 6), 3600.0, now) for number in range(500)]
            _timed("one prediction", lambda: [history.predict(*each) for each in asked], len(asked))
    draw = np.random.default_rng(1)

    def made(count: int) -> list[PrecedingJob]:
        rows = zip(draw.integers(1, 33, count).tolist(), draw.uniform(600, 86_400, count).tolist(), strict=True)
        return [
            PrecedingJob(processors, 3.0 * left, tuple(left * part for part in SPREAD), str(number))
            for number, (processors, left) in enumerate(rows)
        ]

    running, queued = made(NODES), made(QUEUED)
    line = _timed(f"read a queue of {QUEUED:,} jobs on {NODES:,} nodes", lambda: Line(0, running, queued))
    _timed("the wait of one more job", lambda: line.wait(16, 7200.0), 100)
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:  # whose memory is that of this step
        took, peak = alone.submit(learned, CROWD).result()
    print(f"{f'learn a job, of {CROWD:,} users':44} {took * 1000:8.2f} ms, {peak:.0f} MiB in all")


def _timed(what: str, work: Callable[[], Result], times: int = 1) -> Result:
    begun = time.process_time()
    found = work()
    took = (time.process_time() - begun) / times
    print(f"{what:44} {took * (1000 if times > 1 else 1):8.2f} {'ms' if times > 1 else 's'}")
    return found


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == "__main__":
    typer.run(main)
