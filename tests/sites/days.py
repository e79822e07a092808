"""Made-up days of a grid of three sites, which :mod:`tests.sites.test_whole_days` compares with those known.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.sites.grid import Sites, answer_document
from metasched.sites.links import Probe
from metasched.sites.question import SitesQuestion
from metasched.sites.settings import SiteTable
from tests.sites.answers import answer, placement, waiting

SITES = {"east": 900.0, "west": None, "north": 200.0}
#: What is others each time.
CHANGING = frozenset({"id", "asked", "seconds"})


class Day:
    """A grid with its clock, and what its sites answer at the moment."""

    def __init__(self, number: int) -> None:
        self.source, self.now = np.random.default_rng(number), 1000.0
        self.said: dict[str, Any] = {}
        self.waits: dict[str, Any] = {}
        tables = [SiteTable(name=name, url=f"http://{name}.invalid", bandwidth=width) for name, width in SITES.items()]
        self.sites = Sites(tables, "0.1.0", ask=self.ask, now=lambda: self.now, wall=lambda: 5e8 + self.now)

    def ask(self, table: SiteTable, method: str, path: str, document: Any = None, timeout: float | None = None) -> Any:
        """The answer of a site."""
        return self.waits if path.startswith("/v1/waits") else self.said[table.name]

    def chosen(self, *values: Any) -> Any:
        """One of these."""
        return values[int(self.source.integers(len(values)))]

    def look(self) -> None:
        """Let all sites say something else."""
        for name in SITES:
            wait, time, processors = self.chosen(0.0, 0.0, 90.0), self.chosen(50.0, 100.0, 101.0), self.chosen(2, 4)
            cluster = {"scheduler": "c", "partition": "p", "free": self.chosen(0, 4, 8), "processors": 16,
                       "age": self.chosen(None, 5.0, 50.0)}  # fmt: skip
            later = [waiting(wait=self.chosen(20.0, 400.0), time=time, processors=processors)]
            found = answer(placement(time=time, wait=wait, processors=processors), later=self.chosen([], later))
            self.said[name] = self.chosen(
                *3 * [found | {"clusters": {"c/p": cluster}, "version": self.chosen("0.1.0", "0.2.0"),
                               "time": 5e8 + self.now + self.chosen(0.0, 300.0)}],
                answer(later=later), answer(why="no model of cg yet"),
            )  # fmt: skip
        self.waits = self.chosen(
            {"state": "waiting", "wait": 500.0, "low": 300.0}, {"state": "waiting", "wait": 90.0, "low": 0.0}, {}
        )

    def act(self) -> None:
        """Let something happen to the job that was sent last, or measure a link."""
        ready = self.sites.sent.open()
        job, sent = (ready[-1] if ready else None), self.sites.sent
        match self.chosen("see", "end", "end", "fail", "forget", "measure"):
            case "see" if job:
                sent.seen(job, running=True)
            case "end" if job:
                sent.ended(job, self.chosen(80.0, 150.0, 900.0))
            case "fail" if job:
                sent.ended(job, 10.0, failed=True)
            case "forget" if job:
                sent.missed(job)
                sent.forgotten(job)
            case _:
                link = Probe(self.chosen(100.0, 700.0), self.chosen(0.01, 0.5), self.chosen(0.0, 4000.0))
                self.sites.measured("home", {self.chosen(*SITES): link})

    def step(self) -> dict[str, Any]:
        """Time goes by, something happens, a job is sent, and perhaps one is considered again."""
        self.now += self.chosen(1.0, 60.0, 400.0, 4000.0)
        self.look()
        self.act()
        question = SitesQuestion("cg", 900.0, data=self.chosen(0.0, 5.0, 5.0, None), held_by=self.chosen((), ("east",)))
        ranking = self.sites.rank(question)
        found = {"answer": answer_document(question, ranking, "0.1.0")}
        if ranking.places and self.source.random() < 0.8:
            job = self.sites.sent.send(ranking.places, question)
            if self.source.random() < 0.8:
                where = self.chosen(*ranking.places).offer.site
                self.sites.sent.submitted(job.uid, where, "42", *self.chosen((0.0, 0.0), (5.0, 100.0)))
        if ready := self.sites.sent.open():
            self.now += self.chosen(10.0, 500.0)
            found["verdict"] = self.sites.reconsider(ready[0].uid)[0].as_dict()
        found["jobs"] = [job.as_dict(self.now) for job in self.sites.sent.newest(2)]
        return found | {"status": self.sites.status()}


def lasting(part: Any) -> Any:
    """A document without what is another each time."""
    if isinstance(part, dict):
        return {key: lasting(value) for key, value in part.items() if key not in CHANGING}
    return [lasting(each) for each in part] if isinstance(part, list | tuple) else part


def days() -> dict[str, Any]:
    """What is answered at each step of each day, by its name."""
    found = {}
    for number in range(5):
        day = Day(number)
        found |= {f"day {number}, step {step}": lasting(day.step()) for step in range(8)}
        day.sites.stop()
    return found


if __name__ == "__main__":
    print(written_down(days(), 8))
