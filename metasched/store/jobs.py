"""A finished job as its scheduler tells of it, and the mark that ties it to an application and to a placement.

The mark stands in the job's comment: ``metasched:app=cg,n=1400`` by the user's hand, to which the hook adds the number
of processors and the placement it was given. Whatever else the comment says stays.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass

from metasched.records import InputError

_MARK = re.compile(r"metasched:([A-Za-z0-9_=.,+-]{1,500})")
_APPLICATION = re.compile(r"[A-Za-z0-9_.+-]{1,64}")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a comment says about a job: application, problem_size, and perhaps processors and the placement's uid."""

    application: str
    problem_size: float
    processors: int | None = None
    placement: str | None = None


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that has ended.

    Parameters
    ----------
    scheduler : name of the cluster for its scheduler.
    job : its number there.
    comment : the job's comment.
    partition : the scheduler's name of the partition.
    nodes : names of the nodes.
    processors : P, None where the scheduler did not say.
    start, end : seconds since 1970, to the hundredth where the scheduler is that exact.
    exit_status : 0 where all went well, 128 plus the signal's number where it was killed.
    user, name : the number of its user and the job's name, empty where the scheduler did not say.
    submitted : when it was submitted, in whole seconds since 1970; None where the scheduler did not say.
    """

    scheduler: str
    job: str
    comment: str
    partition: str
    nodes: tuple[str, ...]
    processors: int | None
    start: float
    end: float
    exit_status: int
    user: str = ""
    name: str = ""
    submitted: float | None = None

    @property
    def uid(self) -> str:
        """32 characters that name this run of the job, the same whenever it is told of again."""
        told = f"{self.scheduler}\n{self.job}\n{self.start:.2f}"
        return hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Fate:
    """What a scheduler says of a job afterwards.

    Parameters
    ----------
    completed : whether it ended by itself; None while that is not settled.
    submitted : when it was submitted (s), None where that is not known.
    """

    completed: bool | None
    submitted: float | None = None


def plain(name: bytes) -> str:
    """A job's name as hooks tell it: what is not printable ASCII is a question mark, and no more than 255 of them."""
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in name[:255])


def read_mark(comment: str) -> Mark | None:
    """The mark in a comment; None where there is none that says application and problem size.

    Examples
    --------
    >>> read_mark("night run metasched:app=cg,n=1400")
    Mark(application='cg', problem_size=1400.0, processors=None, placement=None)
    >>> read_mark("metasched:off") is None
    True
    """
    found = _MARK.search(comment)
    if found is None:
        return None
    words = dict(word.split("=", 1) for word in found[1].split(",") if "=" in word)
    application = words.get("app", "")
    try:
        size = float(words.get("n", ""))
        processors = int(words["p"]) if words.get("p", "").isdecimal() else None
    except ValueError:
        return None
    if not _APPLICATION.fullmatch(application) or not (math.isfinite(size) and size > 0):
        return None
    placement = words.get("placement")
    return Mark(application, size, processors or None, placement if placement and len(placement) <= 32 else None)


def check_times(job: EndedJob) -> None:
    """Refuse a job whose times cannot be.

    Raises
    ------
    InputError
        When it does not end after it starts.
    """
    if not (math.isfinite(job.start) and math.isfinite(job.end) and job.end > job.start):
        raise InputError(f"job {job.job} starts at {job.start} and ends at {job.end}, expected it to end later")
