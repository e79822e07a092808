"""The jobs that run on each partition with what they have left, worked out once for each view."""

from __future__ import annotations

from dataclasses import dataclass, replace

from metasched.jobs import placement_in
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, terms_left
from metasched.records import Placement
from metasched.service.state.live_clusters import LiveClusters, View
from metasched.service.state.models import Models

#: What is known of a partition's jobs: the jobs, and lines about those that no model is known of.
Known = tuple[tuple[RunningJob, ...], tuple[str, ...]]
#: Placements whose power is remembered: the newest.
MOST_PLACED = 10_000


@dataclass(frozen=True, slots=True)
class _Placed:
    """The nodes of a placement, its clock (MHz), its expected power, and the margin up to its upper limit (W)."""

    nodes: frozenset[str]
    clock: float | None
    power: float
    doubt: float


class RunningJobs:
    """Jobs that a new one would share with.

    A job that runs where it was placed, at the clock of its placement, counts with the power of that, which is the mean
    of the run: under the loads of a moment it would seem to draw more or less with each of them.
    """

    def __init__(self, clusters: LiveClusters, models: Models) -> None:
        self._clusters = clusters
        self._models = models
        self._of: tuple[View, dict[str, Known]] = (clusters.view, {})
        self._placed: dict[str, _Placed] = {}

    def remember(self, uid: str, best: Placement, clock: float | None = None) -> None:
        """Remember the power of a placement that a job's comment will name; thread-safe.

        Parameters
        ----------
        uid : of the answer.
        best : the placement.
        clock : of the job where none was chosen (MHz); None where it has none of its own.
        """
        if best.power_middle is None:
            return
        if len(self._placed) >= MOST_PLACED:  # several at once, since each time all others are copied
            self._placed = dict([*self._placed.items()][MOST_PLACED // 8 :])
        nodes = frozenset(best.resource_set.nodes)
        clock = best.resource_set.frequency or clock
        self._placed[uid] = _Placed(nodes, clock, best.power_middle, best.power_doubt or 0.0)

    def on(self, partition: Partition) -> Known:
        """The jobs that run on the nodes of a partition, with the terms that each has left (s)."""
        view, known = self._of
        if view is not self._clusters.view:
            view, known = self._of = self._clusters.view, {}
        name = partition.state.name
        if name not in known:
            known[name] = terms_left(
                [self._as_placed(job) for job in view.running_on(partition)],
                partition.state,
                lambda application: self._models.predictor(application, partition.platform),
                sure=bool(partition.scheduler),
            )
        return known[name]

    def _as_placed(self, job: RunningJob | StartedJob) -> RunningJob | StartedJob:
        if not self._placed or isinstance(job, RunningJob):
            return job
        placed = self._placed.get(placement_in(job.comment))
        if placed is None or placed.nodes != frozenset(job.nodes) or placed.clock != job.settings.frequency:
            return job
        return replace(job, power=placed.power, power_doubt=placed.doubt)
