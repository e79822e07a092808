"""Jobs that have ended, as a scheduler accounts for them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass

from metasched.history.job_log import COMPLETED, FAILED, JobLog
from metasched.history.log_formats import read_log
from metasched.jobs import Fate, Kind

#: The columns of a job log.
_LOGGED = ("job", "submit_time", "run_time", "processors", "requested_time", "user", "name", "partition", "wait",
           "state")  # fmt: skip


@dataclass(frozen=True, slots=True)
class AccountedJob:
    """A job, or a task of an array, as it is accounted for.

    Parameters
    ----------
    number : its number, with that of its task where it is one of an array: ``7.2``.
    queue : the partition that it ran in.
    nodes : names of its nodes, empty where they are not all known.
    owner, name : its user's name, and its own.
    submitted, start, end : seconds since 1970, 0 where it never started.
    failed : whether its scheduler ended it, or could not run it.
    exit_status : its own.
    slots : processors that it had.
    time_limit : its own (s), None where it asked for none.
    kind : see :data:`metasched.jobs.Kind`.
    comment : what says its mark.
    numbers : in its arguments, as :mod:`metasched.history.argument_numbers` writes them.
    """

    number: str
    queue: str
    nodes: tuple[str, ...]
    owner: str
    name: str
    submitted: float
    start: float
    end: float
    failed: bool
    exit_status: int
    slots: int
    time_limit: float | None = None
    kind: Kind = ""
    comment: str = ""
    numbers: str = ""

    @property
    def completed(self) -> bool:
        """Whether it ended by itself and went well."""
        return not self.failed and self.exit_status == 0

    @property
    def fate(self) -> Fate:
        """How the job ended, in the form of the contract of schedulers: whether it succeeded, and its times."""
        submitted, start, end = (moment or None for moment in (self.submitted, self.start, self.end))
        return Fate(self.completed, submitted, start, self.slots, self.kind, ended=end, numbers=self.numbers)


def logged(jobs: Iterable[AccountedJob], since: float, until: float | None = None) -> JobLog | None:
    """The jobs that ended after a time (s), and up to another one if any, as a job log; None if there are none.

    >>> job = AccountedJob("7", "new", ("n2",), "ann", "cg", 100.0, 110.0, 118.0, False, 0, 5, 600.0)
    >>> log = logged([job], since=0.0)
    >>> log.run_time.tolist(), log.wait.tolist(), log.requested_time.tolist(), log.named("user")
    ([8.0], [10.0], [600.0], ['ann'])
    >>> [logged([job], since, until) is None for since, until in ((118.0, None), (0.0, 118.0), (0.0, 117.0))]
    [True, False, True]
    """
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(_LOGGED)
    for job in jobs:
        if job.start > 0 and max(since, job.start - 1.0) < job.end <= (math.inf if until is None else until):
            table.writerow(
                (
                    *(job.number, job.submitted, job.end - job.start, job.slots, job.time_limit, job.owner),
                    *(" ".join(job.name.split()), job.queue, job.start - job.submitted),
                    COMPLETED if job.completed else FAILED,
                )
            )
    lines = written.getvalue().split("\n")
    return read_log(lines) if len(lines) > 2 else None
