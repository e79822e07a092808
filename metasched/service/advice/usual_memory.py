"""The memory that a job gets which states none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition


def with_usual_memory(constraints: Constraints, partitions: Sequence[Partition]) -> Constraints:
    """The constraints of a job, with the memory that a scheduler that counts it gives a job which states none.

    Parameters
    ----------
    constraints : of the job.
    partitions : that it may use, of whose defaults the largest counts.

    Examples
    --------
    >>> from metasched.placement.clusters.state import ClusterState
    >>> partition = Partition(ClusterState.make("c", ["n0"]), "c", memory_per_processor=2000.0)
    >>> with_usual_memory(Constraints(), [partition]).memory_per_processor
    2000.0
    """
    if constraints.memory is not None or constraints.memory_per_processor is not None:
        return constraints
    usual = {
        "memory": max((each.memory for each in partitions if each.memory is not None), default=None),
        "memory_per_processor": max(
            (each.memory_per_processor for each in partitions if each.memory_per_processor is not None), default=None
        ),
    }
    given: dict[str, Any] = {name: value for name, value in usual.items() if value is not None}
    if any(each.counts_memory and each.memory is each.memory_per_processor is None for each in partitions):
        given["exclusive"] = True  # it gets all the memory of its nodes, and every job there has some
    return constraints.model_copy(update=given) if given else constraints
