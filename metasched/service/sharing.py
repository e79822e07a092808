"""The jobs that run on each partition with what they have left, worked out once for each view."""

from __future__ import annotations

from metasched.placement.partition import Partition
from metasched.placement.running import RunningJob, terms_left
from metasched.service.board import Board, View
from metasched.service.models import Models

#: What is known of a partition's jobs: the jobs, and lines about those that no model is known of.
Known = tuple[tuple[RunningJob, ...], tuple[str, ...]]


class Sharing:
    """Jobs that a new one would share with.

    Parameters
    ----------
    board : jobs as their schedulers tell of them.
    models : of their applications.
    """

    def __init__(self, board: Board, models: Models) -> None:
        self._board = board
        self._models = models
        self._of: tuple[View, dict[str, Known]] = (board.view, {})

    def on(self, partition: Partition) -> Known:
        """The jobs on a partition."""
        view, known = self._of
        if view is not self._board.view:
            view, known = self._of = self._board.view, {}
        name = partition.state.name
        if name not in known:
            known[name] = terms_left(
                view.running_on(partition),
                partition.state,
                lambda application: self._models.predictor(application, partition.platform),
                sure=bool(partition.scheduler),
            )
        return known[name]
