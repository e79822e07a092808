"""Judges the contention model on the recorded co-scheduled runs, beside no contention and equal shares.

An answer is judged by the mean error of the slowdown that it predicts for every job, and by the order into which it
puts alternative placements of the same job: every pair whose true slowdowns differ by more than a tenth.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from metasched.contention.equal_shares import equal_shares as split_equally
from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.slowdown import Stretch, time_to_end
from metasched.contention.synchronised import slowdowns

Floats = NDArray[np.float64]
Key = TypeVar("Key", int, str)
Answer = Callable[["CoRun"], Floats]

#: Full width of a node's link in each cluster of the testbed (Mbit/s).
BANDWIDTH = {"woodcrest": 100.0, "amd": 1000.0}
#: Pairs of placements whose true slowdowns differ by more than this must be ordered rightly.
DIFFERENT = 1.1
#: Shares of its time that a job communicates, between which errors are shown separately.
SENDING = (0.05, 0.2, 0.4)


@dataclass(frozen=True)
class CoRun:
    """Jobs that ran together, the candidate last.

    Parameters
    ----------
    question : number of the question; its placements are alternatives of one candidate.
    sharing : what the candidate shares.
    cluster : the simulated cluster, its processors as pools.
    processes : array of shape (jobs, pools).
    computation : array of shape (jobs, pools), seconds alone.
    communication : array of shape (jobs,), seconds alone.
    start_time, alone_time, together_time : arrays of shape (jobs,), seconds.
    name : of the cluster.
    applications, sizes : what each job is.
    """

    question: int
    sharing: str
    cluster: SharedCluster
    processes: Floats
    computation: Floats
    communication: Floats
    start_time: Floats
    alone_time: Floats
    together_time: Floats
    name: str
    applications: tuple[str, ...]
    sizes: tuple[float, ...]

    @property
    def sending(self) -> Floats:
        """The share of its time alone that each job communicates, shape (jobs,)."""
        return self.communication / (self.computation.max(axis=1) + self.communication)

    @property
    def slowdown(self) -> Floats:
        """The truth, shape (jobs,)."""
        return self.together_time / self.alone_time


def read(path: Path) -> list[CoRun]:
    """Read recorded runs."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    groups = itertools.groupby(rows, key=lambda row: (row["question"], row["placement"]))
    return [_co_run(list(members)) for _, members in groups]


def _co_run(rows: list[dict[str, str]]) -> CoRun:
    places = [row["processors"].split() for row in rows]
    pools = sorted({name for names in places for name in names})
    nodes = sorted({name.partition(".")[0] for name in pools})
    cluster = SharedCluster(
        np.ones(len(pools)),
        np.ones(len(pools)),
        np.array([nodes.index(name.partition(".")[0]) for name in pools]),
        np.full(len(nodes), BANDWIDTH[rows[0]["cluster"]]),
        np.full(len(nodes), -1),
    )
    processes, computation = np.zeros((len(rows), len(pools))), np.zeros((len(rows), len(pools)))
    for job, (row, names) in enumerate(zip(rows, places, strict=True)):
        seconds = [float(word) for word in row["computation"].split()]
        for name, each in zip(names, np.broadcast_to(seconds, len(names)), strict=True):
            processes[job, pools.index(name)] += 1
            computation[job, pools.index(name)] = each

    def column(name: str) -> Floats:
        return np.array([float(row[name]) for row in rows])

    return CoRun(
        int(rows[0]["question"]),
        rows[0]["sharing"],
        cluster,
        processes,
        computation,
        column("communication"),
        column("start_time"),
        column("alone_time"),
        column("together_time"),
        rows[0]["cluster"],
        tuple(row["application"] for row in rows),
        tuple(column("problem_size").tolist()),
    )


def no_contention(run: CoRun) -> Floats:
    """Every job runs as if alone."""
    return np.ones(run.alone_time.size)


def equal_shares(run: CoRun) -> Floats:
    """Whoever uses a processor or a link at all gets an equal share of it for as long as the others run."""
    return _followed(run, split_equally)


def contention(run: CoRun) -> Floats:
    """The model, as the ranker asks it."""
    return _followed(run, slowdowns)


def _followed(run: CoRun, stretched: Stretch) -> Floats:
    """Slowdowns over the lives of all jobs, from the moment at which the candidate starts."""
    alone = run.alone_time
    start = float(run.start_time[-1])
    # What the running jobs had left by then, after what they had done to each other.
    before = _batch(run, slice(0, -1), alone[:-1])
    ends = time_to_end(run.cluster, before, stretched)[0]
    left = np.maximum(alone[:-1] * (1 - start / ends), 0.0)
    together = _batch(run, slice(None), np.append(left, alone[-1]))
    return np.asarray((time_to_end(run.cluster, together, stretched)[0] + start - run.start_time) / alone)


def _batch(run: CoRun, jobs: slice, remaining: Floats) -> Work:
    terms = run.processes[None, jobs], run.computation[None, jobs], run.communication[None, jobs]
    return Work.of(run.cluster, *terms, remaining=remaining[None])


ANSWERS: dict[str, Answer] = {
    "no contention": no_contention,
    "equal shares": equal_shares,
    "queueing network": contention,
}


@dataclass(frozen=True)
class Verdict:
    """How good an answer is.

    Parameters
    ----------
    errors : array of shape (jobs,), relative error of each predicted slowdown.
    by_sharing : mean error for each kind of sharing.
    by_jobs : mean error for each number of jobs that run together.
    by_sending : mean error of jobs by the share of their time that they communicate.
    pairs, wrong : pairs of placements that differ in truth, and how many of them are not ordered rightly.
    """

    errors: Floats
    by_sharing: dict[str, float]
    by_jobs: dict[int, float]
    by_sending: dict[str, float]
    pairs: int
    wrong: int


def judge(runs: Iterable[CoRun], answer: Answer, expected: Sequence[CoRun] | None = None) -> Verdict:
    """Judge one answer on all runs; where given it uses these instead, one for each."""
    runs = list(runs)
    predicted = [answer(run) for run in (runs if expected is None else expected)]
    errors = [np.abs(guess / run.slowdown - 1) for run, guess in zip(runs, predicted, strict=True)]

    pairs = wrong = 0
    for (one, guess), (other, rival) in itertools.combinations(zip(runs, predicted, strict=True), 2):
        truth = one.slowdown[-1], other.slowdown[-1]
        if one.question == other.question and max(truth) > DIFFERENT * min(truth):
            pairs += 1
            wrong += (truth[0] - truth[1]) * (guess[-1] - rival[-1]) <= 0
    return Verdict(
        np.concatenate(errors),
        _means([run.sharing for run in runs], errors),
        _means([run.alone_time.size for run in runs], errors),
        _means([_band(share) for run in runs for share in run.sending], [error for each in errors for error in each]),
        pairs,
        int(wrong),
    )


def _band(share: float) -> str:
    """Which of :data:`SENDING` a share is in."""
    ends = (0.0, *SENDING, 1.0)
    place = int(np.searchsorted(SENDING, share, side="right"))
    return f"{100 * ends[place]:2.0f} to {100 * ends[place + 1]:.0f} %"


def _means(keys: Sequence[Key], errors: Sequence[Floats]) -> dict[Key, float]:
    """Mean error of the runs of each key, keys in order."""
    groups: dict[Key, list[Floats]] = {key: [] for key in sorted(set(keys))}
    for key, error in zip(keys, errors, strict=True):
        groups[key].append(np.atleast_1d(error))
    return {key: float(np.mean(np.concatenate(group))) for key, group in groups.items()}
