"""Who chooses: metasched as it is shipped, an oracle, and the rules of other grids."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.sites.simulator import OWN, Grid, Place
from benchmarks.sites.workload import SITES
from metasched import __version__
from metasched.sites.choice import Known
from metasched.sites.grid import Sites
from metasched.sites.offer import FORMAT
from metasched.sites.question import SitesQuestion
from metasched.sites.settings import SiteTable

#: How often waiting jobs that may be sent elsewhere are considered (s).
RESENT = 300.0


class Rule:
    """What the simple rules share: the smaller the value of a site, the sooner it is chosen; nothing is learned.

    Parameters
    ----------
    seed : of what is drawn.
    """

    races = False

    def __init__(self, seed: int) -> None:
        self.random, self.turn = np.random.default_rng([seed, 3]), 0

    def choose(self, job: int, grid: Grid) -> list[int]:
        """The sites by their values."""
        values = [self.value(job, place, grid) for place in grid.places]
        return sorted(range(len(values)), key=values.__getitem__)

    def value(self, job: int, place: Place, grid: Grid) -> float:
        """The smaller, the sooner the site is chosen."""
        raise NotImplementedError

    def submitted(self, job: int, place: int, grid: Grid) -> None:
        """Nothing is learned."""

    def refused(self, job: int, place: int, grid: Grid) -> None:
        """Nothing is learned."""

    def look(self, grid: Grid) -> None:
        """Nothing is asked."""


class Random(Rule):
    """Any site."""

    def value(self, job: int, place: Place, grid: Grid) -> float:
        """A random number."""
        return float(self.random.random())


class RoundRobin(Rule):
    """One site after the other."""

    def choose(self, job: int, grid: Grid) -> list[int]:
        """The next site, then those after it."""
        self.turn += 1
        return [(self.turn + each) % len(grid.places) for each in range(len(grid.places))]


class LeastLoaded(Rule):
    """The site with the smallest share of its processors taken or waited for."""

    def value(self, job: int, place: Place, grid: Grid) -> float:
        """Processors of jobs that run and wait, by those that there are."""
        seen = place.snapshot
        waiting = sum(grid.width(place, each) for each in seen.waiting)
        return (place.model.processors - seen.free + waiting) / place.model.processors


class EarliestStart(Rule):
    """The site where the job would start first, by time limits, as ``sbatch -M`` does."""

    def value(self, job: int, place: Place, grid: Grid) -> float:
        """The wait (s)."""
        limit = float(grid.jobs.limit[job])
        return grid.line(place, by_limit=True).wait(int(grid.jobs.processors[job]), limit)


class Race(Random):
    """MultiKueue's: to all sites, with its data; where it starts first it stays."""

    races = True


class Oracle(Rule):
    """Knows all run times, bandwidths, jobs to come of the sites' own users and the failure; not the grid's next jobs.

    It leads the real queue of each site on until the job has ended there, and takes the site where that is first.
    """

    def value(self, job: int, place: Place, grid: Grid) -> float:
        """When the job would really be done there (s), if no other job of the grid came."""
        coming = [(grid.now + grid.transfer(job, place.number), job)]
        coming += [
            (at, each) for at, _, kind, number, each in grid._events if kind == "brought" and number == place.number
        ]
        return ends_at(grid, place, job, coming)


