"""An instance of Flux as the daemon knows it: its queues now, and its jobs that have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import TIMEOUT, Commands
from metasched.schedulers.flux.listing import (
    ENDED,
    JOBS,
    QUEUES,
    RESOURCES,
    cores,
    ended,
    instances,
    listed,
    properties,
)  # fmt: skip
from metasched.schedulers.flux.submission import asked_for, placed
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.schedulers.listing import Listing


class FluxSource(ListedCluster):
    """One instance of Flux, with the parameters of :class:`CommandCluster`; its queues are the partitions.

    ``uri`` names it, the system's instance where empty; a command may take ``timeout`` seconds.
    """

    kind = "flux"
    epilog = False
    command = "flux"
    _asked_for, _placed = staticmethod(asked_for), staticmethod(placed)

    def __init__(
        self, name: str, partitions: Sequence[str] = (), *, platform: str = "", uri: str = "", timeout: float = TIMEOUT
    ) -> None:
        super().__init__(name, partitions, platform, Commands({"FLUX_URI": uri}, timeout))

    def _listing(self) -> Listing:
        total, held = self._commands.read(lambda found: (cores(found), properties(found)), *RESOURCES, "all")
        free, down = (self._commands.read(cores, *RESOURCES, state) for state in ("free", "down"))
        parts = self._commands.read(lambda queues: instances(total, free, down, held, queues), *QUEUES)
        return Listing(parts, self._commands.read(listed, *JOBS))

    def _ended(self) -> Iterable[AccountedJob]:
        return self._commands.read(ended, *ENDED)
