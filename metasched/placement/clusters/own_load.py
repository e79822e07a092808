"""The load of a job on its own nodes, which what is measured there includes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.placement.clusters.state import ClusterState, places

#: Time that a job must run until the averages of the monitors fully include it (s).
SETTLING = 30.0


def without_load(available_cpu: ArrayLike, load: ArrayLike) -> Floats:
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


def own_load(
    cluster: ClusterState, nodes: Sequence[str], processors: Sequence[int], elapsed: float, *, dedicated: bool
) -> dict[int, float]:
    """What a job adds to 1/a of nodes with the available CPU a, by number, as far as measurements show it.

    Processes show only where no processor is left free, and once they have run for a while.

    Parameters
    ----------
    cluster : as measured; the processors of a job that are its own are not among those free.
    nodes, processors : of the job: names, and what it takes on each; nodes of other clusters are passed over.
    elapsed : since it started (s).
    dedicated : whether its processors are its own.

    Examples
    --------
    >>> full = ClusterState.make("c", ["n0", "n1"], processors=[0, 2], available_cpu=[0.8, 1.0])
    >>> own_load(full, ("n0", "n1"), (4, 2), 600.0, dedicated=True)
    {0: 1.0}
    """
    number, found = places(cluster.nodes), {}
    for name, count in zip(nodes, processors, strict=True):
        index = number.get(name)
        if index is None:
            continue
        full = not dedicated or cluster.processors[index] == 0
        if full and elapsed - np.nan_to_num(cluster.age[index]) >= SETTLING:
            found[index] = count / max(int(cluster.processors[index]) + count * dedicated, 1)
    return found
