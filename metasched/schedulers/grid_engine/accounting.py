"""Jobs that have ended, from Grid Engine's accounting file, which qacct reads too: see its page accounting(5).

qacct reads the whole file, which on a busy site has gigabytes; here only its end is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.durations import seconds
from metasched.store.files.whole_files import refusal

#: Bytes at the end of the file that are read.
MOST_READ = 32 * 1024 * 1024
#: Fields of a line at least: the requests among them may hold colons of their own. The process of a parallel job that a
#: line is about, NONE where it is about the whole job, is counted from the end.
_FIELDS, _PROCESS = 45, -4
#: Where the requests stand in it, and the time limit among them.
_REQUESTS, _LIMIT = slice(39, -5), re.compile(r"(?:^|[ ,])h_rt=([\d:]+)")


def read_line(line: str) -> AccountedJob | None:
    """The job of a line; None for comments, lines that are not whole, and the processes of a parallel job.

    >>> line = "new:n2:root:ann:cg:7:sge:0:100:110:118:0:0:8" + 17 * ":0" + ":NONE:staff:mpi:5:0:0:0:0"
    >>> line += ":-pe mpi 5 -l h_rt=1:0:0:0:NONE:0:0:0"
    >>> job = read_line(line)
    >>> job.number, job.nodes, job.end - job.start, job.slots, job.completed, job.time_limit
    ('7', (), 8.0, 5, True, 3600.0)
    """
    part = line.rstrip("\n").split(":")
    if line.startswith("#") or len(part) < _FIELDS or part[_PROCESS] != "NONE":
        return None
    limit = _LIMIT.search(":".join(part[_REQUESTS]))
    try:
        task, slots = int(part[35]), int(part[34])
        return AccountedJob(
            f"{int(part[5])}.{task}" if task else f"{int(part[5])}", part[0],
            # Of several hosts a line names the first.
            (part[1],) if slots == 1 else (), part[3], part[4], float(part[8]), float(part[9]), float(part[10]),
            int(part[11]) != 0, int(part[12]), slots, seconds(limit[1]) if limit else None, "array" if task else "",
        )  # fmt: skip
    except ValueError:
        return None


def read_accounting(path: Path) -> Iterator[AccountedJob]:
    """The jobs in the last part of an accounting file, as they ended.

    Raises
    ------
    RuntimeError : when it cannot be read; no file at all is one without jobs.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_READ))
            text = file.read(MOST_READ).decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RuntimeError(f"{path} cannot be read: {refusal(error)}") from None
    lines = text.split("\n")[:-1]
    for line in lines[1:] if size > MOST_READ else lines:
        if (job := read_line(line)) is not None:
            yield job
