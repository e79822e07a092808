"""What the daemon asks of a batch scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from metasched.placement.partition import Partition
from metasched.placement.running import StartedJob
from metasched.store.jobs import EndedJob, Fate


class Source(Protocol):
    """A cluster with a batch scheduler. Asking may take seconds, so it is asked beforehand and its answer kept."""

    name: str

    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now.

        Raises
        ------
        RuntimeError
            When they cannot be learned now, but perhaps later.
        """
        ...

    def running(self) -> Sequence[StartedJob]:
        """The jobs that run now.

        Raises
        ------
        RuntimeError
            When they cannot be learned now, but perhaps later.
        """
        ...

    def fates(self, jobs: Sequence[str]) -> Mapping[str, Fate]:
        """What became of each of these jobs that is still known.

        Raises
        ------
        RuntimeError
            When it cannot be learned now, but perhaps later.
        """
        ...

    def finished(self, since: float) -> Sequence[EndedJob]:
        """Jobs that ended after a time (s), from the scheduler's own records.

        Raises
        ------
        RuntimeError
            When they cannot be learned now, but perhaps later.
        """
        ...
