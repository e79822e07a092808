"""Reduction of a contention problem: removes jobs that share no station, and stations that slower ones dominate.

A job that shares no busy station with the candidate, nor with one that does, and so on, loses nothing. Of two stations
that the same processes visit, the one where everybody takes at least as long decides alone when a stage ends; on a
cluster of a hundred alike nodes a job has one station, not a hundred.
"""

from __future__ import annotations

import numpy as np

from metasched.arrays import Flags, Floats, matrix_product
from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.synchronised import Stage

#: Different stations up to which each pair is compared.
_COMPARED = 200


def concerned(cluster: SharedCluster, running: Work, candidates: Work) -> Flags:
    """Which running jobs each candidate affects, directly or through others: array of shape (candidates, running).

    Parameters
    ----------
    cluster : what they share.
    running, candidates : work with one leading axis each.

    Examples
    --------
    The candidate meets the first job on a pool, and through it the second on another; the third is alone.

    >>> cluster = SharedCluster.star([1, 1, 1], 100.0)
    >>> there = Work.of(cluster, [[1, 1, 0], [0, 1, 0], [0, 0, 1]], [9.0] * 3, [0.0] * 3)
    >>> asked = Work.of(cluster, [[1, 0, 0]], [9.0], [0.0])
    >>> concerned(cluster, there, asked).tolist()
    [[True, True, False]]
    """
    visits, crowded = [], []
    for kind, capacity in (
        (("computing", "load"), cluster.processors.astype(np.float64)),
        (("sending", "flows"), np.zeros(cluster.width.size)),
    ):
        there, loads = (getattr(running, name) for name in kind)
        asked, load = (getattr(candidates, name) for name in kind)
        many = (there > 0).sum(axis=0) + (asked > 0) > 1
        visits.append((there > 0, asked > 0))
        crowded.append(many & (loads.sum(axis=0) + load > capacity))
    by_job = np.concatenate([each for each, _ in visits], axis=1)
    reached = np.concatenate([each for _, each in visits], axis=1)
    busy = np.concatenate(crowded, axis=1)
    met = np.zeros((len(busy), len(by_job)), dtype=np.bool_)
    while True:
        following = matrix_product(reached & busy, by_job.T) > 0
        if np.array_equal(following, met):
            return met
        met = following
        reached = reached | (matrix_product(met, by_job) > 0)


def reduced(stage: Stage) -> Stage:
    """The stage with, for each candidate, only those stations that may decide when it ends.

    >>> alike = Stage(np.ones((1, 2, 50)), np.ones((1, 2, 50)), np.ones((1, 50)))
    >>> reduced(alike).demands.shape
    (1, 2, 3)

    One where both meet, and one for what each does where it meets nobody: here nothing.
    """
    stage = stage.contended()
    jobs = stage.demands.shape[1]
    shared = stage.capacity.shape[1] - jobs
    kept = [_deciding(stage, row, shared) for row in range(len(stage.demands))]
    most = max((each.shape[1] for each in kept), default=0)
    columns = np.zeros((len(kept), 2 * jobs + 1, most))
    columns[:, -1] = 1.0
    for row, each in enumerate(kept):
        columns[row, :, : each.shape[1]] = each
    return Stage(
        np.concatenate([columns[:, :jobs], stage.demands[..., shared:]], axis=2),
        np.concatenate([columns[:, jobs:-1], stage.loads[..., shared:]], axis=2),
        np.concatenate([columns[:, -1], stage.capacity[:, shared:]], axis=1),
    )


def _deciding(stage: Stage, row: int, shared: int) -> Floats:
    """Demands, loads and capacity of one candidate's stations that no other dominates, shape (2 jobs + 1, stations)."""
    jobs = stage.demands.shape[1]
    every = np.concatenate([stage.demands[row], stage.loads[row], stage.capacity[row, None]])[:, :shared]
    every = np.unique(every[:, every[:jobs].any(axis=0)], axis=1)
    if not 1 < every.shape[1] <= _COMPARED:
        return every
    demands, loads, capacity = every[:jobs], every[jobs:-1], every[-1]
    # [a, b]: at station a everybody who visits b takes at least as long, among at least those who are at b.
    longer = (demands[:, :, None] >= demands[:, None]).all(axis=0)
    same = ((loads[:, None] == 0) | (loads[:, :, None] == loads[:, None])).all(axis=0)
    outdone = longer & same & (capacity[:, None] <= capacity)
    np.fill_diagonal(outdone, False)
    return np.asarray(every[:, ~outdone.any(axis=0)])
