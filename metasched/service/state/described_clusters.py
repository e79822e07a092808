"""The clusters that a file describes, with the jobs that it says run there for as long as those should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from metasched.placement.clusters.description import Description
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, later, terms_left
from metasched.predictors.contract import Predictor
from metasched.service.configuration import DESCRIBED
from metasched.service.state.live_clusters import LiveClusters, runner_of

#: Gives the predictor on a platform of an application.
Model = Callable[[str, str], Predictor | None]


class DescribedClusters:
    """Keeps the live clusters up to date with a description.

    The end of a described job is not reported. It counts from the moment the description was read, until what it has
    left, or what its application's model says of it, is over; then its nodes are free of it.

    Parameters
    ----------
    description : clusters and the jobs there.
    read_at : when it was read (s).
    """

    def __init__(self, description: Description, read_at: float) -> None:
        self._description = description
        self._read_at = read_at
        self._over: list[RunningJob | StartedJob] | None = None

    def show(self, clusters: LiveClusters, model: Model, now: float) -> None:
        """Put clusters and jobs among the live clusters as they should be now.

        Parameters
        ----------
        clusters : to put them among.
        model : gives the predictor, None where there is none.
        now : the time (s).
        """
        partitions: list[Partition] = []
        over: list[RunningJob | StartedJob] = []
        for state in self._description.clusters:
            own = Partition.of(state)
            busy = state.jobs.copy()
            left = []
            for job in self._description.running.get(state.name, ()):
                after = later(job, now - self._read_at)
                remaining = terms_left([after] if after else [], state, partial(model, own.platform), sure=False)
                if any(remaining):  # a job without a model may run forever: it is reported
                    left.append(job)
                else:
                    over.append(job)
                    np.subtract.at(busy, [state.nodes.index(name) for name in job.nodes], 1)
            partitions.append(replace(own, state=replace(state, jobs=busy)))
            clusters.put_running(runner_of(own), left, self._read_at)
        if over != self._over:
            self._over = over
            clusters.put(DESCRIBED, partitions, self._read_at)
