"""Several clusters with their own arrivals, and a metascheduler before them: ``python -m benchmarks.replay.grid``.

Each log is a cluster, and brings its jobs; all come to the metascheduler, which submits each to one of the clusters or
to several. Where a job was submitted to several, the copy that starts first counts and the others are withdrawn. The
clusters start jobs by EASY backfilling with requests; what differs is where jobs go:

``random``
    to any cluster that is large enough;
``shortest queue``
    where the jobs that wait want the least processor time for each processor, by requests;
``earliest start by requests``
    where the queue led on with requested times starts it first, at home where several do (``sbatch -M``);
``everywhere, first admitted``
    to all, as MultiKueue does;
``earliest completion, predicted``
    where wait and run time are the shortest together: the waits by which metasched forecasts, the run times that it
    expects;
``the same, several on near ties``
    to all clusters where the job may after all be completed first, as far as the forecasts tell;
``earliest completion, known``
    to one, with the true run times and states that are never old.

States may be old: then each policy sees the clusters as they were at the last full ``--age`` seconds, and what was
admitted elsewhere is withdrawn that late. metasched counts what it has placed since. In bursts a hundred jobs come at
once, of every thousand. A herd is ten jobs or more that go to one cluster within the age of a state (60 s where none is
old) and wait there, while each could have started elsewhere.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.replay.plain_waits import possible_waits
from metasched.arrays import Floats, Ints
from metasched.history.backfilling import Backfilling
from metasched.history.job_log import JobLog
from metasched.history.replay import SLOWDOWN_BOUND, RunTimes
from metasched.history.run_times.known import PREDICTORS
from metasched.placement.ranking.near_ties import Reach, near_ties
from metasched.store.files.job_logs import read_job_log

WEEK = 7 * 86_400.0
#: Of so many jobs so many come at once, where there are bursts.
OF, BURST = 1000, 100
#: From so many jobs on that go wrong together there is a herd; and within which time, where states are never old (s).
HERD, TOGETHER = 10, 60.0
POLICIES = (
    "random", "shortest queue", "earliest start by requests", "everywhere, first admitted",
    "earliest completion, predicted", "the same, several on near ties", "earliest completion, known",
)  # fmt: skip
BASE, ONE, SEVERAL, KNOWN = POLICIES[2], POLICIES[4], POLICIES[5], POLICIES[6]


class Site(Backfilling):
    """A cluster of the grid, from which jobs can be withdrawn."""

    def withdraw(self, job: int) -> None:
        """A job that waits does not wait any more."""
        del self._line[bisect_left(self._line, (self._priority.pop(job), job))]
        self._backfill.remove(self._order.pop(job), job)
        width = self.width.pop(job)
        del self._hold[job]
        self._widths[width] -= 1
        if not self._widths[width]:
            del self._widths[width]
        self._changed = True

    def wanted(self) -> float:
        """Processor seconds that the jobs which wait ask for."""
        return sum(self.width[job] * self._hold[job] for job in self.waiting)

    def idle(self, processors: int) -> bool:
        """Whether a job would start at once, as nobody is before it."""
        return not self._line and self.free >= processors


@dataclass(frozen=True, slots=True)
class Grid:
    """The jobs of all clusters, and the clusters.

    Parameters
    ----------
    log : all jobs, in the order they come; run times and requests are those of a platform of speed 1.
    home : the cluster that each job comes from, shape (jobs,).
    processors, speed : of each cluster.
    """

    log: JobLog
    home: Ints
    processors: tuple[int, ...]
    speed: tuple[float, ...]


def grid_of(logs: Sequence[JobLog], processors: Sequence[int], speed: Sequence[float], since: float, until: float,
            *, bursts: bool = False) -> Grid:  # fmt: skip
    """The jobs that each log has between two times after its first (s), with users of their own."""
    users, parts = 0, []
    for home, log in enumerate(logs):
        time = log.submit_time - log.submit_time[0]
        rows = np.flatnonzero((time >= since) & (time < until))
        part = log.picked(rows, time[rows])
        user = part.labelled("user") + 1
        parts.append((home, replace(part, labels={"user": user + users})))
        users += int(user.max(initial=0)) + 1

    def column(name: str) -> Floats:
        return np.concatenate([getattr(part, name) * (speed[home] if "time" in name else 1) for home, part in parts])

    submit = np.concatenate([part.submit_time for _, part in parts])
    order = np.argsort(submit, kind="stable")
    come = submit[order]
    if bursts:
        place = np.arange(come.size)
        come = come[np.where(place % OF < BURST, place - place % OF, place)]
    log = JobLog(
        come, np.maximum(column("run_time")[order], 1.0), column("processors")[order].astype(np.int64),
        np.concatenate([part.limits() * speed[home] for home, part in parts])[order],
        labels={"user": np.concatenate([part.labels["user"] for _, part in parts])[order]},
    )  # fmt: skip
    home = np.concatenate([np.full(len(part), home) for home, part in parts])[order]
    return Grid(log, home, tuple(processors), tuple(speed))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the jobs: how long each waited and ran (s), shape (jobs,), and the herds there were."""

    wait: Floats
    run: Floats
    herds: int

    @property
    def response(self) -> Floats:
        """From submission to end (s)."""
        return self.wait + self.run

    @property
    def bounded_slowdown(self) -> Floats:
        """As a replay has it (:class:`~metasched.history.replay.Replay`)."""
        return np.maximum(1.0, self.response / np.maximum(self.run, SLOWDOWN_BOUND))


