"""The jobs of one cluster, as accounting and its queue tell of them: run times and ends of those that have ended.

By these the others are expected: each once, when it is first seen in the queue, by what had ended by then.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from metasched.history.argument_numbers import merged
from metasched.history.job_log import COMPLETED, FAILED, JobLog, job_key
from metasched.history.outcomes import Outcomes
from metasched.history.queue import QueuedJob, by_limit
from metasched.history.run_times.neighbours import Neighbours
from metasched.history.submission import NO_LIMIT, Submission, submission, submissions
from metasched.jobs import LONGEST_BEGINNING, SAME_MOMENT

#: Jobs that have ended and are remembered, so that none is learned twice.
MOST_ENDED = 200_000
#: Jobs are put in so many places at random, to vary which of their possible run times are simulated together.
PLACES = 4096
#: How long a job that its scheduler does not name any more is waited for (s): accounting may tell of it later.
MISSING = 3600.0


@dataclass(slots=True)
class ClusterJobs:
    """What is known of the jobs of a cluster.

    Parameters
    ----------
    called : what users are called here.
    past, outcomes : run times and ends, learned from the jobs that have ended.
    known : the jobs of the queue as they were submitted and as they were last seen, by their keys.
    numbers : the keys of these by their numbers.
    missing : since when the queue has not named some of them (s).
    usual : partition and account of the last job of each user.
    ended : jobs that have ended; with their state as it was learned where accounting may still know better.
    """

    called: Callable[[str], str]
    past: Neighbours = field(default_factory=Neighbours)
    outcomes: Outcomes = field(default_factory=Outcomes)
    known: dict[int, tuple[Submission, QueuedJob]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    missing: dict[int, float] = field(default_factory=dict)
    usual: dict[str, tuple[str, str]] = field(default_factory=dict)
    ended: OrderedDict[int, tuple[Submission, str] | None] = field(default_factory=OrderedDict)

    def note(self, jobs: Iterable[QueuedJob], now: float) -> None:
        """Take the queue as it is: what is new in it is expected, and what runs shows how long it has."""
        there = set()
        for job in jobs:
            key = self.numbers.get(job.number)
            if key is not None and self.known[key][1].started not in (None, job.started):
                self.drop(key)  # it was put back into the queue, and this is another run
                key = None
            if key is None:
                key = self.numbers[job.number] = job_key(job.number, job.submitted or now)
                asked = self._submission(job)
                self.usual[self.called(job.user)] = min(job.partitions, default=""), job.account
                self.past.submitted(key, asked, job.submitted or now)
                self.known[key] = asked, replace(job, started=None)
            if job.started is not None and self.known[key][1].started is None:
                self.past.started(key, job.started)
            asked, before = self.known[key]
            # Most schedulers do not say when a job that runs was submitted.
            self.known[key] = asked, replace(job, submitted=job.submitted or before.submitted)
            there.add(key)
            self.missing.pop(key, None)
        for key in self.known.keys() - there:
            since = self.missing.setdefault(key, now)
            if now - since > MISSING:
                self.drop(key)

    def possible(self, job: QueuedJob) -> tuple[float, ...]:
        """How long a job of the queue possibly runs on (s); up to its limit where nothing is known of it."""
        key = self.numbers.get(job.number)
        if key is None:
            return by_limit(job)
        found = self.past.possible(key, job.ran or 0.0, key % PLACES)
        return tuple(min(max(seconds, 1.0), job.holds) for seconds in found)

    def as_ended(self, number: str, start: float, end: float, state: str, numbers: str) -> JobLog | None:
        """A job that has ended as a log of its own; None if the queue had not reported this run of it.

        Parameters
        ----------
        number : of the job.
        start, end : when it started and ended (s).
        state : how, as accounting calls it; empty where that is not known.
        numbers : in its script, a text of :mod:`metasched.history.argument_numbers`.
        """
        key = self.numbers.get(number)
        if key is None:
            return None
        asked, job = self.known[key]
        if job.started is None or not -SAME_MOMENT < start - job.started < LONGEST_BEGINNING:
            return None
        submitted = min(job.submitted or job.started, job.started)
        wait = job.started - submitted if job.submitted else math.nan
        names = {
            "user": str(asked.user), "account": job.account, "name": job.name,
            "partition": min(job.partitions, default=""), "qos": job.qos, "executable": job.executable,
            "state": state, "numbers": merged(job.numbers, numbers),
        }  # fmt: skip
        return JobLog(
            np.array([submitted]), np.array([max(round(end - job.started), 0.0)]),
            np.array([max(job.processors, 1)]), np.array([job.limit or math.nan]), np.array([wait]),
            {label: np.array([0 if name else -1]) for label, name in names.items()},
            names={label: (name,) for label, name in names.items()},
            keys=np.array([job_key(job.number, job.started)]),
        )  # fmt: skip

    def learn(self, log: JobLog) -> tuple[int, JobLog]:
        """Learn from the jobs of a log that have not been learned from.

        Returns
        -------
        How many these were, and those of them that the queue had not named: they are still to be played back.
        """
        log = replace(log, requested_time=np.nan_to_num(log.requested_time, nan=NO_LIMIT))
        keys, start = log.keys.tolist(), log.starts()
        states = log.named("state")
        for row, key in enumerate(keys):
            if (unsure := self.ended.get(key)) is not None and states[row] not in ("", COMPLETED, unsure[1]):
                self.outcomes.correct(unsure[0], float(log.run_time[row]), unsure[1], states[row])
                self.ended[key] = None
        new = [row for row, key in enumerate(keys) if key not in self.ended]
        by_start = {job_key(job.number, job.started): key for key, (_, job) in self.known.items() if job.started}
        users = [self.called(user) for user in log.named("user")]
        self.usual |= zip(users, zip(log.named("partition"), log.named("account"), strict=True), strict=True)
        asked = submissions(log)
        unseen = []
        for row in new:
            job, seen = replace(asked[row], user=users[row]), by_start.get(keys[row])
            self.outcomes.learn(job, float(log.run_time[row]), states[row])
            self.ended[keys[row]] = (job, states[row]) if states[row] in ("", FAILED) else None
            if seen is None:
                unseen.append(row)
                continue
            self.past.ended(seen, float(log.run_time[row]), float(start[row] + log.run_time[row]))
            self.drop(seen)
        while len(self.ended) > MOST_ENDED:
            self.ended.popitem(last=False)
        return len(new), log.picked(np.array(unseen, dtype=np.int64))

    def drop(self, key: int) -> None:
        """Forget a job of the queue, which has left it."""
        self.past.withdrawn(key)
        _, job = self.known.pop(key)
        self.numbers.pop(job.number, None)
        self.missing.pop(key, None)

    def forget(self, users: Collection[str]) -> None:
        """Forget the jobs of some users."""
        for user in users:
            self.past.forget(user)
            self.outcomes.forget(user)
            self.usual.pop(user, None)
        for key in [key for key, (asked, _) in self.known.items() if asked.user in users]:
            self.drop(key)
        for key in [key for key, each in self.ended.items() if each is not None and each[0].user in users]:
            self.ended[key] = None

    def take_queue(self, other: ClusterJobs) -> None:
        """Take the queue of another, whose expectations were adopted, without the jobs that are known to have ended."""
        self.known, self.numbers, self.missing = other.known, other.numbers, other.missing
        self.usual |= other.usual
        over = [
            key
            for key, (_, job) in self.known.items()
            if job.started and job_key(job.number, job.started) in self.ended
        ]
        for key in over:
            self.drop(key)

    def _submission(self, job: QueuedJob) -> Submission:
        partition = min(job.partitions, default="")
        return submission(
            self.called(job.user), max(job.processors, 1), job.limit or NO_LIMIT, name=job.name,
            executable=job.executable, partition=partition, account=job.account,
        )  # fmt: skip
