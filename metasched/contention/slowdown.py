"""The contention estimate of the ranker: what starting a job here or there costs it, and the jobs already running.

Jobs slow each other down only while both run. So each set of jobs is solved until its first job ends, then the rest,
and so on; what is lost in the end is what counts. Hundreds of candidate placements are solved in one call.
Axis order: (candidate, job), the running jobs first and the candidate last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.synchronised import Stage, slowdowns
from metasched.records import InputError

Floats = NDArray[np.float64]
#: From both stages of the jobs and which of them run to the factor by which each is stretched.
Stretch = Callable[[Stage, Stage, NDArray[np.bool_]], Floats]


@dataclass(frozen=True, slots=True)
class Effects:
    """What starting a job costs, for each candidate placement.

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


def effects(cluster: SharedCluster, running: Work, candidates: Work) -> Effects:
    """Slowdown of a candidate, and the slowdown that it causes, for each of its placements.

    Parameters
    ----------
    cluster : what they share.
    running : the jobs already there, arrays with one leading axis.
    candidates : the placements, arrays with one leading axis.

    Raises
    ------
    InputError
        When the work has not one leading axis.

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
    count = candidates.remaining.size
    together = _join(running, candidates)
    ends = time_to_end(cluster, together)
    before = time_to_end(cluster, _join(running, None))[0]
    later = np.maximum(ends[:, :-1] - before, 0.0)
    caused = np.divide(ends[:, :-1], before, out=np.ones((count, before.size)), where=before > 0)
    alone = candidates.remaining
    slowdown = np.divide(ends[:, -1], alone, out=np.ones(count), where=alone > 0)
    return Effects(np.maximum(slowdown, 1.0), np.maximum(caused, 1.0), later)


def time_to_end(cluster: SharedCluster, work: Work, stretched: Stretch = slowdowns) -> Floats:
    """Seconds until each of some jobs that run together ends, shape (candidates, jobs).

    Parameters
    ----------
    cluster : what they share.
    work : of the jobs, arrays of shape (candidates, jobs, ...).
    stretched : how much jobs stretch each other while they run together.
    """
    candidates = len(work.remaining)
    processors = np.broadcast_to(cluster.processors.astype(float), (candidates, cluster.processors.size))
    computing = Stage(work.computing, work.load, processors)
    sending = Stage(work.sending, work.flows, np.zeros((candidates, cluster.width.size)))
    left = work.remaining.copy()
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
    return ends


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
