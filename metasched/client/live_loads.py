"""Loads as sources tell them right now, for placements without a daemon."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from metasched.node_names import unfold
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.sampled import sampled
from metasched.placement.loads.staleness import with_loads
from metasched.records import Load
from monitors.one_line import one_line
from monitors.sources.contract import Readings, Source
from monitors.sources.screening import Rules
from monitors.sources.settings import SourceTable

#: Sources that are asked at the same time.
TOGETHER = 16


def with_live_loads(
    clusters: Sequence[ClusterState], tables: Sequence[SourceTable], links: Mapping[str, float]
) -> tuple[tuple[ClusterState, ...], tuple[str, ...]]:
    """Ask sources once, all at the same time, and lay what they say over the clusters.

    Parameters
    ----------
    clusters : as they are described; a node that no source tells of keeps its described loads.
    tables : the sources.
    links : speed of the nodes' own links, where it is known (Mbit/s).

    Returns
    -------
    The clusters with the loads and their ages, and a line for each source with which something is wrong.
    """
    sources = [table.source() for table in tables]
    with ThreadPoolExecutor(min(len(sources), TOGETHER)) as pool:
        answers = list(pool.map(_read, sources))
    now = time.time()
    described = {node for cluster in clusters for node in cluster.nodes}
    loads: list[Load] = []
    warnings = []
    for table, source, readings in zip(tables, sources, answers, strict=True):
        name = table.name or source.name
        own = frozenset(unfold(table.nodes, where=f"source {name}: nodes")) if table.nodes else described

        def rules(node: str) -> Rules:
            return replace(Rules(), bandwidth=links.get(node, Rules().bandwidth))

        def bandwidth(node: str, table: SourceTable = table) -> float | None:
            return table.bandwidth or links.get(node)

        found = sampled(readings.samples, now, known=own.__contains__, rules=rules, bandwidth=bandwidth)
        loads += found.loads
        if fault := readings.fault or found.fault:
            warnings.append(f"{name}: {fault}")
    # What a clock that runs ahead measured counts as measured now.
    believed = [replace(load, time=min(load.time, now)) for load in loads]
    return tuple(with_loads(cluster, believed, now) for cluster in clusters), tuple(warnings)


def _read(source: Source) -> Readings:
    """What a source says; one that raises must not cost the others their answers."""
    try:
        return source.read()
    except Exception as error:
        return Readings(fault=f"{type(error).__name__}: {one_line(error)}")
