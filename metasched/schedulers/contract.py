"""The contract of batch schedulers, for the daemon and for submitting jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from metasched.history.job_log import JobLog
from metasched.history.queue import QueuedJob
from metasched.jobs import EndedJob, Fate
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.schedulers.submission import JobRequest, Submission


@dataclass(frozen=True, slots=True)
class BoundJob:
    """A job that waits and may start on certain nodes only.

    Parameters
    ----------
    number : its number for the scheduler.
    placement : the uid of the placement that its comment names.
    nodes : names of the nodes.
    partition : the scheduler's name of the partition, or of several that it waits for, joined by commas.
    since : when it was submitted (s since 1970), as its scheduler says by its own clock.
    time_limit : what it may run now (s), infinite without a limit, 0 where that is not known.
    most_nodes : how many nodes it may have now, None where that is not known.
    """

    number: str
    placement: str
    nodes: frozenset[str]
    partition: str
    since: float
    time_limit: float = 0.0
    most_nodes: int | None = None


@runtime_checkable
class MovesJobs(Protocol):
    """A scheduler that can put a running job back into its queue, to run elsewhere from its last checkpoint."""

    name: str

    def move(self, number: str, nodes: Sequence[str], partition: str, comment: str) -> None:
        """Stop a running job and let it start on other nodes.

        Raises
        ------
        RuntimeError
            When the scheduler does not do so; the job then waits or runs as it would have, never held for good.
        """


@runtime_checkable
class KnowsProcessorTime(Protocol):
    """A scheduler whose accounting records the processor time of jobs."""

    name: str

    def processor_times(self, jobs: Collection[str]) -> Mapping[str, float]:
        """The processor time that each of these jobs used on all its nodes (s); those without a record are missing.

        Raises
        ------
        RuntimeError : when the scheduler does not answer.
        """


@runtime_checkable
class RecordsFailures(Protocol):
    """A scheduler whose accounting records which nodes failed."""

    name: str

    def learn_failures(self) -> None:
        """Learn from these records how often a node fails; partitions say so from then on.

        Raises
        ------
        RuntimeError : when the scheduler does not answer; what was learned before holds then.
        """


class Source(Protocol):
    """A cluster with a batch scheduler. Its answers may take seconds, so they are read in advance and cached.

    What cannot be learned now, but perhaps later, raises RuntimeError.
    """

    name: str
    #: Which scheduler it is: those of one kind take the same words for a job.
    kind: str

    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now."""

    def running(self) -> Sequence[StartedJob]:
        """The jobs that run now, each with its nodes."""

    def queue(self) -> Sequence[QueuedJob]:
        """The jobs that run and wait, those that wait in the order of their priority."""

    def accounted(self, since: float, until: float | None = None) -> JobLog | None:
        """All jobs that ended in a period, by accounting; None where there are none, or no accounting.

        Parameters
        ----------
        since, until : begin and end of the period, seconds since 1970; until now where None.
        """

    def bound(self) -> Sequence[BoundJob]:
        """The jobs with a placement in their comment that wait for certain nodes."""

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str] = ()) -> None:
        """Let a waiting job start on any nodes of its partition, or of any of several.

        Parameters
        ----------
        number : the job's.
        time_limit : what it may run there (s), None where there is no limit.
        nodes : how many nodes it may have at most, None to leave their number as it is.
        partitions : where it may run, its own among them, as far as its scheduler takes several; its own where empty.

        Raises
        ------
        RuntimeError : when the scheduler does not let it go.
        """

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        """How each of these jobs ended; those that the scheduler no longer knows are missing."""

    def finished(self, since: float) -> Sequence[EndedJob]:
        """Jobs that ended after a time (s), from the scheduler's own records."""

    def asked(self, words: Sequence[str]) -> JobRequest:
        """The requests as options of its submit command, and as directives of the script."""

    def submission(self, words: Sequence[str], partition: str = "") -> Submission:
        """How a job is handed over.

        Parameters
        ----------
        words : of its submit command, without the command.
        partition : where the job is to run, in the scheduler's words; as the words say where it is empty.
        """
