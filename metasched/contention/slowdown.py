"""The contention estimate of the ranker: the slowdown of a job at each placement, and of the jobs already running.

Jobs slow each other down only while both run. So each set of jobs is solved until its first job ends, then the rest,
and so on; what is lost in the end is what counts. Hundreds of candidate placements are solved in one call.
Axis order: (candidate, job), the running jobs first and the candidate last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.contention.effort import Effort
from metasched.contention.reduction import concerned, reduced
from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.synchronised import Stage, slowdowns
from metasched.records import InputError

#: From both stages of the jobs and which of them run to the factor by which each is stretched.
Stretch = Callable[[Stage, Stage, Flags], Floats]


@dataclass(frozen=True, slots=True)
class Effects:
    """The slowdowns that follow from starting a job, for each candidate placement.

    Parameters
    ----------
    slowdown : array of shape (candidates,), the job's time to its end over the time that it would need alone.
    caused : array of shape (candidates, running), time to the end of each job already there over the same without the
        candidate.
    lost : array of shape (candidates, running), seconds by which each job already there ends later.
    """

    slowdown: Floats
    caused: Floats
    lost: Floats


def effects(
    cluster: SharedCluster,
    running: Work,
    candidates: Work,
    *,
    effort: Effort | None = None,
    stretched: Stretch | None = None,
    lost: bool = True,
) -> Effects:
    """Slowdown of a candidate, and the slowdown that it causes, for each of its placements.

    Parameters
    ----------
    cluster : what they share.
    running : the jobs already there, arrays with one leading axis.
    candidates : the placements, arrays with one leading axis.
    effort : what may be spent on the queueing network; without a limit where None.
    stretched : how much jobs stretch each other while they run together; by the queueing network where None.
    lost : whether to find what the candidate causes: all jobs are followed to their ends then, with and without it,
        and else only until the candidate ends.

    Raises
    ------
    InputError : when the work has not one leading axis.
    PrecisionError : when no equilibrium of the queueing network was found.
    EffortError : when the effort does not suffice.

    Examples
    --------
    A job computes on the first of two nodes for 10 s more. Another of 10 s would be slowed there, and slow it; not so
    on the second node.

    >>> cluster = SharedCluster.star([1, 1], 100.0)
    >>> there = Work.of(cluster, [[1, 0]], computation=[10.0], communication=[0.0])
    >>> asked = Work.of(cluster, [[1, 0], [0, 1]], computation=[10.0, 10.0], communication=[0.0, 0.0])
    >>> found = effects(cluster, there, asked)
    >>> found.slowdown, found.caused.ravel(), found.lost.ravel()
    (array([2., 1.]), array([2., 1.]), array([10.,  0.]))
    """
    if running.remaining.ndim != 1 or candidates.remaining.ndim != 1:
        raise InputError("running jobs and candidates must have one leading axis each")
    if stretched is None:
        stretched = slowdowns if effort is None else partial(slowdowns, effort=effort)
    count = candidates.remaining.size
    slowdown = np.ones(count)
    caused, seconds = np.ones((count, running.remaining.size)), np.zeros((count, running.remaining.size))
    # Candidates that concern the same jobs are solved together, without the others.
    sets, group = np.unique(concerned(cluster, running, candidates), axis=0, return_inverse=True)
    for number, met in enumerate(sets):
        jobs = np.flatnonzero(met)
        if not jobs.size:
            continue
        there = _take(running, jobs)
        chosen = np.flatnonzero(group.ravel() == number)
        asked = _take(candidates, chosen)
        ends = time_to_end(cluster, _join(there, asked), stretched, all_jobs=lost)
        if lost:
            before = time_to_end(cluster, _join(there, None), stretched)[0]
            later = np.maximum(ends[:, :-1] - before, 0.0)
            seconds[np.ix_(chosen, jobs)] = later
            caused[np.ix_(chosen, jobs)] = 1.0 + np.divide(later, before, out=np.zeros_like(later), where=before > 0)
        alone = asked.remaining
        slowdown[chosen] = np.divide(ends[:, -1], alone, out=np.ones(alone.size), where=alone > 0)
    return Effects(np.maximum(slowdown, 1.0), caused, seconds)


def time_to_end(cluster: SharedCluster, work: Work, stretched: Stretch = slowdowns, *, all_jobs: bool = True) -> Floats:
    """Seconds until each of some jobs that run together ends, shape (candidates, jobs).

    Each different question is answered once, and reduced to the stations that decide.

    Parameters
    ----------
    cluster : what they share.
    work : of the jobs, arrays of shape (candidates, jobs, ...).
    stretched : how much jobs stretch each other while they run together.
    all_jobs : whether all ends are wanted; only those up to the last job's are found else, and 0 for later ones.
    """
    stages = [reduced(stage) for stage in _stages(cluster, work)]
    parts = [part for stage in stages for part in (stage.demands, stage.loads, stage.capacity)]
    rows = np.concatenate([each.reshape(len(work.remaining), -1) for each in (*parts, work.remaining)], axis=1)
    _, first, alike = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    computing, sending = (stage.take(first) for stage in stages)
    return _followed(computing, sending, work.remaining[first], stretched, all_jobs)[alike.ravel()]


def _stages(cluster: SharedCluster, work: Work) -> tuple[Stage, Stage]:
    candidates = len(work.remaining)
    processors = np.broadcast_to(cluster.processors.astype(float), (candidates, cluster.processors.size))
    return (
        Stage(work.computing, work.load, processors),
        Stage(work.sending, work.flows, np.zeros((candidates, cluster.width.size))),
    )


def _followed(computing: Stage, sending: Stage, remaining: Floats, stretched: Stretch, all_jobs: bool) -> Floats:
    """The ends of the jobs (s), shape (candidates, jobs): each set of jobs is solved until its first job ends."""
    left = remaining.copy()
    active = left > 0
    elapsed, ends = np.zeros(len(left)), np.zeros(left.shape)
    while active.any():
        stretch = stretched(computing, sending, active)
        needed = np.where(active, left * stretch, np.inf)
        step = np.where(active.any(axis=1), needed.min(axis=1), 0.0)
        elapsed = elapsed + step
        ended = active & (needed <= step[:, None] * (1 + 1e-12))
        ends = np.where(ended, elapsed[:, None], ends)
        left = np.where(active, np.maximum(left - step[:, None] / stretch, 0.0), left)
        active = active & ~ended
        if not all_jobs:
            active = active & active[:, -1:]
    return ends


def _take(work: Work, rows: Ints) -> Work:
    return Work(work.load[rows], work.computing[rows], work.flows[rows], work.sending[rows], work.remaining[rows])


def _join(running: Work, candidates: Work | None) -> Work:
    """Work of every candidate beside all running jobs, arrays of shape (candidates, jobs, ...)."""
    count = 1 if candidates is None else candidates.remaining.size

    def joined(name: str) -> Floats:
        there: Floats = getattr(running, name)
        repeated = np.broadcast_to(there, (count, *there.shape))
        return (
            repeated if candidates is None else np.concatenate([repeated, getattr(candidates, name)[:, None]], axis=1)
        )

    return Work(joined("load"), joined("computing"), joined("flows"), joined("sending"), joined("remaining"))
