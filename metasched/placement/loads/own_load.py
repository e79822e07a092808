"""The load of a job on its own nodes, which what is measured there includes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def without_load(available_cpu: ArrayLike, load: ArrayLike) -> NDArray[np.float64]:
    """The available CPU of nodes without some processes, the same shape.

    If a new process would get the share ``a`` of a processor, 1/a processes compete for it; k of them on p processors
    are k/p of these, see :func:`~metasched.placement.loads.recent_placements.with_recent_placements`.

    Parameters
    ----------
    available_cpu : as measured, between 0 and 1.
    load : k/p, the processes by the processors there are.

    Examples
    --------
    Four processes on four processors leave 4/5 of one to a new process; beside four others they leave 4/9.

    >>> without_load([0.8, 4 / 9, 1.0], 1.0).round(3).tolist()
    [1.0, 0.8, 1.0]
    """
    with np.errstate(divide="ignore"):  # nothing at all is left
        competing = 1.0 / np.asarray(available_cpu, dtype=np.float64)
    return np.asarray(1.0 / np.maximum(competing - np.asarray(load), 1.0))
