"""A pool of HTCondor as the daemon knows it: its machines now, and its jobs that have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import TIMEOUT, Commands
from metasched.schedulers.htcondor.listing import ENDED, JOBS, STATUS, ended, instances, listed
from metasched.schedulers.htcondor.submission import asked_for, placed
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.schedulers.listing import Listing


class HTCondorSource(ListedCluster):
    """One pool of HTCondor with the schedd of this host, with the parameters of :class:`CommandCluster`.

    ``pool`` is the host of its collector, the usual one where empty; a command may take ``timeout`` seconds.
    """

    kind = "htcondor"
    epilog = False
    command = "condor_submit"
    _asked_for, _placed = staticmethod(asked_for), staticmethod(placed)
    word = "partition"

    def __init__(
        self, name: str, partitions: Sequence[str] = (), *, platform: str = "", pool: str = "", timeout: float = TIMEOUT
    ) -> None:
        # Without jobs some versions print nothing.
        commands = Commands({"_CONDOR_COLLECTOR_HOST": pool}, timeout, nothing=[])
        super().__init__(name, partitions, platform, commands)

    def _listing(self) -> Listing:
        return Listing(self._commands.read(instances, *STATUS), self._commands.read(listed, *JOBS))

    def _ended(self) -> Iterable[AccountedJob]:
        return self._commands.read(ended, *ENDED)
