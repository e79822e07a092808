"""An instance of Flux as the daemon knows it: its queues now, and its jobs that have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from metasched.schedulers.accounted import Accounted
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
from metasched.schedulers.submission import Asked, Submission


class FluxSource(ListedCluster):
    """One instance of Flux.

    Parameters
    ----------
    name : the cluster's name, in placements and in runs.
    partitions : names of the queues that jobs may be sent to, all where empty.
    platform : what its models are kept by; the name where empty.
    uri : of the instance, empty for the system's.
    timeout : how long a command may take (s).
    """

    kind = "flux"

    def __init__(
        self, name: str, partitions: Sequence[str] = (), *, platform: str = "", uri: str = "", timeout: float = TIMEOUT
    ) -> None:
        super().__init__(name, partitions, platform=platform)
        self._commands = Commands({"FLUX_URI": uri} if uri else {}, timeout)

    def _listing(self) -> Listing:
        total, held = self._commands.read(lambda found: (cores(found), properties(found)), *RESOURCES, "all")
        free, down = (self._commands.read(cores, *RESOURCES, state) for state in ("free", "down"))

        def parts(queues: Any) -> Any:
            return instances(total, free, down, held, queues)

        return Listing(self._commands.read(parts, *QUEUES), self._commands.read(listed, *JOBS))

    def _ended(self) -> Iterable[Accounted]:
        found: Iterable[Accounted] = self._commands.read(ended, *ENDED)
        return found

    def asked(self, words: Sequence[str]) -> Asked:
        """What the words of a flux command ask for."""
        return asked_for(words)

    def submission(self, words: Sequence[str], partition: str = "") -> Submission:
        """The flux command of a job, with the queue that it is to have, as its words say where that is empty."""
        handed = placed(words, partition) if partition else words
        return Submission(("flux", *handed), self._commands.environment)
