"""Recently placed jobs, stored until their scheduler reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState, places
from metasched.placement.loads.recent_placements import PlacedJobs, RecentPlacement
from metasched.records import Placement
from metasched.service.state.live_clusters import View, runner_of

#: Jobs just placed that are remembered, and for how long after its scheduler was last asked one stays in mind (s):
#: it needs a moment from the answer to its allocation.
MOST_PLACED, ALLOCATED_WITHIN = 10_000, 2.0


class RecentPlacements:
    """Recently placed jobs, the oldest first."""

    def __init__(self) -> None:
        self._placed = PlacedJobs()
        self._forgotten_in: View | None = None

    def add(
        self,
        best: Placement,
        partition: Partition,
        state: ClusterState,
        constraints: Constraints,
        view: View,
        now: float,
    ) -> None:
        """Add a placement, with its processes distributed over its nodes.

        Parameters
        ----------
        best : the placement.
        partition : where it is.
        state : of the partition, laid out as the job is, with the loads and the places that it counted with.
        constraints : of the job, with the memory that it takes.
        view : with all partitions, of which others may have the same nodes.
        now : seconds.
        """
        chosen = best.resource_set
        place = places(state.nodes)
        scheduler = runner_of(partition)
        same = frozenset(each.state.name for each in view.partitions if runner_of(each) == scheduler)
        left, taken = chosen.processors, []
        each, whole = constraints.memory_per_processor or 0.0, constraints.memory or 0.0
        for position, node in enumerate(chosen.nodes):
            others = len(chosen.nodes) - position - 1
            processes = max(1, min(int(state.processors[place[node]]), left - others))
            taken.append(processes * chosen.threads)
            left -= processes
        if len(self._placed) >= MOST_PLACED:  # several at once, since each time all others are copied
            self._placed = self._placed.only(np.arange(MOST_PLACED) >= MOST_PLACED // 8)
        self._placed = self._placed.plus(
            RecentPlacement(
                chosen.cluster, chosen.nodes, tuple(taken), now, best.completion, same - {chosen.cluster},
                dedicated=bool(partition.scheduler), waits=best.queue_wait > 0,
                power=best.power_middle, power_doubt=best.power_doubt or 0.0,
                memory=tuple(max(whole, each * processors) for processors in taken) if partition.counts_memory else (),
            )
        )  # fmt: skip

    def now(self) -> PlacedJobs:
        """The jobs that count at present; thread-safe."""
        return self._placed

    def forget(self, view: View, seen_at: Mapping[str, float], now: float) -> None:
        """Remove jobs that their scheduler reports by now, and those that should have ended.

        Parameters
        ----------
        view : of this moment; each is read once.
        seen_at : when each scheduler was last asked (s).
        now : seconds; where the clock was set back, jobs that were placed before count as placed now.
        """
        if view is self._forgotten_in:
            return
        self._forgotten_in = view
        if any(job.start > now + ALLOCATED_WITHIN for job in self._placed):
            self._placed = PlacedJobs(replace(job, start=min(job.start, now)) for job in self._placed)
        since = {each.state.name: seen_at.get(each.scheduler, 0.0) - ALLOCATED_WITHIN for each in view.partitions}
        counts = self._placed.not_over(now, since, seen_at.get("", 0.0) - ALLOCATED_WITHIN)
        if not counts.all():
            self._placed = self._placed.only(counts)
