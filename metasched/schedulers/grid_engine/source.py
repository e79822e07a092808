"""A cell of Grid Engine as the daemon knows it: its queues now, and its jobs that ended while nobody listened."""

from __future__ import annotations

import logging
import os
import pwd
import re
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from metasched.history.job_log import JobLog
from metasched.history.queue import QueuedJob
from metasched.jobs import EndedJob, Fate, Kind, plain, read_mark
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.placement.clusters.state import ClusterState
from metasched.schedulers.commands import TIMEOUT
from metasched.schedulers.contract import BoundJob
from metasched.schedulers.grid_engine.accounting import Accounted, logged, read_accounting
from metasched.schedulers.grid_engine.commands import Commands
from metasched.schedulers.grid_engine.listing import WORDS, Instance, Listing, read_listing
from metasched.schedulers.grid_engine.submission import asked_for, comment, placed
from metasched.schedulers.submission import Asked, Submission

_log = logging.getLogger(__name__)

#: Where Debian has SGE_ROOT.
ROOT = "/var/lib/gridengine"
#: What lets a job that was bound to hosts run on any.
ANYWHERE = "*"
#: How the hook names hosts: a pattern of their names, which is not refused where a host is gone.
_HOSTS = re.compile(r"[A-Za-z0-9._-]+(\|[A-Za-z0-9._-]+)+")


