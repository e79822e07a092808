"""Evaluation of predicted run times and waits, and of the schedules that follow from them, by replays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from metasched.history.backfilling import Backfilling
from metasched.history.job_log import JobLog
from metasched.history.joined_queue import JoinedQueue
from metasched.history.replay import Expected, Policy, Replay, RunTimes, perturbed, replay
from metasched.history.run_times.simple import Requests
from metasched.history.waits import Wait, WaitErrors

#: How many jobs' waits are forecast in an evaluation, evenly spread over the log.
MOST_WAITS = 2000


class Recorder:
    """Records the predictions of another predictor, and forecasts the waits of a sample of jobs.

    Parameters
    ----------
    run_times : what expects.
    jobs : how many there are.
    waits : how many of their waits are forecast.
    requests : expects requested times, for the forecasts that these would give; None for no such forecasts.

    Attributes
    ----------
    expected, low, high : run time and interval of each job as expected when it was submitted (s), of shape (jobs,);
        the ends are NaN where it gave none.
    forecast, waited : the forecast of each wait, and the wait (s), by job.
    by_requests : the wait (s) that the same queue would lead to with requested times, by job.
    """

    def __init__(self, run_times: RunTimes, jobs: int, waits: int = 0, requests: RunTimes | None = None) -> None:
        self.run_times, self._requests = run_times, requests
        self._queue = JoinedQueue(run_times.left)
        self._queue_by_requests = JoinedQueue(requests.left) if requests is not None else None
        self.expected, self.low, self.high = (np.full(jobs, np.nan) for _ in range(3))
        self.forecast: dict[int, Wait] = {}
        self.waited: dict[int, float] = {}
        self._every = math.ceil(jobs / waits) if waits else 0
        self.by_requests: dict[int, float] = {}
        self._asked: dict[int, float] = {}
        self._errors = WaitErrors()
        self.learns = run_times.learns
        self.ended, self.left, self.reordered = run_times.ended, run_times.left, run_times.reordered

    def submitted(self, job: int, now: float) -> Expected:
        """See :class:`~metasched.history.replay.RunTimes`."""
        found = self.run_times.submitted(job, now)
        if self._requests is not None:
            self._requests.submitted(job, now)
        self.expected[job], self.low[job], self.high[job] = found.run_time, found.low, found.high
        return found

    def started(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        self.run_times.started(job, now)
        if job in self._asked:
            self.waited[job] = now - self._asked.pop(job)
            self._errors.learn(self.forecast[job], self.waited[job])

    def watch(self, cluster: Backfilling, job: int, now: float) -> None:
        """Forecast the wait of a job if it is in the sample."""
        if not self._every or job % self._every:
            return
        possible = self._queue.waits(cluster, job, now)
        if self._queue_by_requests is not None:
            (self.by_requests[job],) = self._queue_by_requests.waits(cluster, job, now)
        self._asked[job] = now
        expected = self._errors.expect(sum(possible) / len(possible))
        self.forecast[job] = expected if self.learns else expected._replace(seconds=expected.simulated)


def evaluate(
    log: JobLog, processors: int, policy: Policy, make: Callable[[JobLog], RunTimes], *, shakes: int = 0, seed: int = 1,
    waits: int = MOST_WAITS, progress: Callable[[Iterable[int], int], Iterable[int]] = lambda steps, total: steps,
) -> dict[str, Any]:  # fmt: skip
    """Replay a log and evaluate the predictions: the document of ``metasched history evaluate``.

    Parameters
    ----------
    log, processors, policy : see :func:`~metasched.history.replay.replay`.
    make : makes what expects the run times of a log.
    shakes : replays of perturbed logs; their means are reported if there are any.
    seed : of the shaking.
    waits : how many waits are forecast.
    progress : goes through the replays.
    """
    generator = np.random.default_rng(seed)
    recorder = Recorder(make(log), len(log), waits, Requests(log))
    summaries = []
    for step in progress(range(shakes + 1), shakes + 1):
        if step:
            moved = perturbed(log, generator)
            summaries.append(_summary(replay(moved, processors, policy, make(moved))))
        else:
            summaries.append(_summary(replay(log, processors, policy, recorder, recorder.watch)))
    unshaken, *others = summaries
    error = np.abs(recorder.expected - log.run_time)
    spread = np.isfinite(recorder.low)
    held = (recorder.low <= log.run_time) & (log.run_time <= recorder.high)
    waits_of = [(recorder.forecast[job], waited) for job, waited in recorder.waited.items()]
    means = {name: float(np.mean([each[name] for each in others or summaries])) for name in unshaken}

    def mean(values: Iterable[float]) -> float | None:
        return float(np.mean(list(values))) if waits_of else None

    return {
        "jobs": len(log), "mae": float(error.mean()), "median_error": float(np.median(error)),
        "underestimated": float((recorder.expected < log.run_time).mean()),
        "interval_coverage": float(held[spread].mean()) if spread.any() else None, **means,
        "wait_mae": mean(abs(wait.seconds - waited) for wait, waited in waits_of),
        "wait_coverage": mean(wait.low <= waited <= wait.high for wait, waited in waits_of),
        "wait_mae_of_the_queue_alone": mean(abs(wait.simulated - waited) for wait, waited in waits_of),
        "wait_mae_of_requests": mean(
            abs(recorder.by_requests[job] - waited) for job, waited in recorder.waited.items()
        ),
        "waits_judged": len(waits_of), "unshaken": unshaken, "shaken": others,
    }  # fmt: skip


def _summary(replayed: Replay) -> dict[str, float]:
    """Mean wait (s) and mean bounded slowdown of a replay."""
    return {"avebsld": float(replayed.bounded_slowdown.mean()), "mean_wait": float(replayed.wait.mean())}
