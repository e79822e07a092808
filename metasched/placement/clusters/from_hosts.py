"""Clusters from plain host lists: a line for some nodes, folded or not, and how many processors each has."""

from __future__ import annotations

import re

from metasched.node_names import first_twice, unfold
from metasched.placement.clusters.state import ClusterState
from metasched.records import InputError


def cluster_from_hosts(name: str, text: str, *, where: str = "hosts") -> ClusterState:
    r"""The cluster that a host list, such as MPI's, describes.

    Parameters
    ----------
    name : name of the cluster.
    text : lines such as ``n[1-8]``, ``n9 slots=4`` or ``n10:4``; what follows a # is a comment.
    where : put in front of error messages.

    Examples
    --------
    >>> east = cluster_from_hosts("east", "e[1-2] slots=4\ne3:2  # the old one\n")
    >>> east.nodes, east.processors.tolist()
    (('e1', 'e2', 'e3'), [4, 4, 2])
    """
    nodes: list[str] = []
    processors: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        match = re.fullmatch(r"(\S+?)(?::(\d{1,6})|\s+slots\s*=\s*(\d{1,6}))?", content)
        count = int(match[2] or match[3] or 1) if match else 0
        if match is None or count < 1:
            raise InputError(f"{content!r} is not a host, expected such as n[1-8] slots=4", where=f"{where}: {number}")
        unfolded = unfold(match[1], where=f"{where}: {number}")
        nodes += unfolded
        processors += [count] * len(unfolded)
    twice = first_twice(nodes)
    if twice is not None:
        raise InputError(f"node {twice} is given twice", where=where)
    if not nodes:
        raise InputError("has no host, expected at least one", where=where)
    return ClusterState.make(name, nodes, processors=processors)
