"""The memory that a job needs: as many of its processes go on a node as its memory is for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition


def within_memory(
    constraints: Constraints, partitions: Sequence[Partition], per_processor: float | None
) -> Constraints:
    """The constraints under which every node of a placement has the memory for its part of a job.

    A scheduler that counts memory refuses a job on nodes that have less. Nodes with different memory are all taken for
    those of them with the least that is enough for one process.

    Parameters
    ----------
    constraints : of the job.
    partitions : that it may use. A job that states no memory gets what is usual in them, here the most of them.
    per_processor : megabytes that the job states for each processor, None where it states none.
    """
    if per_processor is None and constraints.memory is None:
        usual = [each.memory for each in partitions if each.memory is not None]
        shares = [each.memory_per_processor for each in partitions if each.memory_per_processor is not None]
        if usual:
            constraints = constraints.model_copy(update={"memory": max(usual)})
        per_processor = max(shares, default=None)
    if per_processor is None:
        return constraints
    memory = np.concatenate([each.state.memory for each in partitions])
    enough = memory[memory >= per_processor]
    fits = max(int(enough.min(initial=np.inf) // per_processor), 1) if enough.size else 1
    largest = max(each.state.per_node for each in partitions)
    most = min(fits, largest if constraints.per_node is None else constraints.per_node)
    changed: dict[str, float] = {}
    if most < largest and most != constraints.per_node:
        changed["per_node"] = most
    needed = max(most * per_processor, constraints.memory or 0.0)
    if not (memory >= needed).all():
        changed["memory"] = needed
    return constraints.model_copy(update=changed) if changed else constraints
