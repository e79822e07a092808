"""A Slurm cluster as the daemon knows it: its partitions now, and its jobs that ended while nobody listened."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metasched.placement.cluster import ClusterState
from metasched.placement.names import unfold
from metasched.placement.partition import Partition
from metasched.placement.running import StartedJob
from metasched.placement.slurm import cluster_from_slurm
from metasched.placement.waits import QueueWait
from metasched.records import InputError
from metasched.schedulers.slurm.commands import PATIENCE, Commands
from metasched.schedulers.slurm.queue import FORMAT, queue_waits, seconds
from metasched.store.jobs import EndedJob, Fate, plain, read_mark

_log = logging.getLogger(__name__)

#: States in which a job has ended, and the exit status of those that Slurm ended itself.
ENDED = {"COMPLETED": None, "FAILED": None, "CANCELLED": 143, "TIMEOUT": 143, "OUT_OF_MEMORY": 137, "NODE_FAIL": 143,
         "PREEMPTED": 143, "DEADLINE": 143, "BOOT_FAIL": 143}  # fmt: skip
_ACCOUNTED = "JobIDRaw,Partition,NodeList,AllocCPUS,Start,End,State,ExitCode,UID,Submit,Comment"


class SlurmSource:
    """One Slurm cluster.

    Parameters
    ----------
    name : the cluster's name, in placements and in runs.
    partitions : names of the partitions that jobs may be sent to, all where empty.
    platform : what its models are kept by; the name where empty.
    configuration : path of its slurm.conf, empty for the usual one.
    patience : how long a command may take (s).
    """

    def __init__(
        self,
        name: str,
        partitions: Sequence[str] = (),
        *,
        platform: str = "",
        configuration: str = "",
        patience: float = PATIENCE,
    ) -> None:
        self.name = name
        self._wanted = tuple(partitions)
        self._platform = platform or name
        self._commands = Commands(configuration, patience)
        beside = Path(configuration or "/etc/slurm/slurm.conf").parent / "topology.conf"
        self._topology = beside.read_text(encoding="utf-8") if beside.is_file() else None

    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now, each with the processors that are free on its nodes.

        Raises
        ------
        RuntimeError
            When Slurm does not answer.
        """
        sinfo = self._commands.json("sinfo", "--json")
        limits = {row[0]: seconds(row[1]) for row in self._commands.rows("sinfo", "--noheader", "--format=%R|%l")}
        missing = [name for name in self._wanted if name not in limits]
        if missing:
            raise RuntimeError(f"no partition {missing[0]}, expected one of {', '.join(sorted(limits))}")
        states = {
            name: cluster_from_slurm(f"{self.name}/{name}", sinfo, self._topology, partition=name)
            for name in limits
            if not self._wanted or name in self._wanted
        }
        waits = self._waits(states)
        return [
            Partition(
                replace(state, queue_wait=waits.get(name, state.queue_wait)),
                self._platform,
                self.name,
                name,
                limits[name],
            )
            for name, state in states.items()
        ]

    def waits(self) -> Mapping[str, QueueWait]:
        """How long a job would wait in each partition, those where nobody waits yet too.

        Raises
        ------
        RuntimeError
            When Slurm does not answer.
        """
        free = {each.name: int(each.state.processors[each.state.up].sum()) for each in self.partitions()}
        return queue_waits(self._queue(), free, everywhere=True)

    def _queue(self) -> Sequence[Sequence[str]]:
        return self._commands.rows(
            "squeue", "--noheader", "--states=running,pending", "--sort=-p,i", f"--format={FORMAT}"
        )

    def _waits(self, states: Mapping[str, ClusterState]) -> Mapping[str, QueueWait]:
        """The wait in the queue of each partition; none is known where Slurm does not tell of its queue."""
        free = {name: int(state.processors[state.up].sum()) for name, state in states.items()}
        try:
            rows = self._queue()
        except RuntimeError as error:
            _log.warning("the queue of %s is not known: %s", self.name, error)
            return {}
        return queue_waits(rows, free)

    def running(self) -> Sequence[StartedJob]:
        """The jobs that run now, each on processors of its own, as many on every node as it has on average.

        Raises
        ------
        RuntimeError
            When Slurm does not answer.
        """
        rows = self._commands.rows("squeue", "--noheader", "--states=running", "--format=%N|%C|%S|%k")
        now = time.time()
        return [job for row in rows if (job := _started(row, now)) is not None]

    def fates(self, jobs: Sequence[str]) -> Mapping[str, Fate]:
        """What became of each of these jobs that the controller remembers.

        Raises
        ------
        RuntimeError
            When Slurm does not answer.
        """
        rows = self._commands.rows(
            "squeue", "--noheader", "--states=all", f"--jobs={','.join(jobs)}", "--format=%A|%T|%V"
        )
        return {
            job: Fate(
                state in ("COMPLETED", "FAILED") if state in ENDED else None,
                float(submitted) if submitted.isdecimal() else None,
            )
            for job, state, submitted in rows
        }

    def finished(self, since: float) -> Sequence[EndedJob]:
        """Jobs that ended after a time, from Slurm's accounting; where it keeps none, those the controller remembers.

        Raises
        ------
        RuntimeError
            When Slurm does not answer.
        """
        try:
            found = [*self._accounted(since)]
        except RuntimeError:
            found = [*self._remembered(since)]
        return sorted(found, key=lambda job: job.end)

    def _accounted(self, since: float) -> Iterator[EndedJob]:
        rows = self._commands.rows(
            "sacct", "--allusers", "--allocations", "--noheader", "--parsable2", f"--starttime={int(since)}",
            f"--state={','.join(ENDED)}", f"--format={_ACCOUNTED}",
        )  # fmt: skip
        for row in rows:
            # A comment may hold bars itself.
            job, partition, nodes, processors, start, end, state, status, user, submitted = row[:10]
            yield from self._job(
                job, partition, nodes, processors, start, end, state.split()[0], _status(status), "|".join(row[10:]),
                user, submitted,
            )  # fmt: skip

    def _remembered(self, since: float) -> Iterator[EndedJob]:
        jobs: list[Mapping[str, Any]] = self._commands.json("squeue", "--json", "--states=all")["jobs"]
        for job in jobs:
            if (job.get("end_time") or 0) > since:
                # The wait status of a process: its exit status in the high byte, its signal in the low one.
                code = int(job.get("exit_code") or 0)
                yield from self._job(
                    job["job_id"], job["partition"], job["nodes"], job["cpus"], job["start_time"], job["end_time"],
                    job["job_state"], 128 + (code & 0x7F) if code & 0x7F else code >> 8, job.get("comment") or "",
                    job.get("user_id") or 0, job.get("submit_time") or "",
                    plain(str(job.get("name") or "").encode("utf-8", "surrogateescape")),
                )  # fmt: skip

    def _job(
        self, job: object, partition: str, nodes: str, processors: object, start: object, end: object, state: str,
        status: int, comment: str, user: object, submitted: object, name: str = "",
    ) -> Iterator[EndedJob]:  # fmt: skip
        """The job, if it ended, ran, and is told of in full."""
        try:
            if state in ENDED and float(str(end)) > float(str(start)) > 0:
                yield EndedJob(
                    scheduler=self.name,
                    job=str(job),
                    comment=comment,
                    partition=partition,
                    nodes=tuple(unfold(nodes, where="nodes")),
                    processors=int(str(processors)) or None,
                    start=float(str(start)),
                    end=float(str(end)),
                    exit_status=status or ENDED[state] or 0,
                    user=str(user),
                    name=name,
                    submitted=float(str(submitted)) if str(submitted).isdecimal() else None,
                )
        except (InputError, ValueError):
            return


def _started(row: Sequence[str], now: float) -> StartedJob | None:
    """The job in a row of nodes, processors, start and comment, which may hold bars itself; None where it is not whole.

    Examples
    --------
    >>> _started(["n[1-2]", "5", "100", "metasched:app=cg,n=1400"], 160.0)
    StartedJob(nodes=('n1', 'n2'), processors=(3, 2), running_for=60.0, application='cg', problem_size=1400.0, \
dedicated=True)
    """
    try:
        nodes, processors, start = row[:3]
        names = tuple(unfold(nodes, where="nodes"))
        each, more = divmod(int(processors), len(names))
        taken = tuple(max(each + (index < more), 1) for index in range(len(names)))
        running_for = max(now - float(start), 0.0)
    except (InputError, ValueError, ZeroDivisionError):
        return None
    mark = read_mark("|".join(row[3:]))
    if mark is None:
        return StartedJob(names, taken, running_for)
    return StartedJob(names, taken, running_for, mark.application, mark.problem_size)


def _status(text: str) -> int:
    status, _, signal = text.partition(":")
    return 128 + int(signal) if signal not in ("", "0") else int(status or 0)
