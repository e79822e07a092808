"""What is known of a job at its submission."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from metasched.history.job_log import JobLog

#: Limit of a job that has none (s): a year, as in Slurm's backfill; it says nothing of how long the job will run.
NO_LIMIT = 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class Submission:
    """What is known of a job when it is submitted.

    Parameters
    ----------
    user : who submits it.
    processors, limit : P, and its time limit (s), :data:`NO_LIMIT` where it has none.
    name : the job's name or executable, with its partition and account; empty if it has none.
    executable : its script or program if it has a name as well; empty if unknown.
    """

    user: Hashable
    processors: int
    limit: float
    name: str = ""
    executable: str = ""


def submission(
    user: str, processors: int, limit: float, *, name: str = "", executable: str = "", partition: str = "",
    account: str = "",
) -> Submission:  # fmt: skip
    """A submission whose name joins the job's name, or else its executable, with its partition and account.

    A limit (s) of less than one second counts as one; what the job is called by may be empty.

    >>> submission("ada", 4, 3600.0, name="solve", partition="long").name
    'solve/long/'
    >>> submission("ada", 4, 3600.0, executable="a.out").name
    'a.out//'
    """
    called = "/".join((name or executable, partition, account))
    return Submission(
        user, processors, max(limit, 1.0), called if called.strip("/") else "", executable if name else ""
    )


def submissions(log: JobLog) -> list[Submission]:
    """The submissions of a log; a job without a name gets that of its executable."""
    columns = (log.named(label) for label in ("name", "executable", "partition", "account"))
    rows = zip(log.named("user"), log.processors.tolist(), log.limits().tolist(), *columns, strict=True)
    return [
        submission(user, processors, limit, name=name, executable=executable, partition=partition, account=account)
        for user, processors, limit, name, executable, partition, account in rows
    ]
