"""The layouts of processes on nodes, and the clocks, if the model of an application distinguishes them.

Packed onto few nodes processes share memory and link, spread over many they send more between nodes. A ranking looks at
each layout that the application has run with, as if the cluster with each were a cluster of its own: what it finds is
then the best of nodes, processes per node and threads together, exact as the search in one of them is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.ranking.query import InfeasibleError
from metasched.predictors.abilities import clocks_of, layouts_of
from metasched.predictors.contract import Predictor
from metasched.records import InputError, Settings

#: Layouts compared in one ranking at most.
MOST_LAYOUTS = 8
NONE = Constraints()


def layouts(
    clusters: Sequence[ClusterState],
    predictors: Mapping[str, Predictor] | Predictor,
    asked: Settings,
    constraints: Constraints = NONE,
    *,
    any_threads: bool = False,
    frequencies: Sequence[float] = (),
) -> tuple[Settings, ...]:
    """The settings among which a ranking chooses; none if they would change neither the predictions nor the nodes.

    Parameters
    ----------
    clusters : known clusters.
    predictors : the application's, by cluster, or one for all of them.
    asked : what is asked; with processes per node nothing is left to choose but threads.
    constraints : say in which of the clusters it may run, and how many processors it may take on one node.
    any_threads : whether any number of threads will do that the application has run with.
    frequencies : clocks that the processors may be given (MHz); their own where there are none.

    Raises
    ------
    InfeasibleError : the processes and threads asked for fit on no node.
    InputError : there are clocks to choose from, and a predictor that does not distinguish them.
    """
    admitted = [each for each in clusters if not constraints.clusters or each.name in constraints.clusters]
    if isinstance(predictors, Mapping):
        admitted = [each for each in admitted if each.name in predictors]
        models = [predictors[each.name] for each in admitted]
    else:
        models = [predictors]
    if frequencies and not all(map(clocks_of, models)):
        raise InputError("a model there does not depend on the clock, expected one of runs with a recorded frequency")
    known = frozenset[tuple[int | None, int]]().union(*(layouts_of(each) for each in models))
    if not known and not frequencies and asked.processes_per_node is None and asked.threads == 1:
        return ()
    largest_nodes = [int(constraints.laid_out(each).processors.max(initial=0)) for each in admitted]
    largest = max(largest_nodes, default=0)
    per_node = asked.processes_per_node or 1
    needed = per_node * asked.threads
    if 0 < largest < needed:
        what = f"{per_node} process{'es' if per_node > 1 else ''} of {asked.threads} thread{'s'[: asked.threads - 1]}"
        raise InfeasibleError(
            f"{what} on a node take{'s' * (per_node == 1)} {needed} processors, no node has more than {largest}"
        )
    # Settings that do not fit on the nodes are excluded; if none is left, only the requested ones remain.
    threads = {t for _, t in known if t <= max(largest, 1)} if any_threads else {asked.threads}
    counts: set[int | None] = {k for k, _ in known if k is not None}
    if asked.processes_per_node is not None or len(counts) < 2:
        counts = {asked.processes_per_node}
    laid = (replace(asked, processes_per_node=k, threads=t) for k, t in product(counts, threads or {asked.threads}))
    found = sorted(
        {each.on_nodes_of(largest) for each in laid}, key=lambda each: (each.processes_per_node or 0, each.threads)
    )
    clocks = tuple(dict.fromkeys(frequencies)) or (asked.frequency,)
    as_asked = asked.processes_per_node is None or set(largest_nodes) == {asked.processes_per_node}
    if found == [asked] and asked.threads == 1 and as_asked:
        return tuple(replace(asked, frequency=clock) for clock in frequencies and clocks)
    chosen = np.unique(np.linspace(0, len(found) - 1, min(len(found), MOST_LAYOUTS)).round().astype(int))
    return tuple(replace(found[place], frequency=clock) for place in chosen for clock in clocks)
