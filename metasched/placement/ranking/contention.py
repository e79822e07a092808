"""What the ranker asks of a model of contention: how jobs that share nodes slow each other down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.state import ClusterState
from metasched.predictors.contract import Predictor


@dataclass(frozen=True, slots=True)
class Share:
    """What a job takes: numbers of its nodes in the cluster's state, and its processors or processes on each."""

    nodes: Ints
    processors: Ints


@dataclass(frozen=True, slots=True)
class Shared:
    """The effects of sharing for each of k alternatives.

    Parameters
    ----------
    slowdown : array of shape (k,), factor by which the job itself is stretched, at least 1.
    harm : array of shape (k,), time that the jobs already there lose together (s), at least 0.
    notes : what the user should know of how it was found.
    """

    slowdown: Floats
    harm: Floats
    notes: tuple[str, ...] = ()

    @classmethod
    def nothing(cls, alternatives: int, notes: tuple[str, ...] = ()) -> Shared:
        """No slowdown and no seconds lost, for alternatives that share with nobody."""
        return cls(np.ones(alternatives), np.zeros(alternatives), notes)


class Contention(Protocol):
    """How much jobs on the same nodes slow each other down."""

    def effects(
        self, cluster: ClusterState, predictor: Predictor, shares: Sequence[Share], execution_time: Floats
    ) -> Shared:
        """The effects of starting a job on each of some alternative shares of a cluster.

        Parameters
        ----------
        cluster : the state, with the jobs already there; its threads and its minima are those of the job's layout, its
            processors all that there are.
        predictor : of the job there, with its layout and its clock.
        shares : k alternatives, with the processes on each node.
        execution_time : array of shape (k,), predicted for the job without contention (s).
        """


class NoContention:
    """Every job runs as if it were alone."""

    def effects(
        self, cluster: ClusterState, predictor: Predictor, shares: Sequence[Share], execution_time: Floats
    ) -> Shared:
        """No slowdown and no seconds lost, whatever jobs run on the nodes."""
        return Shared.nothing(len(shares))


#: What most rankings assume.
ALONE = NoContention()
