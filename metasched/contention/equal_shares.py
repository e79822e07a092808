"""The simple estimate when the queueing network would take too long: all jobs at a station share it equally."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Flags, Floats
from metasched.contention.synchronised import Stage


def equal_shares(computing: Stage, sending: Stage, active: Flags) -> Floats:
    """Slowdown of each job if all others were at each of their stations all the time, shape (candidates, jobs).

    Parameters
    ----------
    computing, sending : the two stages of each job's cycle.
    active : array of shape (candidates, jobs), which jobs are there.

    Examples
    --------
    >>> cpu = Stage(np.array([[[1.0], [1.0]]]), np.ones((1, 2, 1)), np.array([[1.0]]))
    >>> net = Stage(np.eye(2)[None], np.eye(2)[None], np.zeros((1, 2)))
    >>> equal_shares(cpu, net, np.ones((1, 2), dtype=bool))
    array([[1.5, 1.5]])
    """
    alone, stretched = np.zeros(active.shape), np.zeros(active.shape)
    for stage in (computing.of(active), sending.of(active)):
        there = stage.demands > 0
        asked = np.where(there, stage.loads, 0.0).sum(axis=1, keepdims=True)
        full = np.maximum(stage.capacity[:, None], stage.loads)
        share = np.divide(asked, full, out=np.ones(stage.loads.shape), where=there & (full > 0))
        alone = alone + stage.alone
        stretched = stretched + (stage.demands * np.maximum(share, 1.0)).max(axis=-1, initial=0.0)
    return np.where(active, stretched / np.maximum(alone, np.finfo(float).tiny), 1.0)
