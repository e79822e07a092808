"""The memory that jobs may request without being given more processors for it, or waiting forever."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metasched.placement.clusters.constraints import Constraints


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The limits of a partition (megabytes).

    Parameters
    ----------
    per_node : a job that requests more of a node is never started.
    per_processor : a job that requests more for each processor, or of a node for those that it takes there, gets as
        many processors more as it takes to stay below it.

    Examples
    --------
    >>> limits = MemoryLimits(per_processor=250.0)
    >>> [limits.admit(Constraints(memory_per_processor=each)) for each in (250.0, 251.0)]
    [True, False]
    >>> [limits.admit(Constraints(memory=900.0, per_node=count)) for count in (3, 4)]
    [False, True]
    """

    per_node: float = math.inf
    per_processor: float = math.inf

    def admit(self, demands: Constraints) -> bool:
        """Whether a job gets the processors that it requests, and no more."""
        whole, each = demands.memory or 0.0, demands.memory_per_processor or 0.0
        if max(whole, each) > self.per_node or each > self.per_processor:
            return False
        return demands.exclusive or whole <= self.per_processor * (demands.per_node or 1)
