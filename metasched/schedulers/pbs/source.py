"""A server of OpenPBS as a source of the daemon: its queues, and jobs that ended while the daemon was down."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Sequence
from typing import Any

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import TIMEOUT
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.schedulers.listing import Listing
from metasched.schedulers.pbs.commands import PbsCommands
from metasched.schedulers.pbs.listing import ENDED, JOBS, NODES, QUEUES, SERVER, ended, freed, hosts, instances, listed
from metasched.schedulers.pbs.submission import asked_for, placed


class PbsSource(ListedCluster):
    """One server of OpenPBS, with the parameters of :class:`CommandCluster`; its queues are the partitions.

    ``server`` is its host, that of the usual pbs.conf where empty; a command may take ``timeout`` seconds.
    """

    kind = "pbs"
    command = "qsub"
    _asked_for, _placed = staticmethod(asked_for), staticmethod(placed)

    def __init__(
        self,
        name: str,
        partitions: Sequence[str] = (),
        *,
        platform: str = "",
        server: str = "",
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__(name, partitions, platform, PbsCommands.of(server, timeout))

    def _listing(self) -> Listing:
        known = self._commands.read(hosts, *NODES)
        parts = self._commands.read(lambda document: instances(document, known), *QUEUES)
        return Listing(parts, self._commands.read(listed, *JOBS))

    def _ended(self) -> Iterable[AccountedJob]:
        return self._commands.read(ended, *ENDED)

    def _is_operator(self) -> bool:
        """Whether PBS lets our user alter others' jobs: as root, or as a manager or operator."""
        user = pwd.getpwuid(os.geteuid()).pw_name
        return user in self._commands.read(_operators, *SERVER) or os.geteuid() == 0

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str] = ()) -> None:
        """Let a waiting job start on any hosts of its queue; its other requests, and its time limit (s), stay."""
        document = self._commands.json("qstat", "-f", "-F", "json", number)
        try:
            (job,) = document["Jobs"].values()
            select = freed(job["Resource_List"]["select"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RuntimeError(f"qstat does not show the selection of job {number}") from None
        self._commands.run("qalter", "-l", f"select={select}", number)


def _operators(document: Any) -> frozenset[str]:
    """The names of managers and operators, without their hosts."""
    (server,) = document["Server"].values()
    named = ",".join(str(server.get(role, "")) for role in ("managers", "operators"))
    return frozenset(name.partition("@")[0] for name in named.split(","))
