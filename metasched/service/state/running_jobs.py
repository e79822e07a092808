"""The jobs that run on each partition with what they have left, worked out once for each view."""

from __future__ import annotations

from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, terms_left
from metasched.service.state.live_clusters import LiveClusters, View
from metasched.service.state.models import Models

#: What is known of a partition's jobs: the jobs, and lines about those that no model is known of.
Known = tuple[tuple[RunningJob, ...], tuple[str, ...]]


class RunningJobs:
    """Jobs that a new one would share with.

    Parameters
    ----------
    clusters : with the jobs that their schedulers run.
    models : of their applications.
    """

    def __init__(self, clusters: LiveClusters, models: Models) -> None:
        self._clusters = clusters
        self._models = models
        self._of: tuple[View, dict[str, Known]] = (clusters.view, {})

    def on(self, partition: Partition) -> Known:
        """The jobs that run on the nodes of a partition, with the terms that each has left (s)."""
        view, known = self._of
        if view is not self._clusters.view:
            view, known = self._of = self._clusters.view, {}
        name = partition.state.name
        if name not in known:
            known[name] = terms_left(
                view.running_on(partition),
                partition.state,
                lambda application: self._models.predictor(application, partition.platform),
                sure=bool(partition.scheduler),
            )
        return known[name]
