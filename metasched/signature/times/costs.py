"""Costs of computation, messages and collective operations: the contract of the clocks, and costs by blocks."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from metasched.arrays import Floats
from metasched.blocks.entry import Block
from metasched.signature.traces.exchanges import Exchanges
from metasched.simulation.system import Placement, Slowed

#: Bytes from which sums among all processes are passed around a ring in parts.
IN_PARTS = 10_000.0


class Costs(Protocol):
    """The contract of the costs that simulated clocks need."""

    @property
    def count(self) -> int:
        """How many processes there are in all."""

    @property
    def stretch(self) -> float:
        """By what computation takes longer than the machine says, and so than measurable points do."""

    def work(self) -> Floats:
        """Seconds of one instruction in each process, an array of shape (processes,)."""

    def messages(self, found: Exchanges) -> tuple[Floats, Floats]:
        """Seconds of each message, and for how long it occupies a link; arrays of shape (messages,)."""

    def branch(self, name: str, size: float) -> float:
        """Seconds of one message in the tree of a broadcast or reduction."""

    def shared(self, size: float) -> float:
        """Seconds of a message in the tree of a broadcast during which it occupies its sender's link."""

    def together(self, name: str, size: float) -> float:
        """Seconds of another collective operation of all processes; the size is the volume of its action."""

    def among(self, name: str, size: float, count: int) -> float:
        """Seconds of a collective operation of some processes that enter it at once."""


class BlockCosts:
    """Costs by the blocks of a placement."""

    def __init__(self, placement: Placement, label: str) -> None:
        self.placement, self.label = placement, label
        self.count = len(placement.node[label])

    @property
    def stretch(self) -> float:
        """By what computation takes longer than the entry says."""
        return self.placement.computing if isinstance(self.placement, Slowed) else 1.0

    def work(self) -> Floats:
        """Seconds of one instruction in each process."""
        return np.broadcast_to(self.placement.compute(self.label, range(self.count), 1.0), self.count)

    def messages(self, found: Exchanges) -> tuple[Floats, Floats]:
        """Seconds of each message, and for how long it occupies a link: processes of a node share its link."""
        if not found.size.size:
            return found.size, found.size
        nodes = self.placement.node[self.label]
        here, there = nodes[found.source], nodes[found.target]
        takes = np.broadcast_to(self.placement.message(here, there, found.size), found.size.shape)
        alone = np.broadcast_to(self.placement.message(here, there, 0.0), found.size.shape)
        busy = np.maximum(takes - alone, 0.0) * np.where(here == there, 1, self.placement.loads[here])
        return alone + busy, busy

    def branch(self, name: str, size: float) -> float:
        """Seconds of one message in a tree, between the first node and the last."""
        nodes = self.placement.node[self.label]
        ends = np.array([nodes[0]]), np.array([nodes[-1]])
        return float(np.max(self.placement.message(*ends, size)))

    def shared(self, size: float) -> float:
        """What its bytes add to a message of none."""
        return max(self.branch("bcast", size) - self.branch("bcast", 0.0), 0.0)

    def together(self, name: str, size: float) -> float:
        """Blocks where there is one for the operation, else the messages that MPI libraries send for it."""
        labels, n = [self.label], self.count
        if name == "barrier":
            return self.placement.collective(Block.barrier, labels, 0.0)
        if name in ("scatter", "gather"):
            return self.placement.collective(Block(name), labels, size * n)
        if name in ("alltoall", "alltoallv"):
            return self.placement.collective(Block.alltoall, labels, size if name == "alltoall" else size / n)
        return self.among(name, size, n)

    def among(self, name: str, size: float, count: int) -> float:
        """The messages that MPI libraries send for an operation, between the first node and the last."""
        rounds = math.ceil(math.log2(max(count, 1)))
        if name == "barrier":
            return rounds * self.branch(name, 0.0)
        if name in ("alltoall", "alltoallv"):
            return (count - 1) * self.branch(name, size if name == "alltoall" else size / count)
        if name in ("scatterv", "gatherv") and count > 1:
            # No tree: the root's link carries the parts of all others.
            late = self.branch(name, 0.0)
            return late + (count - 1) * (self.branch(name, size / count) - late)
        if name.removesuffix("v") in ("allgather", "gather", "scatter", "reducescatter"):
            whole = size * count if name in ("allgather", "gather", "scatter") else size
            return sum(self.branch(name, whole / 2**turn) for turn in range(1, rounds + 1))
        if size > IN_PARTS and name not in ("bcast", "reduce"):
            return 2 * (count - 1) * self.branch(name, size / count)
        return rounds * self.branch(name, size)
