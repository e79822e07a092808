"""The sites of a grid: one ranking of all, and the outcomes of the jobs that were sent to them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from metasched.records import InputError
from metasched.sites.choice import SitePlacement, ranked_sites
from metasched.sites.data import transfers
from metasched.sites.lenders import Lenders
from metasched.sites.links import Probe, SiteLink, as_document
from metasched.sites.offer import FORMAT, Offer, offers_in, offers_of_grid
from metasched.sites.outcomes import Outcomes
from metasched.sites.question import SitesQuestion
from metasched.sites.sent_jobs import SentJobs
from metasched.sites.settings import Routing, SiteTable
from metasched.sites.site_client import SiteAnswer, SiteClient, ask_site
from metasched.sites.site_paths import SitePaths
from metasched.sites.withdrawal import Verdict, verdict
from metasched.store.database.sent_job_records import SentJobRecords
from monitors.one_line import one_line

#: No routes between sites are configured.
NO_ROUTING = Routing()
#: Grids that ask each other in a row at most, and what is left of the time for each further one.
MOST_HOPS, LEFT = 4, 0.8
#: Rankings that are made at the same time.
TOGETHER = 8
#: A clock that is off by more is shown (s).
CLOCK = 60.0


@dataclass(frozen=True, slots=True)
class SitesRanking:
    """The sites that answered, best first, and those that did not, each with the reason in a line."""

    places: tuple[SitePlacement, ...]
    left_out: Mapping[str, str]
    warnings: tuple[str, ...] = ()


class Sites:
    """The sites of a grid.

    Parameters
    ----------
    tables : how they are configured.
    version : of this metasched, to be compared with theirs.
    ask : asks one site; replaced in tests only.
    now, wall : the time by a monotonic clock, and the time of day (s since 1970).
    kept : where sent jobs are stored; None for nowhere.
    rested : how long a job stays at least where it was submitted (s).
    routing : the links between the sites, as far as they are configured.

    Attributes
    ----------
    tables : the sites by name.
    uid : what this daemon is called when grids ask each other.
    sent : the jobs that were sent.
    outcomes : finds how these ended.
    paths : between the sites, as their agents measured them.
    """

    def __init__(
        self,
        tables: Sequence[SiteTable],
        version: str,
        *,
        ask: Callable[..., Any] = ask_site,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        kept: SentJobRecords | None = None,
        rested: float = 300.0,
        routing: Routing = NO_ROUTING,
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self.uid = secrets.token_hex(6)
        self.sent = SentJobs(now, kept, wall)
        self.paths = SitePaths(routing, now)
        self._here = routing.here
        self.pool = ThreadPoolExecutor(TOGETHER, thread_name_prefix="sites")
        self._version, self._now, self._wall, self._client = version, now, wall, SiteClient(ask)
        self.outcomes = Outcomes(self.tables, self._client, self.sent, now)
        self._lenders = Lenders(self._client, now)
        self._rested = rested
        self._heard: dict[str, tuple[SiteAnswer, float]] = {}
        self._clocks: dict[str, float | None] = {}

    def rank(self, question: SitesQuestion) -> SitesRanking:
        """Ask the sites at the same time, and rank their offers.

        Raises
        ------
        InputError : when the question names a site that there is not, or came back here in a circle of grids.
        """
        asked = self._asked(question)
        own = {"application": question.application, "problem_size": question.problem_size, **question.demands}
        within = LEFT * question.within
        onward = own | {"data": 0.0, "via": [*question.via, self.uid], "within": within}
        questions = {
            table.name: ("POST", "/v1/sites/rankings", onward)
            if table.grid
            else ("POST", "/v1/rankings", own | {"later": True, "top": 5})
            for table in asked
        }
        began = self._now()
        heard = self._client.ask_all(asked, questions, within)
        heard, lenders = self._lenders.answers(asked, questions, heard, began + within)
        offers: list[Offer] = []
        left_out: dict[str, str] = {}
        notes: dict[str, tuple[str, ...]] = {}
        for table in asked:
            answer = heard[table.name]
            self._clocks[table.name] = _clock(answer, self._wall())
            try:
                if answer.why:
                    raise ValueError(answer.why)
                found = (offers_of_grid if table.grid else offers_in)(answer.answer, table.name)
                offers += [replace(each, lenders=lenders.get(table.name, ())) for each in found]
                notes[table.name] = self._notes(answer.answer)
            except ValueError as error:
                left_out[table.name] = str(error)
                answer = replace(answer, why=str(error))
            self._heard[table.name] = answer, self._now()
        names = [table.name for table in asked]
        known = {
            name: replace(each, warnings=(*notes.get(name, ()), *each.warnings))
            for name, each in self.sent.known(names).items()
        }
        times = transfers(names, question.data, self.links(), question.held_by)
        places = ranked_sites(offers, known, times)
        return SitesRanking(tuple(places), left_out, tuple(_doubts(question, places)))

    def links(self) -> dict[str, SiteLink]:
        """The link to each site where it is known: as probes, other paths and transfers show it, else as configured."""
        configured = {name: table.bandwidth for name, table in self.tables.items()}
        return self.sent.links(configured, self.paths.derived(self._here, [*self.tables]))

    def measured(self, site: str, links: Mapping[str, Probe]) -> list[str]:
        """Note what the agent of a site has measured of the links from there to others.

        Parameters
        ----------
        site : where it is: this daemon's own, or another of the grid.
        links : by the names of the others.

        Returns
        -------
        The others for which it means nothing: neither leads a link there from here, nor a route between the two.

        Raises
        ------
        StoreError : when it cannot be stored.
        """
        here = site == self._here if self._here else site not in self.tables
        direct = {name: link for name, link in links.items() if here and name in self.tables}
        self.sent.measured(direct)
        unknown = self.paths.measured(site, links)
        return [name for name in unknown if name not in direct]

    def now(self) -> float:
        """The time by the monotonic clock by which jobs were sent (s)."""
        return self._now()

    def reconsider(self, uid: str) -> tuple[Verdict, SitesRanking]:
        """Whether a job that waits at its site should be withdrawn and sent elsewhere, and the sites as they rank now.

        Where it should, that is noted: from now on its site is not asked about it, until its way is reported
        (:meth:`SentJobs.submitted`, :meth:`SentJobs.stays`). One that is being withdrawn is ranked again.

        Parameters
        ----------
        uid : what names the job here.

        Raises
        ------
        InputError : when no such job was sent, it was not submitted, or that changes while the sites are asked.
        """
        job = self.sent.find(uid)
        if job.question is None:
            raise InputError(f"the request of job {uid} is unknown")
        if job.state == "withdrawing":
            ranking = self.rank(job.question)
            self.sent.withdraw(job, ranking.places)
            return Verdict(True, "it is being withdrawn"), ranking
        if job.state != "submitted":
            raise InputError(f"job {uid} is {job.state} at {job.site}, expected one that waits at a site")
        if job.site not in self.tables:
            return Verdict(False, "that site is not configured any more"), SitesRanking((), {})
        try:
            waits = self._client.ask(self.tables[job.site], "GET", job.wait_path)
        except (InputError, RuntimeError) as error:
            return Verdict(False, one_line(str(error))), SitesRanking((), {})
        ranking = self.rank(job.question)
        found = verdict(
            job, waits, ranking.places, self.sent.known([job.site])[job.site].trust, self._now(), self._rested
        )
        if found.withdraw:
            self.sent.withdraw(job, ranking.places)
        return found, ranking

    def status(self) -> list[dict[str, Any]]:
        """The latest answer of each site, its correction, and the jobs sent there."""
        now, found, links = self._now(), [], self.links()
        known = self.sent.known([*self.tables])
        for name, table in self.tables.items():
            heard, at = self._heard.get(name, (None, now))
            site = known[name]
            found.append(
                {
                    "site": name, "url": table.url, "grid": table.grid, "ssh": table.ssh, "scheduler": table.scheduler,
                    "asked": None if heard is None else now - at,
                    "seconds": None if heard is None else heard.seconds,
                    "fault": "" if heard is None else heard.why,
                    "clock": self._clocks.get(name),
                    **as_document(links.get(name)),
                    "trust": {"multiplier": site.trust.multiplier, "low": site.trust.low, "high": site.trust.high,
                              "outcomes": site.trust.outcomes},
                    "open": len(site.sent),
                    "warnings": list(site.warnings),
                }
            )  # fmt: skip
        return found

    def stop(self) -> None:
        """Take no more questions; those that are open are not waited for."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _asked(self, question: SitesQuestion) -> list[SiteTable]:
        if self.uid in question.via:
            raise InputError(f"grids ask each other in a cycle: {' > '.join([*question.via, self.uid])}")
        if len(question.via) >= MOST_HOPS:
            raise InputError(f"the question went through {len(question.via)} grids, expected fewer than {MOST_HOPS}")
        if not self.tables:
            raise InputError("no site is configured, expected [[site]] in the daemon's configuration")
        for name in (*question.sites, *question.held_by):
            if name not in self.tables:
                raise InputError(f"no site {name}, expected one of {', '.join(self.tables)}")
        return [table for name, table in self.tables.items() if not question.sites or name in question.sites]

    def _notes(self, answer: Any) -> tuple[str, ...]:
        version = one_line(str(answer.get("version", "")), 40)
        return () if version == self._version else (f"it runs metasched {version or '?'}, here is {self._version}",)


