"""A Slurm cluster as a source of the daemon: its partitions, and jobs that ended while the daemon was down."""

from __future__ import annotations

import logging
import math
import os
import pwd
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from metasched.blocks.entry import Entry
from metasched.blocks.failures import FailureRate
from metasched.history.job_log import JobLog
from metasched.history.log_formats import read_log
from metasched.history.queue import QueuedJob
from metasched.jobs import EndedJob, Fate, placement_in
from metasched.node_names import fold, unfold
from metasched.placement.clusters.from_slurm import cluster_from_slurm, processors_of_node
from metasched.placement.clusters.memory_limits import MemoryLimits
from metasched.placement.clusters.partition import Holder, JobLimits, Partition
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.records import InputError
from metasched.schedulers.command_cluster import CommandCluster
from metasched.schedulers.commands import TIMEOUT
from metasched.schedulers.contract import BoundJob
from metasched.schedulers.slurm.admission import admits
from metasched.schedulers.slurm.cells import NONE, count_in, seconds_in
from metasched.schedulers.slurm.commands import SlurmCommands, period
from metasched.schedulers.slurm.job_devices import JobDevices
from metasched.schedulers.slurm.job_energies import JobEnergies
from metasched.schedulers.slurm.job_rows import (
    ACCOUNTED,
    AGAIN,
    CONTROLLED,
    ENDED,
    RESIZED,
    STARTED,
    accounted_fate,
    accounted_job,
    accounted_jobs,
    ended_job,
    fate,
    siblings,
    started_job,
)
from metasched.schedulers.slurm.kept_memory import kept_memory, unnamed, with_kept_memory
from metasched.schedulers.slurm.limits import OF_ASSOCIATIONS, OF_QOS, AccountingLimits, read_limits
from metasched.schedulers.slurm.node_failures import failure_rate
from metasched.schedulers.slurm.queue import COLUMNS, queued_job
from metasched.schedulers.slurm.remembered import CONFIGURED_FOR, Remembered
from metasched.schedulers.slurm.restarts import ended_meanwhile
from metasched.schedulers.slurm.submission import asked_for, placed
from metasched.slurm_times import span
from monitors.sources.slurm import listed_nodes

_log = logging.getLogger(__name__)

#: Time in which a requeued job must end (s): Slurm kills it after KillWait, and nodes clean up.
HELD_WITHIN = 120.0
#: For how long limits of the accounting are cached (s): they change rarely.
LIMITS_FOR = 60.0
#: Node seconds from which on records tell how often nodes fail: a year of one node. Of a cluster just installed, where
#: nodes are taken down while it is set up, they would tell that hardly any job can finish.
TELLING = 365 * 86_400.0
#: Jobs that the accounting is asked for at once at most.
MOST_NAMED = 1000
#: For how long a job that the controller has forgotten may be missing in the accounting (s): the controller tells it
#: of jobs later where it was away.
ACCOUNTED_WITHIN = 600.0
#: What a job log is made of.
_LOGGED = ("JobIDRaw", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End", "ElapsedRaw",
           "AllocCPUS", "TimelimitRaw", "State", "JobName", "SubmitLine")  # fmt: skip