class Run:
    """The grid under one policy.

    Parameters
    ----------
    grid, policy : the jobs and clusters, and where jobs go.
    age : how old states may be (s), 0 where they are not.
    seed : decides where nothing else does.
    """

    def __init__(self, grid: Grid, policy: str, age: float, seed: int = 0) -> None:
        self.grid, self.policy = grid, policy
        self.age = 0.0 if policy == KNOWN else age
        self.sites = [Site(processors) for processors in grid.processors]
        self.seen, self.seen_at = [site.copy() for site in self.sites] if self.age else self.sites, 0.0
        self._news: list[tuple[Callable[[int, float], None], int, float]] = []
        self.limits, self.width = grid.log.limits().tolist(), grid.log.processors.tolist()
        kind = {BASE: "requests", KNOWN: "clairvoyant"}.get(policy, "metasched")
        self.run_times: RunTimes = PREDICTORS[kind](grid.log)
        self._random = np.random.default_rng(seed)

    def choose(self, job: int, now: float) -> list[int]:
        """The clusters that a job is submitted to, the best first."""
        fit = [which for which, size in enumerate(self.grid.processors) if size >= self.width[job]]
        if self.policy == "random":
            return [int(self._random.choice(fit))]
        if self.policy == "everywhere, first admitted":
            return fit
        if self.policy == "shortest queue":
            return [min(fit, key=lambda which: (self.seen[which].wanted() / self.grid.processors[which],
                                                which != self.grid.home[job]))]  # fmt: skip
        run = 0.0 if self.policy == BASE else float(np.mean(self.run_times.left(job, 0.0)))
        completions = {
            which: Reach.of([wait + run / self.grid.speed[which] for wait in self._waits(which, job, now)])
            for which in sorted(fit, key=lambda which: which != self.grid.home[job])
        }
        ties = near_ties(completions)
        return ties if self.policy == SEVERAL else ties[:1]

    def _waits(self, which: int, job: int, now: float) -> list[float]:
        site, speed = self.seen[which], self.grid.speed[which]
        if site.idle(self.width[job]):
            return [0.0]
        led = site.copy()
        led.submit(job, self.width[job], self.limits[job] / speed, job, job)

        def left(other: int, ran: float) -> list[float]:
            return [each / speed for each in self.run_times.left(other, ran * speed)]

        return possible_waits(led, job, self.seen_at, left)

    def run(self) -> Outcome:
        """Let all jobs come, and start as the clusters have it."""
        grid, log = self.grid, self.grid.log
        submit, run, home = log.submit_time.tolist(), log.run_time.tolist(), len(log)
        start, at = np.full(home, np.nan), np.zeros(home, dtype=np.int64)
        ends: list[tuple[float, int, int]] = []
        late: list[tuple[float, int]] = []  # when copies of a job are withdrawn
        copies: dict[int, list[int]] = {}
        wrong: dict[tuple[int, int], int] = {}
        coming = 0
        while coming < len(log) or ends:
            now = min(
                submit[coming] if coming < len(log) else np.inf, ends[0][0] if ends else np.inf,
                late[0][0] if late else np.inf,
            )  # fmt: skip
            while late and late[0][0] <= now:
                self._withdraw(heapq.heappop(late)[1], copies, at)
            if self.age and now >= self.seen_at + self.age:
                self.seen_at = now // self.age * self.age
                self.seen = [site.copy() for site in self.sites]
                self._tell()
            elif not self.age:
                self.seen_at = now
            while ends and ends[0][0] <= now:
                _, job, which = heapq.heappop(ends)
                if job in self.sites[which].started:
                    self.sites[which].end(job)
                    if at[job] == which:
                        self._news.append((self.run_times.ended, job, now))
            if not self.age:
                self._tell()
            while coming < len(log) and submit[coming] <= now:
                self.run_times.submitted(coming, now)
                idle = [site.idle(self.width[coming]) for site in self.sites]
                chosen = self.choose(coming, now)
                copies[coming] = chosen
                for which in chosen:
                    hold = self.limits[coming] / grid.speed[which]
                    self.sites[which].submit(coming, self.width[coming], hold, coming, coming)
                    if self.age and self.policy in (ONE, SEVERAL):
                        self.seen[which].submit(coming, self.width[coming], hold, coming, coming)
                        self.seen[which].schedule(self.seen_at)
                if any(idle) and not any(idle[which] for which in chosen):
                    key = int(now // (self.age or TOGETHER)), chosen[0]
                    wrong[key] = wrong.get(key, 0) + 1
                coming += 1
            again = True
            while again:
                again = False
                for which, site in enumerate(self.sites):
                    for job in site.schedule(now):
                        heapq.heappush(ends, (now + run[job] / grid.speed[which], job, which))
                        if np.isfinite(start[job]):
                            if not self.age:
                                site.end(job)
                                again = True
                            continue
                        start[job], at[job] = now, which
                        self._news.append((self.run_times.started, job, now))
                        if len(copies[job]) > 1:
                            if self.age:
                                heapq.heappush(late, ((now // self.age + 1) * self.age, job))
                            else:
                                self._withdraw(job, copies, at)
                                again = True
        speed = np.array(grid.speed)[at]
        return Outcome(start - log.submit_time, log.run_time / speed, sum(count >= HERD for count in wrong.values()))

    def _tell(self) -> None:
        """What has become of jobs is known as late as the states are."""
        for what, job, when in self._news:
            what(job, when)
        self._news.clear()

    def _withdraw(self, job: int, copies: dict[int, list[int]], at: Ints) -> None:
        """The copies of a job that has started are not needed any more, wait they or run."""
        for which in copies.pop(job):
            site = self.sites[which]
            if which == at[job] or job not in site.width:
                continue
            (site.end if job in site.started else site.withdraw)(job)


def closed(outcomes: dict[str, Outcome], policy: str, value: Callable[[Outcome], float]) -> str:
    """The share of the gap from the earliest start by requests to known run times that a policy closes."""
    base, known = value(outcomes[BASE]), value(outcomes[KNOWN])
    return f"{(base - value(outcomes[policy])) / (base - known):.0%}" if base > known else "-"


def main(
    logs: Annotated[list[str], typer.Argument(help="LOG:PROCESSORS[:SPEED] of each cluster.")],
    since: Annotated[float, typer.Option(min=0, help="First week of each log.")] = 0.0,
    weeks: Annotated[float, typer.Option(min=0, help="How many weeks.")] = 8.0,
    warm: Annotated[float, typer.Option(min=0, help="So many weeks are not judged.")] = 1.0,
    age: Annotated[float, typer.Option(min=0, help="How old states are where they are old (s).")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Decides what is random.")] = 1,
) -> None:
    console = Console(width=120, highlight=False)
    read, sizes, speeds = [], [], []
    for each in logs:
        path, size, *speed = each.split(":")
        read.append(read_job_log(path).fitting(int(size)))
        sizes.append(int(size))
        speeds.append(float(speed[0]) if speed else 1.0)
    for title, old, bursts in (("fresh states", 0.0, False), (f"states {age:.0f} s old", age, False),
                               (f"states {age:.0f} s old, bursts of {BURST} jobs", age, True)):  # fmt: skip
        grid = grid_of(read, sizes, speeds, since * WEEK, (since + weeks) * WEEK, bursts=bursts)
        judged = grid.log.submit_time >= (since + warm) * WEEK
        outcomes = {policy: Run(grid, policy, old, seed).run() for policy in POLICIES}
        table = Table(title=f"{int(judged.sum()):,} jobs on {len(sizes)} clusters, {title}")
        for heading in ("", "mean response", "closed", "bounded slowdown", "closed", "herds"):
            table.add_column(heading, justify="right" if heading else "left")

        def response(done: Outcome, judged: Ints = judged) -> float:
            return float(done.response[judged].mean())

        def slowdown(done: Outcome, judged: Ints = judged) -> float:
            return float(done.bounded_slowdown[judged].mean())

        for policy, done in outcomes.items():
            table.add_row(
                policy, f"{response(done):,.0f} s", closed(outcomes, policy, response), f"{slowdown(done):.2f}",
                closed(outcomes, policy, slowdown), str(done.herds),
            )  # fmt: skip
        console.print(table)


if __name__ == "__main__":
    typer.run(main)