def ends_at(grid: Grid, place: Place, job: int, coming: Sequence[tuple[float, int]]) -> float:
    """When a job ends at a site (s), by all that is true; jobs come there at the times given."""
    queue = place.queue.copy()
    begins, returns = place.down
    events = [(at, 1, each) for at, each in coming]
    first = int(np.searchsorted(place.own.arrival, grid.now, side="right"))
    nearest = first
    ends = {each: start + grid.time(place, each) for each, start in queue.started.items()}
    events += [(end, 0, each) for each, end in ends.items()]
    if begins >= grid.now:
        events.append((begins, 2, -1))
    heapq.heapify(events)
    up, now = place.up, grid.now
    if not up:
        heapq.heappush(events, (returns, 3, -1))
    while events:
        own = float(place.own.arrival[nearest]) if nearest < len(place.own.arrival) else np.inf
        if own <= events[0][0]:
            now, kind, each = own, 1, OWN + nearest
            nearest += 1
        else:
            now, kind, each = heapq.heappop(events)
        if kind == 0 and ends.get(each) == now:
            if each == job:
                return now
            del ends[each]
            queue.end(each)
        elif kind == 1:
            # A transfer to a site that is down fails.
            if each == job and not up:
                return np.inf
            if up or each >= OWN:
                queue.submit(each, grid.width(place, each), grid.limit(place, each), now, now)
        elif kind == 2:
            up = False
            for killed in sorted(queue.started, key=queue.started.__getitem__):
                start = queue.started[killed]
                queue.end(killed)
                queue.submit(killed, grid.width(place, killed), grid.limit(place, killed), -1.0, start - 1e9)
            ends.clear()
            heapq.heappush(events, (returns, 3, -1))
        elif kind == 3:
            up = True
        if up:
            for begun in queue.schedule(now):
                ends[begun] = now + grid.time(place, begun)
                heapq.heappush(events, (ends[begun], 0, begun))
    return np.inf


class Shipped:
    """metasched: :class:`metasched.sites.grid.Sites` with the simulated sites in place of their daemons.

    Parameters
    ----------
    seed : not used; nothing is drawn.
    lying : factor of what a site says by its name, 1 where it says what it knows.
    """

    races = False

    def __init__(self, seed: int, lying: Mapping[str, float] | None = None) -> None:
        tables = [SiteTable(name=site.name, url=f"http://{site.name}", bandwidth=site.wide) for site in SITES]
        self.grid: Grid | None = None
        self.sites = self._sites(tables)
        self.uids: dict[int, str] = {}
        self.lying = lying or {}
        self.asked: tuple[int, float] = (0, 0.0)

    def _sites(self, tables: Sequence[SiteTable]) -> Sites:
        return Sites(tables, __version__, ask=self._answer, now=lambda: self.grid.now if self.grid else 0.0)

    def choose(self, job: int, grid: Grid) -> list[int]:
        """The sites in the order of the shipped ranking."""
        self.grid, jobs = grid, grid.jobs
        demands = {"processors": [int(jobs.processors[job])], "job": job}
        question = SitesQuestion(
            jobs.application[job], float(jobs.problem_size[job]), demands, data=float(jobs.data[job])
        )
        places = self.sites.rank(question).places
        self.uids[job] = self.sites.sent.send(places, question).uid
        names = [site.name for site in SITES]
        return [names.index(each.offer.site) for each in places]

    def submitted(self, job: int, place: int, grid: Grid) -> None:
        """Report the submission, and how long the data took."""
        seconds = grid.transfer(job, place)
        self.sites.sent.submitted(self.uids[job], SITES[place].name, f"{job}", float(grid.jobs.data[job]), seconds)

    def refused(self, job: int, place: int, grid: Grid) -> None:
        """Withdraw what was not submitted."""
        self.sites.sent.withdrawn(self.uids.pop(job))

    def look(self, grid: Grid) -> None:
        """Ask what became of the jobs."""
        self.grid = grid
        self.sites.outcomes.look()

    def _answer(
        self, table: SiteTable, method: str, path: str, document: Any = None, timeout: float | None = None
    ) -> Any:
        """What the daemon of a site answers; nothing while it is down."""
        grid = self.grid
        assert grid is not None
        place = next(each for each in grid.places if each.model.name == table.name)
        host = urlsplit(table.url).hostname
        if not place.up:
            raise RuntimeError(f"the daemon at {host} does not answer")
        if path.startswith("/v1/placements"):
            clock = place.model.clock
            return [
                {"made_at": submitted + clock,
                 "outcome": {"job": f"{job}", "start": start + clock, "execution_time": end - start, "exit_status": 0}}
                for job, submitted, start, end in place.ended[-200:]
            ]  # fmt: skip
        if path.startswith("/v1/waits"):
            return {"state": "waiting"}
        return self._ranking(grid, place, document["job"])

    def _ranking(self, grid: Grid, place: Place, job: int) -> dict[str, Any]:
        jobs, number, seen = grid.jobs, place.number, place.snapshot
        time, processors = float(jobs.expected[number, job]), int(jobs.processors[job])
        wait = grid.line(place).wait(processors, float(jobs.limit[job]))
        says = self.lying.get(place.model.name, 1.0)
        low, high = (says * float(each[number, job]) for each in (jobs.low, jobs.high))
        later = {
            "cluster": "main", "processors": processors, "wait": says * wait, "low": 0.5 * says * wait,
            "high": 2.0 * says * wait, "execution_time": says * time, "execution_low": low, "execution_high": high,
        }  # fmt: skip
        main = {"scheduler": "", "partition": "", "free": seen.free, "processors": place.model.processors,
                "age": grid.now - seen.at}  # fmt: skip
        return {
            "format": FORMAT,
            "version": __version__,
            "placements": [],
            "later": [later],
            "clusters": {"main": main},
        }


