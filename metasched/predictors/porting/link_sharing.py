"""The number of processes of a job that share the link of their node, beyond the number of processors.

A platform of 8 nodes with four processors each runs a job of 32 processes with four on every link. A reference of
8 single processors has never seen that, and its formula cannot know it; but how many nodes a platform has is known
before anything has run there. What a process can send is then the link's bandwidth over the processes that share it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.records import InputError


@dataclass(frozen=True, slots=True)
class LinkSharing:
    """Nodes of both platforms, each with one link.

    Jobs are taken to be spread out, a process on every node before any node gets a second one, and processes to speak
    to all others alike: of k on one node each then sends (P - k) / (P - 1) of its data over the link.

    Parameters
    ----------
    reference, target : how many nodes they have; None where not known, which stands for a link for each processor.
    most_processors : most processors that the reference was learned on. Beyond them its formula carries on as if links
        were shared as there.

    Examples
    --------
    >>> LinkSharing(reference=8, target=8, most_processors=8).congestion(np.array([2.0, 8.0, 12.0, 32.0]))
    array([1.        , 1.        , 1.81818182, 3.61290323])
    """

    reference: int | None = None
    target: int | None = None
    most_processors: int = 1

    def __post_init__(self) -> None:
        for name, nodes in (("reference", self.reference), ("target", self.target)):
            if nodes is not None and nodes < 1:
                raise InputError(f"the {name} has {nodes} nodes, expected 1 or more")

    def congestion(self, processors: Floats) -> Floats:
        """The data on a link of the target relative to what the reference's formula assumes, (k,)."""
        learned = np.minimum(processors, self.most_processors)
        return _sharers(processors, self.target) / _sharers(learned, self.reference)


def _sharers(processors: Floats, nodes: int | None) -> Floats:
    """Processes whose whole traffic a link carries; what stays in a node is not free either, so never less than 1."""
    if nodes is None:
        return np.ones_like(processors)
    on_one = np.ceil(processors / nodes)
    return np.maximum(on_one * (processors - on_one) / np.maximum(processors - 1.0, 1.0), 1.0)
