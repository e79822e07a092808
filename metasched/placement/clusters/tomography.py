"""Delays of links from delays measured between nodes: network tomography.

Delays add up along a way, so the delays ``y`` measured from end to end are ``y = A x`` for the delays ``x`` of the
links, where A, the routing matrix, has a 1 where a way crosses a link. The same holds of the time per word, Tw of paper
000, where links store and forward. Non-negative least squares finds x; what it finds of a link counts only where the
ways tell the link apart: where the link's unit vector lies in the row space of A.

Links that every way crosses together, or not at all, are one chain: only the chain's sum can be known. Source: Vardi
1996, Journal of the American Statistical Association 91, 365-377; Coates, Hero, Nowak and Yu 2002, IEEE Signal
Processing Magazine 19(3), 47-65.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.placement.clusters.switch_tree import Topology
from metasched.records import InputError

#: Numbers of a routing matrix at most, some hundred megabytes.
MOST_NUMBERS = 20_000_000
#: Below this a part of a unit vector outside the row space is rounding.
ROUNDING = 1e-8


@dataclass(frozen=True, slots=True)
class ChainDelay:
    """The delay of a link, or of links that are only known together.

    Parameters
    ----------
    links : their names.
    delay : the sum of their delays, in the unit of the measurements; the least that explains them where it is not
        identifiable.
    identifiable : whether the measured ways tell it apart from all other links.
    ways : how many measured ways cross it.
    """

    links: tuple[str, ...]
    delay: float
    identifiable: bool
    ways: int


@dataclass(frozen=True, slots=True)
class Tomography:
    """The delays of links that follow from measurements between nodes.

    Parameters
    ----------
    chains : every link that a measured way crosses, in the order of the links.
    uncrossed : names of the links that none does.
    residual : root of the mean squared difference between measured and explained delays, as a share of the measured.
    undetermined : array of shape (chains, k), the null space of the routing matrix (:func:`undetermined`).
    """

    chains: tuple[ChainDelay, ...]
    uncrossed: tuple[str, ...]
    residual: float
    undetermined: Floats

    def along(self, way: Sequence[str]) -> float | None:
        """The delay of a way that need not be measured, None where the measured ways do not determine it.

        It may be known although its links are not: where it is a combination of measured ways.

        Parameters
        ----------
        way : names of the links that it crosses.

        Examples
        --------
        >>> found = link_delays([["a", "b", "c"], ["a", "d"], ["d", "e"]], [6.0, 5.0, 9.0])
        >>> [found.along(way) for way in (["b", "c"], ["a", "b"])]
        [None, None]
        >>> round(found.along(["b", "c", "e"]), 6)
        10.0
        """
        crossed = np.zeros(len(self.chains))
        for number, chain in enumerate(self.chains):
            times = {list(way).count(link) for link in chain.links}
            if len(times) > 1:
                return None
            crossed[number] = times.pop()
        inside = {link for chain in self.chains for link in chain.links}
        if not inside.issuperset(way) or np.linalg.norm(crossed @ self.undetermined) > ROUNDING:
            return None
        return float(crossed @ [chain.delay for chain in self.chains])


def link_delays(ways: Sequence[Sequence[str]], measured: ArrayLike, links: Sequence[str] = ()) -> Tomography:
    """The delays of links by non-negative least squares, each way's error taken as a share of its delay.

    Parameters
    ----------
    ways : for each measurement the names of the links that it crosses.
    measured : array of shape (m,), delays from end to end, in any unit.
    links : names of all links, where some may be crossed by no way.

    Raises
    ------
    InputError : when there is no measurement, or one is not a finite number above 0 or crosses no link.

    Examples
    --------
    Three nodes on one switch: each pair was measured, so each link is known.

    >>> found = link_delays([["a", "b"], ["a", "c"], ["b", "c"]], [3.0, 4.0, 5.0])
    >>> [(chain.links, round(chain.delay, 6), chain.identifiable) for chain in found.chains]
    [(('a',), 1.0, True), (('b',), 2.0, True), (('c',), 3.0, True)]

    Two nodes: only the sum is known.

    >>> [(chain.links, round(chain.delay, 6)) for chain in link_delays([["a", "b"]], [3.0]).chains]
    [(('a', 'b'), 3.0)]
    """
    delays = np.asarray(measured, dtype=np.float64)
    if delays.ndim != 1 or not delays.size or delays.size != len(ways):
        raise InputError(
            f"{delays.size} delays of {len(ways)} paths are given, expected one for each path, at least one"
        )
    if not np.all(np.isfinite(delays) & (delays > 0)):
        raise InputError("a measured delay is not a finite number above 0")
    if any(not way for way in ways):
        raise InputError("a measured path crosses no link")
    names = list(dict.fromkeys([*links, *(link for way in ways for link in way)]))
    place = {name: column for column, name in enumerate(names)}
    if len(ways) * len(names) > MOST_NUMBERS:
        raise InputError(f"{len(ways)} measurements of {len(names)} links are too many, expected fewer of each pair")
    matrix = np.zeros((len(ways), len(names)))
    for row, way in enumerate(ways):
        for link in way:
            matrix[row, place[link]] += 1.0
    together: dict[bytes, list[int]] = {}
    for column in range(len(names)):
        together.setdefault(matrix[:, column].tobytes(), []).append(column)
    crossed = [columns for columns in together.values() if matrix[:, columns[0]].any()]
    routing = matrix[:, [columns[0] for columns in crossed]]
    weighted = routing / delays[:, None]
    found, _ = scipy.optimize.nnls(weighted, np.ones(delays.size))
    null = undetermined(routing)
    known = np.linalg.norm(null, axis=1) < ROUNDING
    residual = float(np.sqrt(np.mean((weighted @ found - 1.0) ** 2)))
    chains = tuple(
        ChainDelay(tuple(names[column] for column in columns), float(delay), bool(sure), int((count > 0).sum()))
        for columns, delay, sure, count in zip(crossed, found, known, routing.T, strict=True)
    )
    inside = {link for chain in chains for link in chain.links}
    return Tomography(chains, tuple(name for name in names if name not in inside), residual, null)


def undetermined(routing: ArrayLike) -> Floats:
    """The null space of a routing matrix, an orthonormal basis of shape (n, k): changes of links that no way shows.

    A link, or a combination of links, is determined where it is orthogonal to all of them.

    Parameters
    ----------
    routing : array of shape (m, n), how often each way crosses each link.

    Examples
    --------
    >>> np.abs(undetermined([[1, 1, 0], [0, 0, 1]])).round(3).tolist()
    [[0.707], [0.707], [0.0]]
    """
    return np.asarray(scipy.linalg.null_space(np.asarray(routing, dtype=np.float64)))


def ways_in(tree: Topology, nodes: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The links on the way between pairs of nodes of a tree: nodes' own links by the node's name, uplinks by switch's.

    Raises
    ------
    InputError : when a node is not known, a pair is one node, or no switch joins it.

    Examples
    --------
    >>> tree = Topology(("r1", "r2", "top"), [2, 2, -1], [np.inf] * 3, [0, 0, 1, 1])
    >>> ways_in(tree, ["a", "b", "c", "d"], [("a", "b"), ("a", "d")])
    [['a', 'b'], ['a', 'uplink r1', 'uplink r2', 'd']]
    """
    place: Mapping[str, int] = {name: number for number, name in enumerate(nodes)}

    def above(node: int) -> list[int]:
        switch, found = int(tree.leaf[node]), []
        while switch >= 0:
            found.append(switch)
            switch = int(tree.parent[switch])
        return found

    ways = []
    for one, other in pairs:
        for name in (one, other):
            if name not in place:
                raise InputError(f"node {name} is not in the network")
        if one == other:
            raise InputError(f"node {one} was measured against itself, expected two nodes")
        left, right = above(place[one]), above(place[other])
        meeting = next((switch for switch in left if switch in right), None)
        if meeting is None:
            raise InputError(f"no switch joins {one} and {other}")
        up = [f"uplink {tree.switches[switch]}" for switch in left[: left.index(meeting)]]
        down = [f"uplink {tree.switches[switch]}" for switch in right[: right.index(meeting)]]
        ways.append([one, *up, *reversed(down), other])
    return ways
