"""A server of OAR as the daemon knows it: its resources now, and its jobs that have ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import TIMEOUT, Commands
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.schedulers.listing import Listing
from metasched.schedulers.oar.listing import (
    JOBS,
    RESOURCES,
    Resource,
    accounted,
    ended,
    instances,
    listed,
    resources,
)  # fmt: skip
from metasched.schedulers.oar.submission import asked_for, placed


class OarSource(ListedCluster):
    """One server of OAR, with the parameters of :class:`CommandCluster`; partitions are values of the property.

    Where there is none, all resources are one partition; a command may take ``timeout`` seconds.
    """

    kind = "oar"
    epilog = False
    command = "oarsub"
    word = "partition"

    def __init__(
        self,
        name: str,
        partitions: Sequence[str] = (),
        *,
        platform: str = "",
        property: str = "",
        timeout: float = TIMEOUT,
    ) -> None:
        # oarstat prints nothing if there are no jobs.
        super().__init__(name, partitions, platform, Commands({}, timeout, nothing={}))
        self._property = property
        self._asked_for = partial(asked_for, attribute=property)
        self._placed = partial(placed, attribute=property)

    def _listing(self) -> Listing:
        known = self._resources()
        return self._commands.read(
            lambda jobs: Listing(instances(known, jobs), listed(jobs, known, self._property)), *JOBS
        )

    def _ended(self) -> Iterable[AccountedJob]:
        known = self._resources()
        return self._commands.read(lambda jobs: accounted(jobs, known), *ended(time.time()))

    def _resources(self) -> dict[int, Resource]:
        return self._commands.read(lambda found: resources(found, self._property), *RESOURCES)
