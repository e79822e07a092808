"""A slice of a job log on two real Slurms, one steered by predictions: ``python -m benchmarks.replay.slurm_slice LOG``.

Both are started as the system tests do (eight nodes of four processors; needs root and Slurm). The same jobs come to
both at the same times, compressed: run times become seconds, and requested hours minutes (limits are whole minutes).
In one of them predictions order the jobs that wait, by nothing but ``scontrol update Nice=``: the longer a job is
expected to run, the more places it may lose, at most ``MOST_NICE`` of them; the one that came first loses none. The
predictor has seen the jobs of the log before the slice, and gets the slice as it happens.

Slurm 22.05 has three ways to change the order: a plugin ``site_factor`` (C, part of the multifactor priority), ``nice``
set by the submit hook (once, and nothing learned later counts), and ``scontrol`` (an operator's right; at any time).
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from metasched.arrays import Floats, Ints
from metasched.history.job_log import JobLog
from metasched.history.run_times.learned import Learned
from metasched.store.files.job_logs import read_job_log
from tests.system import real_slurm
from tests.system.real_slurm import Slurm

#: Processors there are, and what one job may have at most: one of the two partitions.
PROCESSORS, WIDEST = 32, 16
#: Run times of the slice (s): at most so long, below the shortest limit, and at least a second.
LONGEST, SHORTEST = 50.0, 1.0
#: Jobs before the slice that the predictor learns from.
BEFORE = 3000
#: Places that a job may lose at most, and for each doubling of the run time that is expected.
MOST_NICE, A_DOUBLING = 40, 4
#: How often the queue is listed (s).
LIST_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Slice:
    """Jobs as they are submitted: arrays of shape (jobs,), times in seconds from the first.

    Parameters
    ----------
    log, first : where they come from, and the first of them there.
    submit, run : when each comes, and how long it sleeps (s).
    width, minutes : processors and time limit.
    pace : seconds of the log in a second.
    """

    log: JobLog
    first: int
    submit: Floats
    run: Floats
    width: Ints
    minutes: Ints
    pace: float


def slice_of(log: JobLog, size: int, first: int, jobs: int, compression: float, load: float) -> Slice:
    """So many jobs of a log whose cluster has ``size`` processors, compressed so that they bring a load."""
    rows = np.arange(max(first - BEFORE, 0), min(first + jobs, len(log)))
    part = log.picked(rows)
    own = slice(int(first - rows[0]), None)
    run = np.clip(part.run_time[own] / compression, SHORTEST, LONGEST)
    width = np.clip(np.round(part.processors[own] * PROCESSORS / size), 1, WIDEST).astype(np.int64)
    minutes = np.clip(np.ceil(part.limits()[own] / 3600.0), 1, 60).astype(np.int64)
    come = part.submit_time[own] - part.submit_time[own][0]
    lasts = float(np.sum(run * width)) / (PROCESSORS * load)
    pace = float(come[-1]) / lasts
    return Slice(part, int(first - rows[0]), come / pace, run, width, minutes, pace)


class Arm(threading.Thread):
    """One of the two: submits the jobs, looks at its queue, and perhaps steers it."""

    def __init__(self, slurm: Slurm, jobs: Slice, *, steered: bool) -> None:
        super().__init__(daemon=True)
        self._slurm, self._jobs, self._steered = slurm, jobs, steered
        self.numbers: dict[int, int] = {}
        self.found: dict[int, dict[str, str]] = {}
        self.changes = 0
        self._nice: dict[int, int] = {}
        self._order: dict[int, float] = {}
        self._state: dict[int, str] = {}
        self._learned = Learned(jobs.log)
        for row in range(jobs.first):
            begin = float(jobs.log.submit_time[row])
            self._learned.submitted(row, begin)
            self._learned.started(row, begin)
            self._learned.ended(row, begin + float(jobs.log.run_time[row]))

    def run(self) -> None:
        """Let the jobs come, and wait until all have ended."""
        jobs, began, coming, listed = self._jobs, time.monotonic(), 0, 0.0
        while coming < len(jobs.submit) or "" in self._state.values() or set(self._state.values()) - {"ended"}:
            now = time.monotonic() - began
            if coming < len(jobs.submit) and jobs.submit[coming] <= now:
                self._submit(coming, now)
                coming += 1
            elif now >= listed + LIST_EVERY:
                listed = now
                self._look(now)
            else:
                time.sleep(0.02)
        for job, number in self.numbers.items():
            self.found[job] = self._slurm.job(number)

    def _submit(self, job: int, now: float) -> None:
        each = self._jobs
        words = [f"--ntasks={each.width[job]}", f"--time={each.minutes[job]}", "--partition=old,new"]
        row = each.first + job
        self._order[job] = self._learned.submitted(row, self._at(now)).order
        if self._steered:
            self._nice[job] = nice_of(self._order[job])
            words.append(f"--nice={self._nice[job]}")
        script = f"#!/bin/sh\nexec sleep {each.run[job]:.2f}\n".encode()
        self.numbers[job], self._state[job] = self._slurm.sbatch(*words, script=script).job, "waits"

    def _look(self, now: float) -> None:
        """Tell the predictor what has started and ended, and apply what it then says of those that wait."""
        states = dict(line.split() for line in self._slurm.run("squeue", "-h", "-o", "%A %T").splitlines())
        later: dict[int, float] = {}
        for job, before in list(self._state.items()):
            state = states.get(str(self.numbers[job]), "")
            row = self._jobs.first + job
            if before == "waits" and state != "PENDING":
                self._state[job] = "runs"
                self._learned.started(row, self._at(now))
            if self._state[job] == "runs" and state in ("", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"):
                self._state[job] = "ended"
                self._learned.ended(row, self._at(now))
                later.update(self._learned.reordered(row, self._at(now)))
        if not self._steered:
            return
        nices = {row - self._jobs.first: nice_of(order) for row, order in later.items()}
        waiting = [job for job, state in self._state.items() if state == "waits"]
        if waiting:
            nices[waiting[0]] = 0  # the reservation is its, as it came first
        for job, nice in nices.items():
            if self._state.get(job) == "waits" and nice != self._nice[job]:
                self._nice[job] = nice
                self._slurm.run("scontrol", "update", f"JobId={self.numbers[job]}", f"Nice={nice}")
                self.changes += 1

    def _at(self, now: float) -> float:
        """The time in the log."""
        return float(self._jobs.log.submit_time[self._jobs.first]) + now * self._jobs.pace

    def waits(self) -> Floats:
        """How long each job waited (s), to whole seconds."""
        return np.array([_time(each, "StartTime") - _time(each, "SubmitTime") for each in self.found.values()])

    def wrong(self) -> tuple[int, int]:
        """How many limits are not as submitted, and how many jobs did not end by themselves."""
        limits = [f"{minutes // 60:02d}:{minutes % 60:02d}:00" for minutes in self._jobs.minutes.tolist()]
        changed = sum(each["TimeLimit"] != limits[job] for job, each in self.found.items())
        return changed, sum(each["JobState"] != "COMPLETED" for each in self.found.values())


def nice_of(order: float) -> int:
    """Places that a job loses that is expected to run so long (s).

    Examples
    --------
    >>> [nice_of(each) for each in (1.0, 60.0, 3600.0, 1e6)]
    [0, 4, 24, 40]
    """
    return min(round(A_DOUBLING * float(np.log2(1.0 + order / 60.0))), MOST_NICE)


def _time(job: dict[str, str], what: str) -> float:
    return datetime.fromisoformat(job[what]).timestamp()


def main(
    log: Annotated[str, typer.Argument(help="LOG:PROCESSORS")],
    first: Annotated[int, typer.Option(min=0, help="First job of the slice.")] = 4000,
    jobs: Annotated[int, typer.Option(min=10, help="How many.")] = 500,
    compression: Annotated[float, typer.Option(min=1, help="Seconds of a run in one second.")] = 900.0,
    load: Annotated[float, typer.Option(min=0.1, help="Share of the processors that is wanted while they come.")] = 1.1,
) -> None:
    if why := real_slurm.why_not():
        raise SystemExit(why)
    path, _, size = log.partition(":")
    made = slice_of(read_job_log(path).fitting(int(size)), int(size), first, jobs, compression, load)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with (
            real_slurm.running(Path(folder, "plain"), bare=True, memory=7200) as plain,
            real_slurm.running(Path(folder, "steered"), bare=True, memory=7200) as steered,
        ):
            arms = {
                "as submitted": Arm(plain, made, steered=False),
                "steered by predictions": Arm(steered, made, steered=True),
            }
            for arm in arms.values():
                arm.start()
            for arm in arms.values():
                arm.join()
    table = Table(title=f"{jobs} jobs of {Path(path).name} on two real Slurms, {made.submit[-1]:.0f} s")
    for heading in ("", *arms):
        table.add_column(heading, justify="right" if heading else "left")
    waits = {name: arm.waits() for name, arm in arms.items()}
    rows = {
        "mean wait": [f"{each.mean():.1f} s" for each in waits.values()],
        "99th percentile of waits": [f"{np.quantile(each, 0.99):.0f} s" for each in waits.values()],
        "mean slowdown": [f"{np.mean((each + made.run) / made.run):.2f}" for each in waits.values()],
        "limits changed": [str(arm.wrong()[0]) for arm in arms.values()],
        "jobs that did not end by themselves": [str(arm.wrong()[1]) for arm in arms.values()],
        "nice changed after submission": [str(arm.changes) for arm in arms.values()],
    }
    for what, cells in rows.items():
        table.add_row(what, *cells)
    Console(width=100, highlight=False).print(table)


if __name__ == "__main__":
    typer.run(main)
