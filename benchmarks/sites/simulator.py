"""The grid as time goes on: transfers, queues, ends, one site that fails, and what a policy chooses."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.replay.grid import Site as Queue
from benchmarks.sites.workload import FAILS_AFTER, FAILURE, SITES, Floats, Jobs, SiteModel, own_jobs
from metasched.history.queue import Line, PrecedingJob
from metasched.sites.data import MEGABITS

#: How often a site's daemon asks its scheduler (s), and how often outcomes are asked for (s).
POLLED, CONSIDERED = 15.0, 60.0
#: Numbers of jobs of a site's own users begin here.
OWN = 1_000_000


@dataclass(frozen=True)
class Snapshot:
    """A queue as its daemon saw it last: what runs, with the time it has run (s), what waits, and how much is free."""

    at: float
    running: Mapping[int, float]
    waiting: tuple[int, ...]
    free: int


class InOrder(Queue):
    """A queue without backfill: nobody starts before the first in line."""

    def _fill(self, now: float) -> list[int]:
        return []


@dataclass
class Place:
    """A site with its queue."""

    model: SiteModel
    number: int
    own: Jobs
    queue: Queue
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(0.0, {}, (), 0))
    up: bool = True
    lines: dict[tuple[float, bool], Line] = field(default_factory=dict)
    submitted: dict[int, float] = field(default_factory=dict)
    ended: list[tuple[int, float, float, float]] = field(default_factory=list)
    down: tuple[float, float] = (np.inf, np.inf)


class Policy(Protocol):
    """Chooses sites for jobs, and may learn from what becomes of them."""

    #: Whether a job is sent to all of the sites, and the copy that starts first counts.
    races: bool

    def choose(self, job: int, grid: Grid) -> list[int]:
        """The sites in the order in which the job is to be sent there."""
        ...

    def submitted(self, job: int, place: int, grid: Grid) -> None:
        """A job was submitted, its data being there."""
        ...

    def refused(self, job: int, place: int, grid: Grid) -> None:
        """A site failed before the job could be submitted."""
        ...

    def look(self, grid: Grid) -> None:
        """Ask what became of jobs."""
        ...


class Grid:
    """The sites and the stream, under one policy.

    Parameters
    ----------
    seed : of the sites' own jobs.
    jobs : of the grid.
    failing : the site that fails for an hour, None for none.
    """

    def __init__(self, seed: int, jobs: Jobs, failing: int | None = 0) -> None:
        self.jobs, self.now = jobs, 0.0
        until = float(jobs.arrival[-1]) + 40_000.0
        self.places = [
            Place(
                model, number, own_jobs(seed, number, until), (Queue if model.backfills else InOrder)(model.processors)
            )
            for number, model in enumerate(SITES)
        ]
        self._events: list[tuple[float, int, str, int, int]] = []
        self._count = 0
        self.completion = np.full(len(jobs.arrival), np.nan)
        self.sent_to: dict[int, set[int]] = {}
        self.runs: dict[tuple[int, int], int] = {}
        for job, at in enumerate(jobs.arrival):
            self._at(float(at), "arrive", -1, job)
        for place in self.places:
            for job, at in enumerate(place.own.arrival):
                self._at(float(at), "own", place.number, OWN + job)
        if failing is not None:
            begins = float(jobs.arrival[int(FAILS_AFTER * len(jobs.arrival))])
            self.places[failing].down = begins, begins + FAILURE
            self._at(begins, "fail", failing, 0)
            self._at(begins + FAILURE, "return", failing, 0)

    def run(self, policy: Policy) -> Floats:
        """Completion of each job from its arrival on (s), shape (jobs,); nan for one that is lost."""
        polled = considered = 0.0
        left = len(self.completion)
        while self._events and left:
            at, _, kind, place, job = heapq.heappop(self._events)
            while polled + POLLED <= at:
                polled = max(polled + POLLED, POLLED * np.floor(at / POLLED))
                for each in self.places:
                    each.snapshot = self._snapshot(each, polled)
                    each.lines.clear()
            self.now = at
            if at - considered >= CONSIDERED:
                considered = at
                policy.look(self)
            if kind == "arrive":
                self._send(job, policy)
            elif kind == "brought":
                self._brought(job, place, policy)
            elif kind == "own":
                self._submit(self.places[place], job)
            elif kind == "end":
                left -= self._end(self.places[place], job)
            elif kind == "fail":
                self._fail(self.places[place])
            elif kind == "return":
                self.places[place].up = True
            for each in self.places:
                if each.up:
                    self._start(each)
        return self.completion

    def transfer(self, job: int, place: int) -> float:
        """How long the data of a job takes to a site (s)."""
        return MEGABITS * float(self.jobs.data[job]) / float(self.jobs.width[place, job])

    def line(self, place: Place, *, by_limit: bool = False) -> Line:
        """The queue of a site as its daemon saw it last, led on by what it expects, or by time limits."""
        key = place.snapshot.at, by_limit
        if key not in place.lines:
            seen = place.snapshot
            running = [self._preceding(place, job, ran, by_limit) for job, ran in seen.running.items()]
            waiting = [self._preceding(place, job, 0.0, by_limit) for job in seen.waiting]
            place.lines[key] = Line(seen.free, running, waiting)
        return place.lines[key]

    def width(self, place: Place, job: int) -> int:
        """Processors of a job."""
        return int(place.own.processors[job - OWN] if job >= OWN else self.jobs.processors[job])

    def time(self, place: Place, job: int) -> float:
        """Seconds that a job really runs at a site."""
        return float(place.own.time[0, job - OWN] if job >= OWN else self.jobs.time[place.number, job])

    def limit(self, place: Place, job: int) -> float:
        """Seconds that a job asks for."""
        return float(place.own.limit[job - OWN] if job >= OWN else self.jobs.limit[job])

    def started(self, place: Place, job: int) -> float:
        """When a running job of a site started (s)."""
        return place.queue.started[job]

    def resend(self, job: int, origin: int, place: int) -> None:
        """Withdraw a job that waits at a site, and bring its data to another to be submitted there."""
        self.places[origin].queue.withdraw(job)
        del self.places[origin].submitted[job]
        self.sent_to[job] = {place}
        self._at(self.now + self.transfer(job, place), "brought", place, job)

    def _preceding(self, place: Place, job: int, ran: float, by_limit: bool) -> PrecedingJob:
        holds = max(self.limit(place, job) - ran, 1.0)
        expected = place.own.expected[0, job - OWN] if job >= OWN else self.jobs.expected[place.number, job]
        left = holds if by_limit else min(max(float(expected) - ran, 0.2 * float(expected)), holds)
        return PrecedingJob(self.width(place, job), holds, (left,), f"{job}")

    def _snapshot(self, place: Place, at: float) -> Snapshot:
        queue = place.queue
        return Snapshot(at, {job: at - start for job, start in queue.started.items()}, tuple(queue.waiting), queue.free)

    def _at(self, time: float, kind: str, place: int, job: int) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, kind, place, job))

    def _send(self, job: int, policy: Policy) -> None:
        order = [place for place in policy.choose(job, self) if self.places[place].up]
        chosen = order if policy.races else order[:1]
        self.sent_to[job] = set(chosen)
        for place in chosen:
            self._at(self.now + self.transfer(job, place), "brought", place, job)

    def _brought(self, job: int, place: int, policy: Policy) -> None:
        if place not in self.sent_to[job]:
            return
        if self.places[place].up:
            self._submit(self.places[place], job)
            policy.submitted(job, place, self)
            return
        self.sent_to[job].discard(place)
        if not self.sent_to[job]:
            policy.refused(job, place, self)
            self._send(job, policy)

    def _submit(self, place: Place, job: int) -> None:
        place.submitted[job] = self.now
        place.queue.submit(job, self.width(place, job), self.limit(place, job), self.now, self.now)

    def _start(self, place: Place) -> None:
        for job in place.queue.schedule(self.now):
            self.runs[place.number, job] = self.runs.get((place.number, job), 0) + 1
            self._at(self.now + self.time(place, job), "end", place.number, job)
            if job < OWN:
                for other in self.sent_to[job] - {place.number}:
                    elsewhere = self.places[other]
                    if job in elsewhere.submitted and job in elsewhere.queue.width:
                        elsewhere.queue.withdraw(job)
                self.sent_to[job] = {place.number}

    def _end(self, place: Place, job: int) -> int:
        started = place.queue.started.get(job)
        # A job that was killed by the failure ends later than it was to.
        if started is None or abs(started + self.time(place, job) - self.now) > 1e-6:
            return 0
        place.queue.end(job)
        if job >= OWN:
            return 0
        self.completion[job] = self.now - self.jobs.arrival[job]
        place.ended.append((job, place.submitted[job], started, self.now))
        return 1

    def _fail(self, place: Place) -> None:
        """What runs is killed, and put back into the queue before all that waits."""
        place.up = False
        for job, start in sorted(place.queue.started.items(), key=lambda each: each[1]):
            place.queue.end(job)
            place.queue.submit(job, self.width(place, job), self.limit(place, job), -1.0, start - 1e9)
