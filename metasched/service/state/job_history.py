"""What accounting tells of jobs that name no problem size: their run times and ends, learned from each that has ended.

Everything is learned again from the database when the daemon starts, and when somebody else has stored jobs that ended
before those that are known, as an import does: in the background, in the order of time, from the jobs by which
expectations come out. A job is expected once, when it is first seen, by what had ended by then; those that are in the
queue meanwhile are expected again once all is learned.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from metasched.history.job_log import JobLog
from metasched.history.playback import NEWEST, informative_jobs, play
from metasched.history.queue import Left, QueuedJob, by_limit
from metasched.history.submission import submission
from metasched.records import InputError
from metasched.service.state.cluster_jobs import ClusterJobs
from metasched.store.database.store import Store
from metasched.store.pseudonyms import Pseudonyms, pseudonyms_of

#: Rest after a number of played-back events (s): placements are answered meanwhile.
REST, PLAYED = 0.02, 20
#: For how long after its end a job may still be stored (s).
LATE = 600.0
#: Least time between two rounds in which all that is stored is learned again (s).
AGAIN = 3600.0


class JobHistory:
    """Run times and ends of jobs by their cluster's accounting.

    Attributes
    ----------
    ready : whether all that was stored before the start is known.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clusters: dict[str, ClusterJobs] = {}
        self._lock = Lock()
        self._called: Pseudonyms | None = None
        self.ready = False
        #: When the last job ended that is learned, of each cluster (s).
        self._newest: dict[str, float] = {}
        #: How many jobs of each cluster were stored when they were last counted, and by this daemon afterwards.
        self._stored: Counter[str] = Counter()
        self._storing = Lock()
        #: Clusters of which somebody else has stored older jobs, and when such jobs were learned last (s).
        self._older: set[str] = set()
        self._learned_at = -math.inf
        #: For each that learns at present: the users who were forgotten since, of whom it may have read before.
        self._forgotten: list[set[str]] = []

    def restore(self, newest: int = NEWEST, rest: float = REST) -> None:
        """Learn what is stored, one cluster after the other.

        Parameters
        ----------
        newest : jobs that are learned besides the last of each user and limit.
        rest : between pieces of work (s).
        """
        self._older.update(self._stored_by_others())
        self._learn_older(newest, rest)
        self.ready = True

    def follow(self, rest: float = REST, again: float = AGAIN) -> None:
        """Learn the jobs that others have stored since: another daemon, or an import. Nothing before all are restored.

        Parameters
        ----------
        rest : between pieces of work (s).
        again : least time between two rounds in which all is learned again, for the sake of older jobs (s).

        Raises
        ------
        StoreError : when the database cannot be read: they are learned the next time.
        """
        if not self.ready:
            return
        behind = self._stored_by_others()
        waiting, self._older = self._older, self._older | behind.keys()
        for cluster, count in behind.items():
            if self._learn_newer(cluster) >= count and cluster not in waiting:
                self._older.discard(cluster)
        if self._older and time.monotonic() - self._learned_at >= again:
            self._learn_older(NEWEST, rest)
            self._learned_at = time.monotonic()

    def _learn_older(self, newest: int, rest: float) -> None:
        for cluster in sorted(self._older):
            self._learn_again(cluster, newest, rest)
            self._older.discard(cluster)

    def _stored_by_others(self) -> dict[str, int]:
        """How many jobs of each cluster others have stored since this was last asked."""
        with self._storing:
            counts = self._store.past_jobs.counts(forgotten=True)  # else an import after it would not be noticed
            more = {cluster: count - self._stored[cluster] for cluster, count in counts.items()}
            self._stored = Counter(counts)
        return {cluster: count for cluster, count in more.items() if count > 0}

    def _learn_newer(self, cluster: str) -> int:
        """Learn the stored jobs that ended after those that are learned; return how many of them were new."""
        before = self._newest.get(cluster, -math.inf)
        with self._forgotten_meanwhile() as users:
            try:
                log = self._store.past_jobs.log([cluster], ended_since=before - LATE)
            except InputError:  # none did
                return 0
            with self._lock:
                known = self._of(cluster)
            self._newest[cluster] = max(before, float(log.ends().max()))
            count = self._learn(known, log)
            with self._lock:
                known.forget(users)
        return count

    def _learn_again(self, cluster: str, newest: int, rest: float) -> None:
        """Learn the stored jobs of a cluster from the first on, and put what follows in the place of what is known."""
        count = 0

        def pause() -> None:
            nonlocal count
            count += 1
            if rest and count % PLAYED == 0:
                time.sleep(rest)

        with self._forgotten_meanwhile() as users:
            try:
                log = self._store.past_jobs.log([cluster])
            except InputError:  # they were forgotten meanwhile
                return
            fresh = ClusterJobs(self.called)
            self._learn(fresh, log.picked(informative_jobs(log, newest)), pause)
            self._replace(cluster, fresh, users, pause)
        self._newest[cluster] = float(log.ends().max())
        self._learn_newer(cluster)  # what ended meanwhile

    def _replace(
        self, cluster: str, fresh: ClusterJobs, forgotten: Collection[str], pause: Callable[[], object]
    ) -> None:
        """Put what was learned again of a cluster in the place of what is known, with its queue as it is."""
        with self._lock:
            old = self._of(cluster)
        adopted: dict[int, float | None] = {}  # and when each had started by then

        def adopt(key: int) -> None:
            started = old.known[key][1].started
            if adopted.get(key, math.nan) != started:
                adopted[key] = started
                fresh.past.adopt(key, old.past)

        for key in [*old.known]:
            with self._lock:
                if key in old.known:
                    adopt(key)
            pause()
        with self._lock:  # what changed in the queue meanwhile is little
            for key in adopted.keys() - old.known.keys():
                fresh.past.withdrawn(key)
            for key in old.known:
                adopt(key)
            fresh.take_queue(old)
            fresh.forget(forgotten)
            self._clusters[cluster] = fresh

    @contextmanager
    def _forgotten_meanwhile(self) -> Iterator[Collection[str]]:
        """The users who are forgotten from now on, while something is learned."""
        users = set[str]()
        with self._lock:
            self._forgotten.append(users)
        try:
            yield users
        finally:
            with self._lock:
                self._forgotten = [each for each in self._forgotten if each is not users]

    def called(self, user: str) -> str:
        """What a user is called here."""
        if self._called is None:
            self._called = pseudonyms_of(self._store.past_jobs, self._store.name, renew=True)
        return self._called(user)

    def note(self, cluster: str, jobs: Iterable[QueuedJob], now: float) -> None:
        """Take the queue of a cluster as it is: what is new in it is expected, and what runs shows how long it has."""
        with self._lock:
            self._of(cluster).note(jobs, now)

    def left(self, cluster: str) -> Left:
        """How long each job of a cluster possibly runs on; up to its limit where nothing is known of it."""

        def possible(job: QueuedJob) -> tuple[float, ...]:
            with self._lock:
                known = self._clusters.get(cluster)
                return by_limit(job) if known is None else known.possible(job)

        return possible

    def ended(self, cluster: str, number: str, start: float, end: float, state: str, numbers: str = "") -> bool:
        """Learn from a job that has ended, and store it; return whether its queue had reported this run of it.

        Parameters
        ----------
        cluster, number : of the job.
        start, end : when it started and ended (s).
        state : how, as accounting calls it; empty where that is not known.
        numbers : in its script, a text of :mod:`metasched.history.argument_numbers`.
        """
        with self._lock:
            log = self._of(cluster).as_ended(number, start, end, state, numbers)
        if log is None:
            return False
        self.take(cluster, log)
        return True

    def take(self, cluster: str, log: JobLog) -> int:
        """Store jobs that accounting tells of, and learn those that are new; return how many were stored.

        Jobs that were forgotten are not learned either. How a job ended is corrected where its epilog could not tell.

        Raises
        ------
        StoreError : when the database does not take them.
        """
        with self._storing:
            stored = self._store.past_jobs.add(log, cluster, self.called)
            self._stored[cluster] += stored
        with self._forgotten_meanwhile() as users:
            forgotten = self._store.past_jobs.forgotten(log.keys.tolist(), cluster)
            kept = log.picked(np.flatnonzero([key not in forgotten for key in log.keys.tolist()]))
            if len(kept):
                with self._lock:
                    known = self._of(cluster)
                self._learn(known, kept)
                with self._lock:
                    known.forget(users)
                self._newest[cluster] = max(self._newest.get(cluster, -math.inf), float(kept.ends().max()))
        return stored

    def keep(self, cluster: str, log: JobLog) -> int:
        """Store jobs that ended before those that are known, to be learned by :meth:`follow`; return how many were new.

        Raises
        ------
        StoreError : when the database does not take them.
        """
        return self._store.past_jobs.add(log, cluster, self.called)

    def ends(self, cluster: str) -> tuple[float, float] | None:
        """When the first and the last job that are stored ended (s)."""
        return self._store.past_jobs.ends(cluster)

    def forget(self, users: Collection[str]) -> int:
        """Forget the jobs of a user, by what the user may be called; return how many were stored."""
        names = {*users, *map(self.called, users)}
        forgotten = self._store.past_jobs.forget(names)
        with self._lock:
            for known in self._clusters.values():
                known.forget(names)
            for users in self._forgotten:
                users |= names
        return forgotten

    def predict(
        self, user: str, processors: int, limit: float, now: float, *, cluster: str | None = None, name: str = "",
        executable: str = "", partition: str = "", account: str = "",
    ) -> dict[str, Any]:  # fmt: skip
        """What is expected of a job that is submitted now: the document of ``metasched history predict``.

        Parameters
        ----------
        user, name, executable : as the job is submitted.
        partition, account : likewise; where empty, those of the user's last job.
        processors : how many it asks for.
        limit : the time that it asks for (s).
        now : the moment, seconds since 1970.
        cluster : whose history; may be None where only one is known.

        Raises
        ------
        InputError : when nothing is known of the cluster, or there are several and none is named.
        """
        usual = self.usual(user, cluster)
        job = submission(
            self.called(user), processors, limit, name=name, executable=executable, partition=partition or usual[0],
            account=account or usual[1],
        )  # fmt: skip
        with self._lock:
            known = self._named(cluster)
            found, reason = known.past.expect(job, now), known.past.reason(job, now)
            chances = known.outcomes.chances(job)
        return {
            "run_time": found.run_time, "interval": {"low": found.low, "high": found.high, "level": 0.9},
            "reason": reason, "early_failure": chances.early_failure, "time_limit": chances.time_limit,
            "requested_time": limit, "processors": processors, "complete": self.ready,
        }  # fmt: skip

    def usual(self, user: str, cluster: str | None = None) -> tuple[str, str]:
        """Partition and account of a user's last job, empty where it names none; raises as :meth:`predict` does."""
        with self._lock:
            return self._named(cluster).usual.get(self.called(user), ("", ""))

    def knows(self, cluster: str | None) -> bool:
        """Whether anything is known of a cluster, or of the only one."""
        return len(self._clusters) == 1 if cluster is None else cluster in self._clusters

    def _named(self, cluster: str | None) -> ClusterJobs:
        if cluster is None and len(self._clusters) == 1:
            return next(iter(self._clusters.values()))
        found = self._clusters.get(cluster or "")
        if found is None:
            if not self._clusters:
                raise InputError("no past jobs are known yet; metasched history import stores them")
            names = ", ".join(sorted(map(repr, self._clusters)))
            if cluster is None:
                raise InputError(f"past jobs of several clusters are known, expected one of {names} to be named")
            raise InputError(f"no jobs of {cluster} are known, expected one of {names}")
        return found

    def _of(self, cluster: str) -> ClusterJobs:
        return self._clusters.setdefault(cluster, ClusterJobs(self.called))

    def _learn(self, known: ClusterJobs, log: JobLog, pause: Callable[[], object] = lambda: None) -> int:
        """Learn from the jobs of a log that have not been learned from; return how many these were."""

        def step() -> None:
            self._lock.release()
            try:
                pause()
            finally:
                self._lock.acquire()

        with self._lock:
            count, unseen = known.learn(log)
        if len(unseen):
            hidden = unseen if not unseen.names.get("user") else _renamed(unseen, self.called)
            keys = hidden.keys.tolist()
            with self._lock:
                play(hidden, known.past, lambda row: ("past", keys[row]), step)
        return count


def _renamed(log: JobLog, called: Callable[[str], str]) -> JobLog:
    return replace(log, names={**log.names, "user": tuple(map(called, log.names["user"]))})
