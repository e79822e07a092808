"""The effects of changes: a drained node, another problem size, another number of processors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.constraints import check_known
from metasched.placement.clusters.state import ClusterState
from metasched.placement.ranking.query import Curve
from metasched.plain_numbers import plain


def drained(clusters: Sequence[ClusterState], nodes: Collection[str]) -> tuple[ClusterState, ...]:
    """The clusters with some of their nodes drained.

    Raises
    ------
    InputError : when a node is in none of the clusters.

    Examples
    --------
    >>> [east] = drained([ClusterState.make("east", ["e1", "e2"])], {"e2"})
    >>> east.up.tolist()
    [True, False]
    """
    check_known(nodes, clusters)
    return tuple(
        replace(cluster, up=cluster.up & np.array([name not in nodes for name in cluster.nodes], dtype=np.bool_))
        for cluster in clusters
    )


def impossible_gain(before: float, after: float, *, same_loads: bool, floor: bool) -> str:
    """What to say where a placement completes sooner with fewer nodes; nothing where it does not.

    Whatever can be placed on fewer nodes can be placed on all. But what is advised is above the floor of efficiency,
    which an idle node raises; the loads between two answers of a daemon may have changed, and each answer counts with
    the loads forecast over its own run; and the search in a large measured network is not exact.

    Parameters
    ----------
    before, after : predicted completion with all nodes, and without those that are drained (s).
    same_loads : whether both count with the same loads.
    floor : whether there is a floor of efficiency.

    Examples
    --------
    >>> impossible_gain(10.0, 10.0, same_loads=False, floor=False)
    ''
    >>> impossible_gain(10.0, 11.0, same_loads=False, floor=False)
    ''
    >>> impossible_gain(10.0, 9.5, same_loads=False, floor=False)
    '5.0% sooner without these nodes is no gain by draining: the loads that count changed between both answers'
    """
    # As they are shown, neither is sooner.
    if plain(after) == plain(before) or after >= before:
        return ""
    changed = "the loads that count changed between both answers"
    below = "with them that placement is below --least-efficiency"
    inexact = "the search among all nodes is not exact"
    why = " or ".join([*[changed] * (not same_loads), *[below] * floor]) or inexact
    return f"{1.0 - after / before:.1%} sooner without these nodes is no gain by draining: {why}"


@dataclass(frozen=True, slots=True)
class Scaling:
    """Time and efficiency of the best placement of each number of processors; arrays of shape (k,).

    Parameters
    ----------
    processors : powers of two, the least and the largest number, the fastest, and the one advised.
    execution_time : predicted (s).
    speedup, efficiency : against the fewest processors in the curve.
    fastest : the number with the earliest completion.
    """

    processors: Ints
    execution_time: Floats
    speedup: Floats
    efficiency: Floats
    fastest: int


def scaling(curve: Curve, advised: int) -> Scaling:
    """Answer "how many processors" from a curve.

    Parameters
    ----------
    curve : the best placement for each number of processors.
    advised : the number of processors of the ranking's first placement.

    Examples
    --------
    >>> p = np.arange(1, 9)
    >>> time = 80.0 / p + 2.0 * p
    >>> found = scaling(Curve(p, time, time, time, time), 5)
    >>> found.fastest, found.processors.tolist()
    (6, [1, 2, 4, 5, 6, 8])
    """
    best = int(curve.completion.argmin())
    count = curve.processors
    powers = count & (count - 1) == 0
    powers[[best, 0, -1]] = True
    powers |= count == advised
    time = curve.execution_time
    speedup = count[0] * time[0] / time
    return Scaling(count[powers], time[powers], speedup[powers], (speedup / count)[powers], int(count[best]))