def _clock(heard: SiteAnswer, now: float) -> float | None:
    """How far the clock of a site is ahead (s), None where it says nothing of it or is right to within a minute."""
    said = heard.answer.get("time") if isinstance(heard.answer, dict) else None
    if not isinstance(said, float) or not abs(said) <= 1e12:
        return None
    offset = said - now
    return offset if abs(offset) > CLOCK + heard.seconds else None


def _doubts(question: SitesQuestion, places: Sequence[SitePlacement]) -> list[str]:
    if question.data is None and len(places) > 1:
        return ["the size of the data is unknown: sites are compared without the time to transfer it"]
    return [f"{each.offer.site}: {each.transfer.how}" for each in places if each.transfer.seconds is None]


def answer_document(question: SitesQuestion, ranking: SitesRanking, version: str) -> dict[str, Any]:
    """The ranking as ``metasched sites rank --json`` and the daemon answer it."""
    return {
        "format": FORMAT,
        "version": version,
        "application": question.application,
        "problem_size": question.problem_size,
        "data": question.data,
        "sites": [{"rank": rank, **each.as_dict()} for rank, each in enumerate(ranking.places, start=1)],
        "left_out": [{"site": name, "why": why} for name, why in ranking.left_out.items()],
        "warnings": list(ranking.warnings),
        "why": "" if ranking.places else "no site can take the job: " + "; ".join(
            f"{name}: {why}" for name, why in ranking.left_out.items()
        ),
    }  # fmt: skip
