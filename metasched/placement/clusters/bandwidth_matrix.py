"""A matrix of measured bandwidths between nodes, and the groups of nodes that are worth searching in it.

The sets with bandwidth >= b are the cliques of the graph of all pairs at least b wide, and inside a maximal clique
the best P processors by CPU are a prefix, as in a tree. So with all maximal cliques of all widths the search is
exact. There can be too many of them. Then cliques found by complete linkage and by greedy growth stand in, and the
components that single linkage finds (the smallest ultrametric above the matrix) promise at least what any set can
have: the distance between the two is the gap that the ranking reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.network import Groups
from metasched.records import InputError

#: Beyond this many maximal cliques the search goes on with the greedy ones.
MOST_CLIQUES = 20_000
#: The maximal cliques of graphs with more nodes are not enumerated.
MOST_EXACT_NODES = 64
#: Widths and first nodes that greedy growth starts from.
GREEDY_WIDTHS, GREEDY_SEEDS = 24, 12


@dataclass(frozen=True, slots=True)
class BandwidthMatrix:
    """Bandwidths between the nodes of a cluster.

    Parameters
    ----------
    width : array of shape (n, n), Mbit/s; of two directions the narrower counts, the diagonal is ignored.

    Raises
    ------
    InputError : when it is not square, or a bandwidth is not a finite number above 0.

    Examples
    --------
    >>> measured = BandwidthMatrix([[0, 90, 20], [80, 0, 30], [25, 30, 0]])
    >>> measured.bandwidth([100, 100, 100], [0, 1]), measured.bandwidth([100, 100, 100], [0, 1, 2])
    (80.0, 20.0)
    """

    width: Floats

    def __post_init__(self) -> None:
        width = np.asarray(self.width, dtype=np.float64)
        if width.ndim != 2 or width.shape[0] != width.shape[1]:
            raise InputError(f"bandwidth matrix has shape {width.shape}, expected as many rows as columns")
        apart = ~np.eye(width.shape[0], dtype=bool)
        wrong = np.argwhere(apart & ~(np.isfinite(width) & (width > 0)))
        if wrong.size:
            row, column = (int(each) for each in wrong[0])
            raise InputError(
                f"bandwidth matrix has {width[row, column]:g} in row {row + 1}, column {column + 1}, "
                "expected a finite number above 0"
            )
        object.__setattr__(self, "width", np.where(apart, np.minimum(width, width.T), np.inf))

    @property
    def nodes(self) -> int:
        """Number of nodes that the network joins."""
        return int(self.width.shape[0])

    def select(self, nodes: ArrayLike) -> BandwidthMatrix:
        """The matrix of some of the nodes."""
        kept = np.asarray(nodes, dtype=np.int64)
        return BandwidthMatrix(self.width[np.ix_(kept, kept)])

    def bandwidth(self, link: ArrayLike, nodes: ArrayLike) -> float:
        """Smallest bandwidth between two of the nodes, and of their own links (Mbit/s)."""
        chosen = np.unique(np.asarray(nodes, dtype=np.int64))
        own = np.asarray(link, dtype=np.float64)[chosen]
        return float(min(own.min(), self.width[np.ix_(chosen, chosen)].min()))

    def groups(self, link: ArrayLike) -> tuple[Groups, Groups | None]:
        """Every node alone, and all maximal cliques; where those are too many, good ones and the components above."""
        own = np.asarray(link, dtype=np.float64)
        width = np.minimum(self.width, np.minimum(own[:, None], own[None, :]))
        np.fill_diagonal(width, np.inf)
        if self.nodes <= MOST_EXACT_NODES:
            cliques = list(islice(_maximal_cliques(width), MOST_CLIQUES + 1))
            if len(cliques) <= MOST_CLIQUES:
                return _groups(own, cliques), None
        found = chain(_linked(width, "complete"), _grown(width))
        return _groups(own, found), _groups(own, _linked(width, "single"))


def _maximal_cliques(width: Floats) -> Iterator[tuple[Ints, float]]:
    """Cliques of each width b that no pair at least b wide could extend; b from wide to narrow."""
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(width.shape[0]))
    first, second = np.triu_indices(width.shape[0], 1)
    pairs = width[first, second]
    for level in np.unique(pairs)[::-1]:
        new = [(int(first[k]), int(second[k])) for k in np.flatnonzero(pairs == level)]
        graph.add_edges_from(new)
        # Of many new pairs the cliques are found sooner in one search than in one for each.
        of_each = (nx.find_cliques(graph, nodes=list(edge)) for edge in new)
        found = nx.find_cliques(graph) if len(new) > len(graph) else chain.from_iterable(of_each)
        seen: set[frozenset[int]] = set()
        for clique in map(frozenset, found):
            members = np.array(sorted(clique), dtype=np.int64)
            # A clique without a new pair is one of a wider level.
            if clique not in seen and width[np.ix_(members, members)].min() == level:
                seen.add(clique)
                yield members, float(level)


def _linked(width: Floats, method: Literal["complete", "single"]) -> Iterator[tuple[Ints, float]]:
    """Clusters of agglomerative linkage: ``complete`` makes cliques of their width, ``single`` components."""
    size = width.shape[0]
    if size < 2:
        return
    # Distances fall as widths grow: their ranks do, and keep the widths exactly.
    widths, rank = np.unique(
        -scipy.spatial.distance.squareform(np.where(np.isinf(width), 0.0, width), checks=False), return_inverse=True
    )
    members: dict[int, Ints] = {node: np.array([node]) for node in range(size)}
    for number, (left, right, height, _) in enumerate(
        scipy.cluster.hierarchy.linkage(rank.astype(np.float64), method), start=size
    ):
        joined = np.concatenate([members.pop(int(left)), members.pop(int(right))])
        members[number] = joined
        yield joined, float(-widths[int(height)])


def _grown(width: Floats) -> Iterator[tuple[Ints, float]]:
    """Cliques grown greedily from several nodes at several widths, by the number of neighbours that are left."""
    size = width.shape[0]
    if size < 2:
        return
    inside = width[np.triu_indices(size, 1)]
    levels = np.unique(np.quantile(inside, np.linspace(0, 1, GREEDY_WIDTHS, endpoint=False), method="lower"))
    for level in levels:
        joined = width >= level
        degree = joined.sum(axis=1)
        seeds = np.argsort(-degree, kind="stable")[:: max(1, size // GREEDY_SEEDS)]
        left = joined[seeds].copy()  # (seed, node): may still be added
        taken = np.zeros_like(left)
        rows = np.arange(seeds.size)
        pick = seeds
        while rows.size:
            taken[rows, pick] = True
            left[rows] &= joined[pick]
            left[rows, pick] = False
            rows = rows[left[rows].any(axis=1)]
            pick = np.where(left[rows], degree, -1).argmax(axis=1)
        for row in np.unique(taken, axis=0):
            yield np.flatnonzero(row), float(level)


def _groups(own: Floats, cliques: Iterable[tuple[Ints, float]]) -> Groups:
    every = [(np.array([node]), float(width)) for node, width in enumerate(own)]
    every.extend(cliques)
    sizes = [members.size for members, _ in every]
    return (
        np.repeat(np.arange(len(every)), sizes),
        np.concatenate([members for members, _ in every]) if every else np.empty(0, np.int64),
        np.repeat([width for _, width in every], sizes),
    )
