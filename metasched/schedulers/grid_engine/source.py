"""A cell of Grid Engine as a source of the daemon: its queues, and jobs that ended while the daemon was down."""

from __future__ import annotations

import logging
import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import TIMEOUT
from metasched.schedulers.grid_engine.accounting import read_accounting
from metasched.schedulers.grid_engine.commands import GridEngineCommands
from metasched.schedulers.grid_engine.listing import WORDS, read_listing
from metasched.schedulers.grid_engine.submission import asked_for, comment, placed
from metasched.schedulers.listed_cluster import ListedCluster
from metasched.schedulers.listing import ListedJob, Listing

_log = logging.getLogger(__name__)

#: Where Debian has SGE_ROOT.
ROOT = "/var/lib/gridengine"
#: The change by which a job that is bound to hosts may run on any.
ANYWHERE = "*"


class GridEngineSource(ListedCluster):
    """One cell of Grid Engine, with the parameters of :class:`CommandCluster`; its cluster queues are the partitions.

    Lines are written to its accounting some seconds after a job has left the queues (``flush_time``), and none is ever
    removed. Of a job on several hosts they name one.

    Parameters
    ----------
    root, cell : SGE_ROOT and SGE_CELL, empty for those of the environment, else the usual ones.
    timeout : how long a command may take (s).
    """

    kind = "grid_engine"
    command = "qsub"
    _asked_for, _placed = staticmethod(asked_for), staticmethod(placed)
    accounts_for_all = True
    apart = True
    _commands: GridEngineCommands

    def __init__(
        self,
        name: str,
        partitions: Sequence[str] = (),
        *,
        platform: str = "",
        root: str = "",
        cell: str = "",
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__(name, partitions, platform, GridEngineCommands.of(root, cell, timeout))
        root = root or os.environ.get("SGE_ROOT", ROOT)
        self._accounting = Path(root) / (cell or os.environ.get("SGE_CELL", "default")) / "common" / "accounting"

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str] = ()) -> None:
        """Let a waiting job start on any hosts of its queues; its other requests, and its time limit (s), stay."""
        kept = []
        for element in self._commands.xml("qstat", "-xml", "-j", number).iter("JB_hard_resource_list"):
            for each in element.iter("qstat_l_requests"):
                name, value = each.findtext("CE_name", ""), each.findtext("CE_stringval", "")
                if name != "hostname":
                    kept.append(f"{name}={value}")
        self._commands.run("qalter", "-l", ",".join([*kept, f"hostname={ANYWHERE}"]), number)

    def _is_operator(self) -> bool:
        """Whether Grid Engine lets our user change others' requests: as a manager or operator, past the verifier."""
        user = pwd.getpwuid(os.geteuid()).pw_name
        # Operators are queried second, since qconf fails if there are none.
        those = any(user in self._commands.run("qconf", words).split() for words in ("-sm", "-so"))
        settings = self._commands.run("qconf", "-sconf").replace("\\\n", " ")
        url, allowed = (re.search(rf"(?m)^{key}\s+(.*)$", settings) for key in ("jsv_url", "jsv_allowed_mod"))
        free = url is None or url[1].strip().lower() == "none"
        return those and (free or (allowed is not None and "l_hard" in allowed[1].replace(",", " ").split()))

    def _ended(self) -> Iterator[AccountedJob]:
        return read_accounting(self._accounting)

    def _listing(self) -> Listing:
        try:
            return read_listing(self._commands.xml(*WORDS))
        except ValueError as error:
            raise RuntimeError(f"{' '.join(WORDS)} prints unexpected output: {error}") from None

    def _comments(self, jobs: Sequence[ListedJob]) -> Mapping[str, str]:
        """The contexts of all jobs in the form of comments, by the jobs' numbers."""
        try:
            document = self._commands.xml("qstat", "-xml", "-j", "*")
        except RuntimeError as error:  # as where the last job has ended meanwhile
            _log.info("the contexts of the jobs of %s are unknown: %s", self.name, error)
            return {}
        return {each.findtext("JB_job_number", ""): comment(_context(each)) for each in document.iter("element")}


def _context(job: ElementTree.Element) -> str:
    pairs = job.findall("JB_context/context_list")
    return ",".join(f"{each.findtext('VA_variable', '')}={each.findtext('VA_value', '')}" for each in pairs)