class GridEngineSource:
    """One cell of Grid Engine.

    Parameters
    ----------
    name : the cluster's name, in placements and in runs.
    partitions : names of the cluster queues that jobs may be sent to, all where empty.
    platform : what its models are kept by; the name where empty.
    root, cell : SGE_ROOT and SGE_CELL, empty for those of the environment, else the usual ones.
    timeout : how long a command may take (s).
    """

    kind = "grid_engine"

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
        self.name = name
        self._wanted = tuple(partitions)
        self._platform = platform or name
        self._commands = Commands(root, cell, timeout)
        self._operates: bool | None = None
        root = root or os.environ.get("SGE_ROOT", ROOT)
        self._accounting = Path(root) / (cell or os.environ.get("SGE_CELL", "default")) / "common" / "accounting"

    def partitions(self) -> Sequence[Partition]:
        """The cluster queues as they are now, each with the slots that are free on its hosts.

        Raises
        ------
        RuntimeError
            When Grid Engine does not answer.
        """
        listing = self._listing()
        missing = [name for name in self._wanted if name not in listing.queue_names()]
        if missing:
            raise RuntimeError(f"no queue {missing[0]}, expected one of {', '.join(listing.queue_names())}")
        busy = {each.host for each in listing.instances if each.used}
        queues: dict[str, list[Instance]] = defaultdict(list)
        for each in listing.instances:
            if not self._wanted or each.queue in self._wanted:
                queues[each.queue].append(each)
        return [self._partition(name, own, busy) for name, own in queues.items()]

    def _partition(self, name: str, own: Sequence[Instance], busy: Collection[str]) -> Partition:
        state = ClusterState.make(
            f"{self.name}/{name}",
            [each.host for each in own],
            processors=[max(0, each.slots - each.used) for each in own],
            memory=[each.memory for each in own],
            jobs=[int(each.host in busy) for each in own],
            up=[each.up for each in own],
        )
        limits = [each.time_limit for each in own if each.time_limit is not None]
        limit = min(limits, default=None)
        return Partition(state, self._platform, self.name, name, limit, self._may_release(), limit)

    def queue(self) -> Sequence[QueuedJob]:
        """The jobs that run and wait, those that wait in the order of their priority.

        Raises
        ------
        RuntimeError
            When Grid Engine does not answer.
        """
        return self._listing().queue(time.time())

    def running(self) -> Sequence[StartedJob]:
        """The jobs that run now, each on slots of its own.

        Raises
        ------
        RuntimeError
            When Grid Engine does not answer.
        """
        found, now = [], time.time()
        listing = self._listing()
        marks = self._marks() if listing.jobs else {}
        for job in listing.jobs:
            if not job.runs or job.since is None:
                continue
            ran, mark = max(now - job.since, 0.0), read_mark(marks.get(job.number.partition(".")[0], ""))
            nodes, slots = tuple(job.slots), tuple(job.slots.values())
            named = () if mark is None else (mark.application, mark.problem_size)
            found.append(StartedJob(nodes, slots, ran, *named))
        return found

    def accounted(self, since: float) -> JobLog | None:
        """All jobs that ended after a time (s), as the accounting file tells of them; None where it tells of none.

        Raises
        ------
        RuntimeError
            When the accounting cannot be read.
        """
        return logged(read_accounting(self._accounting), since)

    def bound(self) -> Sequence[BoundJob]:
        """The jobs with a placement in their context that wait for certain hosts.

        Raises
        ------
        RuntimeError
            When Grid Engine does not answer.
        """
        waiting = [job for job in self._listing().jobs if not job.runs and _HOSTS.fullmatch(_host(job.requests))]
        if not waiting:
            return []
        now, marks, found = time.time(), self._marks(), []
        for job in waiting:
            mark = read_mark(marks.get(job.number, ""))
            if mark is not None and mark.placement is not None:
                hosts = frozenset(_host(job.requests).split("|"))
                queue = job.queues[0] if job.queues else ""
                found.append(BoundJob(job.number, mark.placement, hosts, queue, now - (job.since or now)))
        return found

    def release(self, number: str, time_limit: float | None, nodes: int | None) -> None:
        """Let a waiting job start on any hosts of its queues; its other requests, and its time limit, stay.

        Raises
        ------
        RuntimeError
            When Grid Engine does not let it go.
        """
        kept = []
        for element in self._commands.xml("qstat", "-xml", "-j", number).iter("JB_hard_resource_list"):
            for each in element.iter("qstat_l_requests"):
                name, value = each.findtext("CE_name", ""), each.findtext("CE_stringval", "")
                if name != "hostname":
                    kept.append(f"{name}={value}")
        self._commands.run("qalter", "-l", ",".join([*kept, f"hostname={ANYWHERE}"]), number)

    def _may_release(self) -> bool:
        """Whether Grid Engine lets our user change others' requests: as a manager or operator, past the verifier."""
        if self._operates is None:
            try:
                user = pwd.getpwuid(os.geteuid()).pw_name
                # Operators are asked for second: where there are none qconf fails.
                those = any(user in self._commands.run("qconf", words).split() for words in ("-sm", "-so"))
                settings = self._commands.run("qconf", "-sconf").replace("\\\n", " ")
                url, allowed = (re.search(rf"(?m)^{key}\s+(.*)$", settings) for key in ("jsv_url", "jsv_allowed_mod"))
                free = url is None or url[1].strip().lower() == "none"
                free = free or (allowed is not None and "l_hard" in allowed[1].replace(",", " ").split())
                self._operates = those and free
            except (RuntimeError, KeyError) as error:
                _log.info("whether jobs of %s may be let go is not known: %s", self.name, error)
                return False
        return self._operates

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        """What became of each of these jobs, by the accounting; those that it does not tell of yet are not settled.

        Lines are written to it some seconds after a job has left the queues (``flush_time``), and none is ever removed.

        Raises
        ------
        RuntimeError
            When Grid Engine does not answer, or its accounting cannot be read.
        """
        there = {job.number for job in self._listing().jobs}
        found = {job.number: _fate(job) for job in read_accounting(self._accounting) if job.number in jobs}
        return {number: Fate(None) if number in there else found.get(number, Fate(None)) for number in jobs}

    def finished(self, since: float) -> Sequence[EndedJob]:
        """Jobs that ended after a time, from the accounting, which of several hosts names one: those are left out.

        Raises
        ------
        RuntimeError
            When the accounting cannot be read.
        """
        return [
            self._ended(job)
            for job in read_accounting(self._accounting)
            if job.end > max(since, job.start) and job.start > 0 and job.slots == 1
        ]

    def _ended(self, job: Accounted) -> EndedJob:
        return EndedJob(
            scheduler=self.name,
            job=job.number,
            comment="",
            partition=job.queue,
            nodes=(job.host,),
            processors=job.slots,
            start=job.start,
            end=job.end,
            exit_status=job.exit_status or int(not job.completed),
            user=_uid(job.owner),
            name=plain(job.name.encode()),
            submitted=job.submitted,
            kind=_fate(job).kind,
        )

    def asked(self, words: Sequence[str]) -> Asked:
        """What the words of a qsub command ask for, and the ``#$`` lines of its script."""
        return asked_for(words)

    def submission(self, words: Sequence[str], partition: str = "") -> Submission:
        """The qsub command of a job, with the queue that it is to have, as its words say where that is empty."""
        handed = placed(words, partition) if partition else words
        return Submission(("qsub", *handed), self._commands.environment)

    def _listing(self) -> Listing:
        try:
            return read_listing(self._commands.xml(*WORDS))
        except ValueError as error:
            raise RuntimeError(f"{' '.join(WORDS)} prints something else: {error}") from None

    def _marks(self) -> dict[str, str]:
        """What the contexts of all jobs say, spelt as comments are, by the jobs' numbers."""
        try:
            document = self._commands.xml("qstat", "-xml", "-j", "*")
        except RuntimeError as error:  # as where the last job has ended meanwhile
            _log.info("the jobs' contexts of %s are not known: %s", self.name, error)
            return {}
        return {each.findtext("JB_job_number", ""): comment(_context(each)) for each in document.iter("element")}


def _context(job: ElementTree.Element) -> str:
    pairs = job.findall("JB_context/context_list")
    return ",".join(f"{each.findtext('VA_variable', '')}={each.findtext('VA_value', '')}" for each in pairs)


def _host(requests: Mapping[str, str]) -> str:
    return requests.get("hostname", "")


def _fate(job: Accounted) -> Fate:
    kind: Kind = "array" if "." in job.number else ""
    return Fate(job.completed, job.submitted, job.start or None, job.slots, kind)


def _uid(owner: str) -> str:
    """The number of a user, as hooks tell it; the name where this host does not know it."""
    try:
        return str(pwd.getpwnam(owner).pw_uid)
    except KeyError:
        return owner