class _NothingPending(Sites):
    """The shipped sites, but what was sent counts for nothing."""

    def rank(self, question: SitesQuestion) -> Any:
        sent = self.sent
        known = sent.known
        try:
            sent.known = lambda names: {  # type: ignore[method-assign]
                name: Known(each.trust, (), each.last) for name, each in known(names).items()
            }
            return super().rank(question)
        finally:
            sent.known = known  # type: ignore[method-assign]


class WithoutPending(Shipped):
    """metasched, but what was sent a moment ago counts for nothing."""

    def _sites(self, tables: Sequence[SiteTable]) -> Sites:
        return _NothingPending(tables, __version__, ask=self._answer, now=lambda: self.grid.now if self.grid else 0.0)


class Resending(Shipped):
    """metasched, and every five minutes the jobs that wait too long are sent elsewhere, as ``sites resend`` does it.

    A job is withdrawn before its data is brought to the other site, where it goes to the end of the queue.
    """

    def __init__(self, seed: int, lying: Mapping[str, float] | None = None) -> None:
        super().__init__(seed, lying)
        self._last = 0.0

    def look(self, grid: Grid) -> None:
        """Ask what became of the jobs, and send those elsewhere for which that is said to pay."""
        super().look(grid)
        if grid.now - self._last < RESENT:
            return
        self._last = grid.now
        for place in grid.places:
            for job in place.queue.waiting if place.up else ():
                # A job may be withdrawn where its site is reached, and its daemon has seen it.
                if job in self.uids and job in place.snapshot.waiting:
                    self._reconsider(job, place, grid)

    def _reconsider(self, job: int, place: Place, grid: Grid) -> None:
        found, ranking = self.sites.reconsider(self.uids[job])
        names = [site.name for site in SITES]
        order = [names.index(each.offer.site) for each in ranking.places]
        others = [each for each in order if each != place.number and grid.places[each].up]
        if found.withdraw and others:
            grid.resend(job, place.number, others[0])
        elif found.withdraw:
            self.sites.sent.stays(self.uids[job])

    def _answer(
        self, table: SiteTable, method: str, path: str, document: Any = None, timeout: float | None = None
    ) -> Any:
        """What the daemon of a site answers: also how long a job waits still."""
        found = super()._answer(table, method, path, document, timeout)
        grid, number = self.grid, path.rpartition("/")[2]
        if grid is None or not path.startswith("/v1/waits"):
            return found
        place = next(each for each in grid.places if each.model.name == table.name)
        if int(number) not in place.snapshot.waiting:
            return found | {"state": "running"}
        wait = self.lying.get(place.model.name, 1.0) * grid.line(place).starts()[number]
        return found | {"wait": wait, "low": 0.5 * wait, "high": 2.0 * wait}


POLICIES: dict[str, Any] = {
    "random": Random,
    "round robin": RoundRobin,
    "least loaded": LeastLoaded,
    "earliest start": EarliestStart,
    "race (MultiKueue)": Race,
    "metasched, no pending load": WithoutPending,
    "metasched": Shipped,
    "metasched, waiting jobs resent": Resending,
    "oracle": Oracle,
}
