"""Ended jobs as columns: what accounting recorded of a cluster, and its defects."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError

#: Columns of names that a log may have. A job's name says more about it than anything else, where it is recorded.
#: Of its arguments there are the numbers, a text of :mod:`metasched.history.argument_numbers`.
LABELS = ("user", "account", "name", "partition", "qos", "executable", "state", "numbers")
#: Part of the jobs whose waits must be known for what follows from all of them: a few may be torn.
NEARLY = 0.9
#: How a job ended, as Slurm calls it; other formats are put into these words.
COMPLETED, FAILED, CANCELLED, TIMEOUT = "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"
#: A job that ran for this share of its limit reached it, where its end state is unknown or does not tell.
AT_LIMIT = 0.99


def job_key(job: str, start: float) -> int:
    """The identity of a job as a signed 64-bit number: a hash of its number and its start to the second.

    >>> job_key("77", 1000.2) == job_key("77", 1000.0) != job_key("77", 2000.0)
    True
    """
    return digest_of(f"{job}\n{math.floor(start)}")


def digest_of(text: str) -> int:
    """A signed 64-bit hash of a text, the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@dataclass(frozen=True, slots=True)
class JobLog:
    """The jobs of a cluster in the order they were submitted; every array has shape (jobs,).

    Parameters
    ----------
    submit_time : when each was submitted (s), ascending.
    run_time : how long it ran (s), at least 0.
    processors : P, at least 1.
    requested_time : its time limit (s), not a number where none is known.
    wait : how long it really waited (s), not a number where that is not known.
    labels : columns of :data:`LABELS` that the log has: a number for each name, -1 where a job has none.
    capacity : processors of the cluster as far as the log says, 0 where it does not.
    wrong : what was wrong with the log, with the number of rows.
    names : what the numbers of each label stand for, where the log says.
    keys : what each job is known again by (:func:`job_key`), empty where the log was made up.

    Examples
    --------
    >>> log = JobLog(np.array([0.0, 5.0]), np.array([60.0, 30.0]), np.array([4, 8]), np.array([300.0, np.nan]))
    >>> len(log), log.limits().tolist(), log.has_requests
    (2, [300.0, 300.0], True)
    """

    submit_time: Floats
    run_time: Floats
    processors: Ints
    requested_time: Floats
    wait: Floats = field(default_factory=lambda: np.empty(0))
    labels: Mapping[str, Ints] = field(default_factory=lambda: MappingProxyType({}))
    capacity: int = 0
    wrong: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    keys: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not self.wait.size:
            object.__setattr__(self, "wait", np.full(self.submit_time.size, np.nan))
        sizes = {
            column.shape
            for column in (self.submit_time, self.run_time, self.processors, self.requested_time, self.wait)
        } | {column.shape for column in self.labels.values()}
        if len(sizes) != 1:
            raise InputError(f"columns have the shapes {sorted(sizes)}, expected one")
        if self.keys.size not in (0, self.submit_time.size):
            raise InputError(f"there are {self.keys.size} keys, expected one a job")
        if np.any(np.diff(self.submit_time) < 0):
            raise InputError("submit_time goes back, expected jobs in the order they were submitted")

    def __len__(self) -> int:
        return int(self.submit_time.size)

    @property
    def has_requests(self) -> bool:
        """Whether any job has a time limit."""
        return bool(np.isfinite(self.requested_time).any())

    def starts(self) -> Floats:
        """When each job started (s), shape (jobs,); its submission where its wait is not known."""
        return self.submit_time + np.nan_to_num(self.wait)

    def ends(self) -> Floats:
        """When each job ended (s), shape (jobs,); at the earliest, where its wait is not known."""
        return self.starts() + self.run_time

    def limits(self) -> Floats:
        """Time limits (s), shape (jobs,); a job without one gets the longest of all, as partitions have a limit."""
        known = np.isfinite(self.requested_time)
        longest = max(float(np.max(self.requested_time[known], initial=1.0)), float(np.max(self.run_time, initial=1.0)))
        return np.where(known, self.requested_time, longest)

    def likely_capacity(self) -> int:
        """Processors that the cluster has at least, where the log names none.

        As many as were in use at a time where the log tells when jobs started; else as many as do the work at 70 %
        load, and those of the largest job.
        """
        largest = int(self.processors.max())
        if (log := self.started()) is not None:
            start = log.submit_time + log.wait
            order = np.argsort(np.concatenate([start + log.run_time, start]), kind="stable")
            change = np.concatenate([-log.processors, log.processors])[order]
            return max(largest, int(np.cumsum(change).max()))
        work = float(np.sum(self.run_time * self.processors))
        lasted = float(np.max(self.submit_time + self.run_time) - self.submit_time[0])
        return max(largest, math.ceil(work / max(0.7 * lasted, 1.0)))

    def started(self) -> JobLog | None:
        """The jobs of which it is known when they started; None where these are not nearly all (:data:`NEARLY`)."""
        known = np.isfinite(self.wait)
        if known.all():
            return self
        return self.picked(np.flatnonzero(known)) if known.mean() >= NEARLY else None

    def labelled(self, name: str) -> Ints:
        """The column of a label; -1 everywhere where the log has none."""
        return self.labels.get(name, np.full(len(self), -1))

    def named(self, label: str) -> list[str]:
        """The name of each job under a label; empty if it has none."""
        known = (*self.names.get(label, ()), "")
        return [known[code] if code < len(known) - 1 else str(code) for code in self.labelled(label).tolist()]

    def fitting(self, processors: int) -> JobLog:
        """The jobs that fit on ``processors`` processors; the others are counted as wrong."""
        large = self.processors > processors
        if not large.any():
            return self
        wrong = {**self.wrong, "larger than the cluster": int(large.sum())}
        return replace(self.picked(np.flatnonzero(~large)), wrong=wrong)

    def picked(self, rows: Ints, submit_time: Floats | None = None) -> JobLog:
        """A selection of the jobs in the given order, with other submission times (s) if they are given.

        Parameters
        ----------
        rows : positions of the jobs, shape (k,).
        submit_time : when each of them is submitted, shape (k,) (s).
        """
        return replace(
            self, submit_time=self.submit_time[rows] if submit_time is None else submit_time,
            run_time=self.run_time[rows], processors=self.processors[rows],
            requested_time=self.requested_time[rows], wait=self.wait[rows],
            labels={name: column[rows] for name, column in self.labels.items()},
            keys=self.keys[rows] if self.keys.size else self.keys,
        )  # fmt: skip
