"""A scheduler of a page: what docs/schedulers.md says that a fourth one needs, and nothing more."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from metasched.history.job_log import JobLog
from metasched.history.queue import QueuedJob
from metasched.jobs import EndedJob, Fate
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.placement.clusters.state import ClusterState
from metasched.schedulers.contract import BoundJob
from metasched.schedulers.submission import JobRequest, Submission


@dataclass
class Toy:
    """One queue of four nodes; jobs are what a test puts into the lists. ``broken`` makes every question fail."""

    name: str = "toy"
    ended: list[EndedJob] = field(default_factory=list)
    waiting: list[BoundJob] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    broken: bool = False
    kind: str = "toy"

    def partitions(self) -> Sequence[Partition]:
        self._answer()
        state = ClusterState.make(
            f"{self.name}/main", ["t1", "t2", "t3", "t4"], processors=4, available_bandwidth=100.0
        )
        return [Partition(state, "east", self.name, "main", time_limit=3600.0, releases=True)]

    def running(self) -> Sequence[StartedJob]:
        self._answer()
        return []

    def queue(self) -> Sequence[QueuedJob]:
        self._answer()
        return []

    def accounted(self, since: float, until: float | None = None) -> JobLog | None:
        self._answer()
        return None

    def bound(self) -> Sequence[BoundJob]:
        self._answer()
        return self.waiting

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str] = ()) -> None:
        self._answer()
        self.released.append(number)

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        self._answer()
        return {
            each.job: Fate(each.exit_status == 0, each.submitted, each.start) for each in self.ended if each.job in jobs
        }

    def finished(self, since: float) -> Sequence[EndedJob]:
        self._answer()
        return [each for each in self.ended if each.end > since]

    def asked(self, words: Sequence[str]) -> JobRequest:
        return JobRequest(words[0], 2, ())

    def submission(self, words: Sequence[str], partition: str = "") -> Submission:
        return Submission(("echo", partition or "any", *words))

    def _answer(self) -> None:
        if self.broken:
            raise RuntimeError("the toy does not answer")


def ended(number: str, seconds: float = 20.0, *, exit_status: int = 0) -> EndedJob:
    """A job that ended just now, with the mark that its user gave it."""
    now = time.time()
    return EndedJob(
        "toy", number, "metasched:app=cg,n=900", "main", ("t1", "t2"), 2, now - seconds - 1.0, now - 1.0, exit_status,
        user="1000", submitted=now - seconds - 2.0,
    )  # fmt: skip
