"""A scheduler on which nothing runs, waits or is bound: tests of one verb of the contract add it."""

from __future__ import annotations

from collections.abc import Sequence

from metasched.history.queue import QueuedJob
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.schedulers.contract import BoundJob


class QuietScheduler:
    """All that the contract asks of a scheduler, but for how jobs ended."""

    def partitions(self) -> Sequence[Partition]:
        return ()

    def running(self) -> Sequence[StartedJob]:
        return ()

    def queue(self) -> Sequence[QueuedJob]:
        return ()

    def accounted(self, since: float, until: float | None = None) -> None:
        return None

    def bound(self) -> Sequence[BoundJob]:
        return ()

    def release(self, number: str, time_limit: float | None, nodes: int | None) -> None:
        raise AssertionError("no job is bound")
