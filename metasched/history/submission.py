"""A job as it is known when it is submitted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from metasched.history.job_log import JobLog


@dataclass(frozen=True, slots=True)
class Submission:
    """What is known of a job when it is submitted.

    Parameters
    ----------
    user : who submits it.
    processors, limit : P, and its time limit (s).
    name : the job's name, executable or whatever it is called by; empty where there is none.
    """

    user: Hashable
    processors: int
    limit: float
    name: str = ""


def submission(
    user: str, processors: int, limit: float, *, name: str = "", partition: str = "", account: str = ""
) -> Submission:
    """A job as it is known when it is submitted, called by all that it is called by.

    Parameters
    ----------
    user : who submits it.
    processors : how many it asks for.
    limit : the time that it asks for (s); at least one second counts.
    name, partition, account : what it is called by; each may be empty.

    Examples
    --------
    >>> submission("ada", 4, 3600.0, name="solve", partition="long").name
    'solve/long/'
    """
    called = "/".join((name, partition, account))
    return Submission(user, processors, max(limit, 1.0), called if called.strip("/") else "")


def submissions(log: JobLog) -> list[Submission]:
    """The jobs of a log as they were submitted; one without a name is called by its executable."""
    columns = (log.named(label) for label in ("name", "executable", "partition", "account"))
    rows = zip(log.named("user"), log.processors.tolist(), log.limits().tolist(), *columns, strict=True)
    return [
        submission(user, processors, limit, name=name or executable, partition=partition, account=account)
        for user, processors, limit, name, executable, partition, account in rows
    ]