class SlurmSource(CommandCluster):
    """One Slurm cluster, with the parameters of :class:`CommandCluster`.

    Parameters
    ----------
    configuration : path of its slurm.conf, empty for the usual one.
    hardware : of its nodes, None where it is not known.
    timeout : how long a command may take (s).
    """

    kind = "slurm"
    command = "sbatch"
    _commands: SlurmCommands
    _asked_for, _placed = staticmethod(asked_for), staticmethod(placed)

    def __init__(
        self,
        name: str,
        partitions: Sequence[str] = (),
        *,
        platform: str = "",
        configuration: str = "",
        hardware: Entry | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__(name, partitions, platform, SlurmCommands.of(configuration, timeout))
        self._hardware = hardware
        self._configuration = Remembered(self._configured, CONFIGURED_FOR)
        self._devices = JobDevices(self._commands, self._configuration)
        self._energies = JobEnergies(name, self._commands, self._configuration, hardware)
        self._limits = Remembered(self._accounted_limits, LIMITS_FOR)
        self._described = Remembered(self._partitions_described, LIMITS_FOR)
        self._kept_memory = Remembered(self._memory_kept, CONFIGURED_FOR)
        self._failures: FailureRate | None = None
        self._missing: dict[str, float] = {}
        self._cpus: dict[str, int] = {}
        self._switches = Path(configuration or "/etc/slurm/slurm.conf").parent / "topology.conf"

    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now, each with the processors that are free on its nodes."""
        listed = listed_nodes(self._commands.json)
        limits = {
            row["PartitionName"]: (span(row["Time"]), span(row["DefaultTime"]))
            for row in self._commands.table(("PartitionName", "Time", "DefaultTime"), "sinfo")
        }
        missing = [name for name in self._wanted if name not in limits]
        if missing:
            raise RuntimeError(f"no partition {missing[0]}, expected one of {', '.join(sorted(limits))}")
        accounted = self._limits.last(AccountingLimits(), f"what the accounting of {self.name} allows jobs")
        described, configured = self._partitions_now(), self._configuration.last({}, f"the settings of {self.name}")
        counts_memory = "MEMORY" in configured.get("SelectTypeParameters", "").upper()
        if counts_memory and unnamed(listed["nodes"]):
            kept = self._kept_memory.last({}, f"the memory that nodes of {self.name} keep for the system")
            listed = with_kept_memory(listed, kept)
        cpus = self._cpus = {node["name"]: processors_of_node(node) for node in listed["nodes"]}
        topology = self._topology()
        found = []
        # A partition may have no nodes, and a controller knows none for some seconds after its start.
        with_nodes = {name for node in listed["nodes"] for name in node.get("partitions", ())}
        for name, (longest, default) in limits.items():
            if name not in with_nodes or (self._wanted and name not in self._wanted):
                continue
            own = described.get(name, {})
            state = cluster_from_slurm(f"{self.name}/{name}", listed, topology, partition=name)
            most = count_in(own.get("MaxCPUsPerNode", "")) or max(cpus.values(), default=0)
            per_node, per_processor = _memory("Def", own, configured) if counts_memory else (None, None)
            found.append(
                Partition(
                    replace(
                        state,
                        hardware=self._hardware,
                        failures=self._failures,
                        processors=np.minimum(state.processors, most),
                    ),
                    self._platform,
                    self.name,
                    name,
                    longest,
                    self._may_release(),
                    default or longest,
                    sum(min(cpus[n], most) for n, up in zip(state.nodes, state.up.tolist(), strict=True) if up),
                    _limits_in(name, own, accounted),
                    per_node,
                    per_processor,
                    counts_memory,
                    MemoryLimits(*(limit or math.inf for limit in _memory("Max", own, configured))),
                )
            )
        if not found:
            raise RuntimeError(f"no partition has nodes, of {', '.join(sorted(self._wanted or limits)) or 'none'}")
        return found

    def learn_failures(self) -> None:
        """Learn how often a node fails, where there is an accounting; see the contract.

        Records that hardly tell anything count for nothing.
        """
        if not self._has_accounting():
            return
        with suppress(InputError):  # records that go back no time at all
            found = failure_rate(self._commands)
            self._failures = found if found.exposure >= TELLING else None

    def _topology(self) -> str | None:
        """The switches as they are described now, since nodes come and go while the daemon runs; None without any.

        From release 25.05 on Slurm ignores the file beside a ``topology.yaml``, which is not read here.
        """
        if not self._switches.is_file() or self._switches.with_suffix(".yaml").exists():
            return None
        try:
            return self._switches.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise RuntimeError(f"{self._switches} cannot be read: {error}") from None

    def queue(self) -> Sequence[QueuedJob]:
        """The jobs that run and wait; see the contract."""
        rows = self._commands.table(COLUMNS, "squeue", "--states=running,configuring,pending", "--sort=-p,i")
        found = [job for row in rows if (job := queued_job(row)) is not None]
        tiers = {name: count_in(row.get("PriorityTier", "")) or 0 for name, row in self._partitions_now().items()}
        # Slurm comes to the jobs of a partition of a lower tier after all others, whatever their priority.
        return sorted(found, key=lambda job: -max(tiers.get(name, 0) for name in job.partitions))

    def running(self) -> Sequence[StartedJob]:
        """The jobs that run now, each on processors of its own, as many on every node as it has on average."""
        rows = self._commands.table(STARTED, "squeue", "--states=running")
        now = time.time()
        found = [started_job(row, now) for row in rows]
        return [
            replace(job, devices=self._devices.of(row) or ())
            for row, job in zip(rows, found, strict=True)
            if job is not None
        ]

    def accounted(self, since: float, until: float | None = None) -> JobLog | None:
        """All jobs that ended in a period (s); see the contract."""
        if not self._has_accounting():
            return None
        words = ("sacct", "--allusers", "--allocations", *period(since, until), f"--state={','.join(ENDED)}")
        rows = self._commands.table(_LOGGED, *words)
        mark = f"|{secrets.randbits(64)}|"  # names and lines may hold whatever else separates columns
        try:
            return read_log(
                mark.join(" ".join(cell.split()) for cell in row) for row in (_LOGGED, *map(dict.values, rows))
            )
        except InputError:  # nothing ended
            return None

    def _configured(self) -> Mapping[str, str]:
        """Slurm's configuration, by the names of ``scontrol show config``."""
        lines = self._commands.run("scontrol", "show", "config").splitlines()
        return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}

    def _controller_started(self) -> float | None:
        """When the controller that runs was started (s); None where it does not tell."""
        try:
            return seconds_in(self._configured().get("BOOT_TIME", ""))
        except RuntimeError as error:
            _log.info("when the controller of %s was started is unknown: %s", self.name, error)
            return None

    def _has_accounting(self) -> bool:
        return self._configuration.now().get("AccountingStorageType") == "accounting_storage/slurmdbd"

    def _accounted_limits(self) -> AccountingLimits:
        """The limits of the accounting, if Slurm enforces them."""
        if not (self._has_accounting() and self._enforces()):
            return AccountingLimits()
        show, cluster = ("--noheader", "--parsable2", "show"), self._configuration.now().get("ClusterName", "")
        return read_limits(
            self._commands.run("sacctmgr", *show, "qos", f"format={','.join(OF_QOS)}"),
            self._commands.run("sacctmgr", *show, "associations", f"cluster={cluster}",
                               f"format={','.join(OF_ASSOCIATIONS)}"),
        )  # fmt: skip

    def _enforces(self) -> bool:
        """Whether Slurm enforces the limits of the accounting; assumed if its configuration does not say so."""
        words = self._configuration.now().get("AccountingStorageEnforce")
        return words is None or not {"limits", "safe", "all"}.isdisjoint(words.lower().split(","))

    def _partitions_now(self) -> Mapping[str, Mapping[str, str]]:
        """What is known of each partition, nothing while Slurm does not tell."""
        return self._described.last({}, f"what the partitions of {self.name} allow jobs")

    def _memory_kept(self) -> Mapping[str, int]:
        return kept_memory(self._commands.run("scontrol", "--oneliner", "show", "nodes"))

    def _partitions_described(self) -> Mapping[str, Mapping[str, str]]:
        """What ``scontrol show partition`` tells of each."""
        lines = self._commands.run("scontrol", "--oneliner", "show", "partition").splitlines()
        rows = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
        return {row["PartitionName"]: row for row in rows if "PartitionName" in row}

    def bound(self) -> Sequence[BoundJob]:
        """The jobs with a placement in their comment that wait for certain nodes."""
        rows = self._commands.table(
            ("JobID", "ReqNodes", "Partition", "SubmitTime", "TimeLimit", "MaxNodes", "Comment"), "squeue",
            "--states=pending",
        )  # fmt: skip
        now, found = time.time(), []
        for row in rows:
            placement = placement_in(row["Comment"])
            if not placement or row["ReqNodes"] in NONE:
                continue
            try:
                nodes = frozenset(unfold(row["ReqNodes"], where="nodes"))
            except InputError:
                continue
            since = seconds_in(row["SubmitTime"]) or now
            limit = math.inf if row["TimeLimit"] == "UNLIMITED" else span(row["TimeLimit"]) or 0.0
            most = count_in(row["MaxNodes"]) or None
            found.append(BoundJob(row["JobID"], placement, nodes, row["Partition"], since, limit, most))
        return found

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str] = ()) -> None:
        """Let a waiting job start on any nodes of its partition, or of any of several. The limit is in s."""
        limit = "UNLIMITED" if time_limit is None else f"{math.ceil(time_limit / 60.0)}"
        words = [f"JobId={number}", "ReqNodeList=", f"TimeLimit={limit}"]
        words += [f"NumNodes=1-{nodes}"] if nodes is not None else []
        words += [f"Partition={','.join(partitions)}"] if partitions else []
        self._commands.run("scontrol", "update", *words)

    def move(self, number: str, nodes: Sequence[str], partition: str, comment: str) -> None:
        """Stop a running job, which gets a signal to write its last checkpoint, and let it start on other nodes."""
        # It is held, so that it does not start on its old nodes before the new ones are set.
        self._commands.run("scontrol", "requeuehold", number)
        try:
            self._until_held(number)
            self._commands.run(
                "scontrol", "update", f"JobId={number}", f"Partition={partition}", f"ReqNodeList={fold(nodes)}",
                f"NumNodes={len(nodes)}", f"Comment={comment}", "StartTime=now",
            )  # fmt: skip
        finally:
            self._commands.run("scontrol", "release", number)

    def _until_held(self, number: str) -> None:
        """Wait until a requeued job has ended on its old nodes."""
        end = time.monotonic() + HELD_WITHIN
        while time.monotonic() < end:
            rows = self._commands.table(("State",), "squeue", "--states=all", f"--jobs={number}")
            if rows and rows[0]["State"].strip() in AGAIN:
                return
            time.sleep(0.5)
        raise RuntimeError(f"job {number} does not end within {HELD_WITHIN:g} s")

    def _is_operator(self) -> bool:
        """Whether Slurm lets our user change others' jobs: as root, SlurmUser, or an operator in the accounting."""
        owner = re.search(r"\((\d+)\)", self._configuration.now().get("SlurmUser", ""))
        own = os.geteuid() in (0, int(owner[1]) if owner else 0)
        if own or not self._has_accounting():
            return own
        asked = self._commands.run("sacctmgr", "--noheader", "--parsable2", "show", "user",
                                   pwd.getpwuid(os.geteuid()).pw_name, "format=adminlevel")  # fmt: skip
        return asked.strip() in ("Operator", "Administrator")

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        """How each of these jobs ended, by the controller, else by the accounting."""
        # All jobs are asked for: where one alone is named that the controller has forgotten, squeue fails.
        rows = self._commands.table(CONTROLLED, "squeue", "--states=all")
        beside = siblings(rows, jobs)
        found = {
            row["JobID"]: replace(fate(row, self._devices.of(row)), siblings=beside.get(row["JobID"], ()))
            for row in rows
            if row["JobID"] in jobs
        }
        found |= self._accounted_fates([job for job in jobs if job not in found])
        controller = self._controller_started() if found else None
        for job, fated in found.items():
            if ended_meanwhile(fated.started, fated.ended, controller):
                found[job] = replace(fated, kind="interrupted")
        ended = [job for job, fate in found.items() if fate.completed][:MOST_NAMED]
        for job, joules in self._energies.of(ended, self._cpus).items():
            found[job] = replace(found[job], energy=joules, energy_covers=self._energies.coverage.covers)
        return found

    def _accounted_fates(self, forgotten: Sequence[str]) -> Mapping[str, Fate]:
        """How jobs ended that the controller has forgotten; open where the accounting may yet tell, else missing."""
        if not forgotten:
            return {}
        asked, later = forgotten[:MOST_NAMED], forgotten[MOST_NAMED:]
        found = dict.fromkeys(later, Fate(completed=None))
        try:
            rows = self._accounting(f"--jobs={','.join(asked)}")
        except RuntimeError as error:
            _log.info("%s does not tell of %d jobs that its controller has forgotten: %s", self.name, len(asked), error)
            return found | dict.fromkeys(asked, Fate(completed=None))
        found |= {row["JobIDRaw"]: accounted_fate(row, self._devices.accounted(row)) for row in rows}
        missing, now = [job for job in asked if job not in found], time.monotonic()
        if not (missing and self._has_accounting()):
            return found
        self._missing = {job: self._missing.get(job, now) for job in missing}
        awaited = [job for job, since in self._missing.items() if now - since < ACCOUNTED_WITHIN]
        return found | dict.fromkeys(awaited, Fate(completed=None))

    def processor_times(self, jobs: Collection[str]) -> Mapping[str, float]:
        """The processor time of jobs (s) by the accounting; see the contract."""
        if not jobs or not self._has_accounting():
            return {}
        known = self._energies.records(f"--jobs={','.join([*jobs][:MOST_NAMED])}")
        return {number: job.processor_time for number, job in known.items() if job.processor_time is not None}

    def finished(self, since: float) -> Sequence[EndedJob]:
        """Jobs that ended after a time: those the controller remembers, and older ones from the accounting, if any."""
        remembered = self._commands.table(CONTROLLED, "squeue", "--states=all")
        found = {row["JobID"]: ended_job(row, self.name, self._devices.of(row)) for row in remembered}
        accounted = self._accounting(*period(since), f"--state={','.join((*ENDED, RESIZED))}")
        beside = siblings(remembered, found)
        found = {number: job and replace(job, siblings=beside.get(number, ())) for number, job in found.items()}
        older = {row["JobIDRaw"]: accounted_job(row, self.name, self._devices.accounted(row)) for row in accounted}
        found = older | found
        controller = self._controller_started() if found else None
        jobs = sorted(
            (
                replace(job, kind="interrupted") if ended_meanwhile(job.start, job.end, controller) else job
                for job in found.values()
                if job is not None and job.end > since
            ),
            key=lambda job: job.end,
        )
        known = self._energies.of([job.job for job in jobs if job.exit_status == 0][-MOST_NAMED:], self._cpus)
        return [
            replace(job, energy=known[job.job], energy_covers=self._energies.coverage.covers)
            if job.job in known
            else job
            for job in jobs
        ]

    def _accounting(self, *words: str) -> list[dict[str, str]]:
        """What sacct tells of jobs, nothing where there is no accounting; RuntimeError where it does not answer."""
        try:
            rows = self._commands.table(ACCOUNTED, "sacct", "--allusers", "--allocations", *words)
        except RuntimeError:
            if self._has_accounting():
                raise
            return []
        return accounted_jobs(rows)


def _limits_in(name: str, described: Mapping[str, str], accounted: AccountingLimits) -> Callable[[Holder], JobLimits]:
    """What a job may have in a partition that ``scontrol show partition`` describes so."""
    qos, own = described.get("QoS", ""), count_in(described.get("MaxNodes", ""))
    fewest = max(count_in(described.get("MinNodes", "")) or 1, 1)

    def limits(holder: Holder) -> JobLimits:
        if not admits(described, holder):
            return JobLimits(processors=0)
        found = accounted.of(holder, name, qos)
        nodes = [limit for limit in (own, found.nodes) if limit is not None]
        return replace(found, nodes=min(nodes, default=None), fewest_nodes=fewest)

    return limits


def _memory(
    kind: str, partition: Mapping[str, str], configured: Mapping[str, str]
) -> tuple[float | None, float | None]:
    """What a job gets that states no memory (``Def``), or may request (``Max``), megabytes of a node or a processor.

    A partition that states one of them has neither of the whole cluster.
    """
    for fields in (partition, configured):
        per_node, per_processor = (count_in(fields.get(f"{kind}MemPer{of}", "")) or None for of in ("Node", "CPU"))
        if per_node or per_processor:
            return per_node, per_processor
    return None, None
