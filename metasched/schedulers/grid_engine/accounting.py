"""Jobs that have ended, from Grid Engine's accounting file, which qacct reads too: see its page accounting(5).

qacct reads the whole file, which on a busy site has gigabytes; here only its end is read.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from metasched.history.job_log import COMPLETED, FAILED, JobLog
from metasched.history.log_formats import read_log
from metasched.schedulers.grid_engine.listing import seconds

#: Bytes at the end of the file that are read.
MOST_READ = 32 * 1024 * 1024
#: Fields of a line at least: the requests among them may hold colons of their own. The process of a parallel job that a
#: line is about, NONE where it is about the whole job, is counted from the end.
_FIELDS, _PROCESS = 45, -4
#: Where the requests stand in it, and the time limit among them.
_REQUESTS, _LIMIT = slice(39, -5), re.compile(r"(?:^|[ ,])h_rt=([\d:]+)")


@dataclass(frozen=True, slots=True)
class Accounted:
    """A job, or a task of an array, as it is accounted for.

    Parameters
    ----------
    number : its number, with that of its task where it is one of an array: ``7.2``.
    queue, host : where it ran; the first of its hosts where it had several.
    owner, name : its user's name, and its own.
    submitted, start, end : seconds since 1970, 0 where it never started.
    failed : why it failed before, during or after its run, 0 where it did not.
    exit_status : its own.
    environment : its parallel environment, NONE where it had none.
    slots : how many it had.
    time_limit : its own (s), None where it asked for none.
    """

    number: str
    queue: str
    host: str
    owner: str
    name: str
    submitted: float
    start: float
    end: float
    failed: int
    exit_status: int
    environment: str
    slots: int
    time_limit: float | None = None

    @property
    def completed(self) -> bool:
        """Whether it ended by itself and went well."""
        return self.failed == 0 and self.exit_status == 0


def read_line(line: str) -> Accounted | None:
    """The job of a line; None for comments, lines that are not whole, and the processes of a parallel job.

    Examples
    --------
    >>> line = "new:n2:root:ann:cg:7:sge:0:100:110:118:0:0:8" + 17 * ":0" + ":NONE:staff:mpi:5:0:0:0:0"
    >>> line += ":-pe mpi 5 -l h_rt=1:0:0:0:NONE:0:0:0"
    >>> job = read_line(line)
    >>> job.number, job.host, job.end - job.start, job.environment, job.slots, job.completed, job.time_limit
    ('7', 'n2', 8.0, 'mpi', 5, True, 3600.0)
    """
    part = line.rstrip("\n").split(":")
    if line.startswith("#") or len(part) < _FIELDS or part[_PROCESS] != "NONE":
        return None
    limit = _LIMIT.search(":".join(part[_REQUESTS]))
    try:
        task = int(part[35])
        return Accounted(
            f"{int(part[5])}.{task}" if task else f"{int(part[5])}", part[0], part[1], part[3], part[4],
            float(part[8]), float(part[9]), float(part[10]), int(part[11]), int(part[12]), part[33], int(part[34]),
            seconds(limit[1]) if limit else None,
        )  # fmt: skip
    except ValueError:
        return None


def read_accounting(path: Path) -> Iterator[Accounted]:
    """The jobs in the last part of an accounting file, as they ended.

    Raises
    ------
    RuntimeError
        When it cannot be read; no file at all is one without jobs.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_READ))
            text = file.read(MOST_READ).decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RuntimeError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    lines = text.split("\n")[:-1]
    for line in lines[1:] if size > MOST_READ else lines:
        if (job := read_line(line)) is not None:
            yield job


def logged(jobs: Iterable[Accounted], since: float) -> JobLog | None:
    """The jobs that ended after a time (s), as a job log; None where there are none.

    Examples
    --------
    >>> job = Accounted("7", "new", "n2", "ann", "cg", 100.0, 110.0, 118.0, 0, 0, "mpi", 5, 600.0)
    >>> log = logged([job], since=0.0)
    >>> log.run_time.tolist(), log.wait.tolist(), log.requested_time.tolist(), log.named("user")
    ([8.0], [10.0], [600.0], ['ann'])
    >>> logged([job], since=118.0) is None
    True
    """
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(_LOGGED)
    for job in jobs:
        if job.start > 0 and job.end > max(since, job.start - 1.0):
            table.writerow(
                (
                    *(job.number, job.submitted, job.end - job.start, job.slots, job.time_limit, job.owner),
                    *(" ".join(job.name.split()), job.queue, job.start - job.submitted),
                    COMPLETED if job.completed else FAILED,
                )
            )
    lines = written.getvalue().split("\n")
    return read_log(lines) if len(lines) > 2 else None


_LOGGED = (
    "job",
    "submit_time",
    "run_time",
    "processors",
    "requested_time",
    "user",
    "name",
    "partition",
    "wait",
    "state",
)
