"""Jobs that were sent to sites: their predictions, their load there, and their outcomes."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode

from pydantic import TypeAdapter, ValidationError

from metasched.records import InputError
from metasched.sites.choice import Known, SitePlacement
from metasched.sites.data import MEGABITS
from metasched.sites.links import STALE, Probe, SiteLink, site_link
from metasched.sites.pending import PendingJob
from metasched.sites.question import SitesQuestion
from metasched.sites.trust import REMEMBERED, trust
from metasched.store.database.sent_job_records import SentJobRecords
from metasched.validation import first_error

_log = logging.getLogger(__name__)

#: Jobs that are remembered, and how long one may be without an outcome (s).
MOST, KEPT = 10_000, 30 * 86_400.0
#: How long a site may show a job in its queue after its end (s): its daemon asks its scheduler only now and then.
SHOWN = 60.0
#: How long a warning says that a site never showed a job (s).
SAID = 7 * 86_400.0
#: What the newest transfer or probe counts against those before it.
NEWEST = 0.3

State = Literal["chosen", "submitted", "withdrawing", "ended", "failed", "withdrawn", "unknown"]


@dataclass(frozen=True, slots=True)
class SentJob:
    """A job that was sent.

    Parameters
    ----------
    uid : what names it here.
    chosen_at : when the site was chosen (s, monotonic).
    places : the ranking that it was chosen from.
    place : where it went.
    state : what is known of it.
    job : its number at the site, empty until it is submitted.
    submitted_at : when it was submitted (s, monotonic), None until then.
    seen_at : when the site last showed it in its queue (s, monotonic).
    running : whether it ran then.
    missed_at : when the site first did not show it, though it should have (s, monotonic); None where it never was so.
    took : from its submission to its end (s), None until then.
    question : that it was chosen by, None where that was not kept.
    resent : how often it was withdrawn and sent elsewhere.
    """

    uid: str
    chosen_at: float
    places: tuple[SitePlacement, ...]
    place: SitePlacement
    state: State = "chosen"
    job: str = ""
    submitted_at: float | None = None
    seen_at: float | None = None
    took: float | None = None
    question: SitesQuestion | None = None
    resent: int = 0
    running: bool = False
    missed_at: float | None = None

    @property
    def site(self) -> str:
        """The name of the site where it went."""
        return self.place.offer.site

    @property
    def wait_path(self) -> str:
        """Where its site's daemon tells of its wait; two schedulers of a site may each have a job of this number."""
        scheduler = self.place.offer.scheduler
        return f"/v1/waits/{quote(self.job, safe='')}" + (f"?{urlencode({'cluster': scheduler})}" if scheduler else "")

    @property
    def overdue(self) -> float | None:
        """The least ratio of the time taken to the time predicted, where its site still showed it after its interval.

        None for a job whose prediction was made with other sites' runs: it says nothing of how far a site is believed.
        """
        if self.seen_at is None or self.submitted_at is None or self.place.offer.lenders:
            return None
        shown = self.seen_at - self.submitted_at
        return shown / self.place.predicted if shown > self.place.offer.high + self.place.pending else None

    @property
    def never_shown(self) -> bool:
        """Whether its site never showed it, and did not when by its own interval the job had not ended."""
        if self.state != "unknown" or self.seen_at is not None or self.missed_at is None or self.submitted_at is None:
            return False
        return self.missed_at - self.submitted_at < self.place.offer.low + self.place.pending

    def as_dict(self, now: float) -> dict[str, Any]:
        """The job as a JSON document, with ages (s) in place of moments."""
        return {
            "id": self.uid, "site": self.site, "cluster": self.place.offer.cluster, "state": self.state,
            "job": self.job, "age": now - self.chosen_at, "predicted": self.place.predicted,
            "completion": self.place.completion, "took": self.took, "resent": self.resent,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Site:
    """What is known of a site.

    Parameters
    ----------
    ratios : of the time taken to the time predicted.
    bandwidth : that transfers got (Mbit/s).
    last : when it was chosen last (s).
    probed, round_trip : what probes found (Mbit/s, s).
    probed_at : when (s).
    share : what transfers got of what probes had found.
    """

    ratios: tuple[float, ...] = ()
    bandwidth: float | None = None
    last: float | None = None
    probed: float | None = None
    round_trip: float | None = None
    probed_at: float | None = None
    share: float | None = None

    def probe(self, now: float) -> Probe | None:
        """The result of probes, with its age."""
        if self.probed is None or self.round_trip is None or self.probed_at is None:
            return None
        return Probe(self.probed, self.round_trip, now - self.probed_at)


_Kept = TypeVar("_Kept", SentJob, _Site)
_SENT, _SITE = TypeAdapter(SentJob), TypeAdapter(_Site)
#: Fields that hold moments. In the database they are times of day, since a monotonic clock ends with its machine.
_MOMENTS: Mapping[type, Sequence[str]] = {
    SentJob: ("chosen_at", "submitted_at", "seen_at", "missed_at"),
    _Site: ("last", "probed_at"),
}


class SentJobs:
    """The jobs that were sent to sites, and what is learned from them about the sites' predictions and links.

    What is noted is stored first: it outlives the daemon, and what cannot be stored is not noted. Whatever users report
    of a job is refused by InputError where no such job was sent, or its end is known already; what a site says of one
    is passed over where the job is not any more what the site was asked about.

    Parameters
    ----------
    now : the time by a monotonic clock (s).
    kept : where they are stored; None for nowhere.
    wall : the time of day (s since 1970).
    """

    def __init__(
        self, now: Callable[[], float], kept: SentJobRecords | None = None, wall: Callable[[], float] = time.time
    ) -> None:
        self._now, self._kept, self._wall, self._lock = now, kept, wall, Lock()
        self._jobs: dict[str, SentJob] = {}
        self._sites: dict[str, _Site] = {}

    def restore(self) -> None:
        """Restore the stored state; invalid rows are left out.

        Raises
        ------
        StoreError : when the database cannot be read.
        """
        if self._kept is None:
            return
        with self._lock:
            self._jobs = self._read(_SENT, self._kept.jobs())
            self._sites = self._read(_SITE, self._kept.sites())

    def send(self, places: Sequence[SitePlacement], question: SitesQuestion | None = None) -> SentJob:
        """Note that a job goes to the first place of a ranking; it counts as load there from now on.

        Parameters
        ----------
        places : the ranking.
        question : that it answers, for jobs that may be sent elsewhere later.
        """
        now = self._now()
        with self._lock:
            job = SentJob(secrets.token_hex(16), now, tuple(places), places[0], question=question)
            oldest = [*self._jobs][: max(len(self._jobs) + 1 - MOST, 0)]
            self._note(job, {job.site: replace(self._of(job.site), last=now)}, forgotten=oldest)
        return job

    def submitted(self, uid: str, site: str, number: str, gigabytes: float = 0.0, seconds: float = 0.0) -> SentJob:
        """Record that a job was submitted, and the duration of its data transfer.

        Parameters
        ----------
        uid : what names it here.
        site : where it was submitted, one of its ranking.
        number : its number there.
        gigabytes, seconds : of the data that was brought there, 0 where none was.

        Raises
        ------
        InputError : when the site is not in its ranking either.
        """
        with self._lock:
            job = self._open(uid)
            place = next((each for each in job.places if each.offer.site == site), None)
            if place is None:
                names = ", ".join(each.offer.site for each in job.places)
                raise InputError(f"site is {site!r}, expected one of {names}")
            now = self._now()
            known = replace(self._of(site), last=now)
            if gigabytes > 0.0 and seconds > 0.0:
                width, probe = MEGABITS * gigabytes / seconds, known.probe(now)
                known = replace(known, bandwidth=_led_on(known.bandwidth, width))
                if probe is not None and probe.age <= STALE:
                    known = replace(known, share=_led_on(known.share, width / probe.bandwidth))
            if job.state == "submitted" and (job.site, job.job) == (site, number):
                return job  # reported again
            again = job.state == "withdrawing"
            left = {job.site: _learned(known if job.site == site else self._of(job.site), job.overdue)}
            new = replace(job, place=place, state="submitted", job=number, submitted_at=now, seen_at=None,
                          running=False, missed_at=None, resent=job.resent + again)  # fmt: skip
            return self._note(new, {site: known} | left)

    def withdraw(self, job: SentJob, places: Sequence[SitePlacement]) -> SentJob:
        """Record that a job will be withdrawn from its site, and where it may go; again if that changes.

        Raises
        ------
        InputError : when it is not what it was any more, such as submitted elsewhere meanwhile.
        """
        with self._lock:
            self._open(job.uid)
            known = self._unchanged(job)
            if known is None or known.state == "chosen":
                raise InputError(f"job {job.uid} is {self._jobs[job.uid].state}, expected it to be submitted still")
            return self._note(replace(known, state="withdrawing", places=tuple(places)))

    def stays(self, uid: str) -> SentJob:
        """Note that a job that was to be withdrawn stays at its site, since it has started there."""
        with self._lock:
            job = self._open(uid)
            return self._note(replace(job, state="submitted")) if job.state == "withdrawing" else job

    def find(self, uid: str) -> SentJob:
        """The known state of a job, by its id."""
        with self._lock:
            return self._job(uid)

    def withdrawn(self, uid: str) -> SentJob:
        """Note that a job was not submitted anywhere; it counts as load no more."""
        with self._lock:
            return self._given_up(self._open(uid), "withdrawn")

    def seen(self, job: SentJob, *, running: bool) -> None:
        """Note that the site shows the job in its queue, running or not."""
        with self._lock:
            if (known := self._unchanged(job)) is not None:
                self._note(replace(known, seen_at=self._now(), running=running))

    def missed(self, job: SentJob) -> None:
        """Note that the site does not show the job in its queue, though it should."""
        with self._lock:
            if (known := self._unchanged(job)) is not None:
                self._note(replace(known, missed_at=self._now()))

    def ended(self, job: SentJob, took: float, *, failed: bool = False) -> None:
        """Record that a job ended, its time since the submission (s), and learn it if it succeeded.

        A job did not end before its site showed it in its queue for the last time, nor does it end in the future,
        whatever the site says of it.
        """
        with self._lock:
            known = self._unchanged(job)
            if known is None:
                return
            job, age = known, self._now() - known.chosen_at
            took = took if took <= age + SHOWN else age
            if job.seen_at is not None and job.submitted_at is not None:
                shown = job.seen_at - job.submitted_at
                took = took if took >= shown - SHOWN else shown
            site = self._of(job.site)
            # What it missed with other sites' runs says nothing of how far it is to be believed.
            if not failed and took > 0.0 and not job.place.offer.lenders:
                site = _learned(site, took / job.place.predicted)
            self._note(replace(job, state="failed" if failed else "ended", took=took), {job.site: site})

    def forgotten(self, job: SentJob) -> None:
        """Note that the site knows nothing of the job and never will."""
        with self._lock:
            if (known := self._unchanged(job)) is not None:
                self._given_up(known, "unknown")

    def open(self) -> list[SentJob]:
        """The jobs that were submitted and whose outcome is not known, the oldest first; those too old are given up."""
        now = self._now()
        with self._lock:
            for job in [*self._jobs.values()]:
                if job.state == "submitted" and now - job.chosen_at > KEPT:
                    self._note(replace(job, state="unknown"))
            return [job for job in self._jobs.values() if job.state == "submitted"]

    def newest(self, count: int) -> list[SentJob]:
        """The jobs that were sent last, the newest first."""
        with self._lock:
            return list(self._jobs.values())[: -count - 1 : -1]

    def known(self, sites: Sequence[str]) -> Mapping[str, Known]:
        """The known state of each site: its correction, and the jobs that were sent there and may not be visible.

        A job that its site still shows after the end of its interval corrects the site before it ends.
        """
        now, found = self._now(), {}
        sent: dict[str, list[PendingJob]] = {name: [] for name in sites}
        overdue: dict[str, list[float]] = {name: [] for name in sites}
        lost = dict.fromkeys(sites, 0)
        with self._lock:
            for job in self._jobs.values():
                if job.site not in sent:
                    continue
                if job.state in ("chosen", "submitted"):
                    sent[job.site].append(_as_load(job, now))
                if job.state in ("submitted", "withdrawing") and (ratio := job.overdue) is not None:
                    overdue[job.site].append(ratio)
                lost[job.site] += job.never_shown and now - job.chosen_at <= SAID
            for name, jobs in sent.items():
                site = self._of(name)
                last = None if site.last is None else now - site.last
                believed = trust((*site.ratios, *overdue[name]))
                found[name] = Known(believed, tuple(jobs), last, _warnings(len(overdue[name]), lost[name]))
        return found

    def measured(self, links: Mapping[str, Probe]) -> None:
        """Note what probes found of the links to sites.

        Raises
        ------
        StoreError : when it cannot be stored; then nothing is noted.
        """
        now = self._now()
        with self._lock:
            sites = {}
            for name, link in links.items():
                known, at = self._of(name), now - link.age
                if known.probed_at is None or at > known.probed_at:
                    width, trip = _led_on(known.probed, link.bandwidth), _led_on(known.round_trip, link.round_trip)
                    sites[name] = replace(known, probed=width, round_trip=trip, probed_at=at)
            if self._kept is not None and sites:
                self._kept.save_sites(self._documents(sites))
            self._sites |= sites

    def links(
        self, configured: Mapping[str, float | None], derived: Mapping[str, Probe] | None = None
    ) -> dict[str, SiteLink]:
        """The link to each site where it is known.

        Parameters
        ----------
        configured : bandwidth to each site as the administrator states it (Mbit/s), None where it is not stated.
        derived : what follows from measurements between other sites.
        """
        now, found, others = self._now(), {}, derived or {}
        with self._lock:
            for name, width in configured.items():
                known = self._of(name)
                found[name] = site_link(width, known.bandwidth, known.probe(now), known.share, others.get(name))
        return {name: link for name, link in found.items() if link is not None}

    def _job(self, uid: str) -> SentJob:
        if uid not in self._jobs:
            raise InputError(f"no job {uid[:32]} was sent")
        return self._jobs[uid]

    def _unchanged(self, job: SentJob) -> SentJob | None:
        """What is known now of a job that a site was asked about; None where it is not what was asked about any more.

        Sites take their time to answer: meanwhile it may have been reported, sent elsewhere, or forgotten.
        """
        known = self._jobs.get(job.uid)
        same = known is not None and (known.state, known.site, known.job) == (job.state, job.site, job.job)
        return known if same else None

    def _open(self, uid: str) -> SentJob:
        job = self._job(uid)
        if job.state not in ("chosen", "submitted", "withdrawing"):
            raise InputError(f"job {uid} is {job.state}, expected one not reported yet")
        return job

    def _of(self, site: str) -> _Site:
        return self._sites.get(site, _Site())

    def _note(self, job: SentJob, sites: Mapping[str, _Site] | None = None, forgotten: Sequence[str] = ()) -> SentJob:
        """Store the changes of a job and of sites, then apply them."""
        sites = sites or {}
        if self._kept is not None:
            moved = _shifted(job, self._wall() - self._now())
            document = _SENT.dump_python(moved, mode="json")
            self._kept.save(job.uid, moved.chosen_at, document, self._documents(sites), forgotten)
        for uid in forgotten:
            del self._jobs[uid]
        self._jobs[job.uid] = job
        self._sites |= dict(sites)
        return job

    def _given_up(self, job: SentJob, state: State) -> SentJob:
        """Note that nothing more will be heard of a job but that it took at least so long, where it is overdue."""
        return self._note(replace(job, state=state), {job.site: _learned(self._of(job.site), job.overdue)})

    def _documents(self, sites: Mapping[str, _Site]) -> dict[str, Any]:
        offset = self._wall() - self._now()
        return {name: _SITE.dump_python(_shifted(each, offset), mode="json") for name, each in sites.items()}

    def _read(self, adapter: TypeAdapter[_Kept], documents: Mapping[str, Any]) -> dict[str, _Kept]:
        now, found = self._now(), {}
        offset = self._wall() - now
        for name, document in documents.items():
            try:
                # What was noted in the future was noted before the clock was put back.
                found[name] = _shifted(adapter.validate_python(document), -offset, latest=now)
            except ValidationError as error:
                _log.warning("the record of %s cannot be read: %s; it is left out", name, first_error(error))
        return found


def _shifted(each: _Kept, seconds: float, latest: float = math.inf) -> _Kept:
    """A record with its moments on a clock that is ahead by so much (s)."""
    moments = {name: getattr(each, name) for name in _MOMENTS[type(each)]}
    return replace(each, **{name: min(at + seconds, latest) for name, at in moments.items() if at is not None})


def _learned(site: _Site, ratio: float | None) -> _Site:
    """A site with one more ratio of the time taken to the time predicted, where there is one."""
    return site if ratio is None else replace(site, ratios=(*site.ratios, ratio)[-REMEMBERED:])


def _warnings(overdue: int, lost: int) -> tuple[str, ...]:
    """What the jobs of a site say against it, each in a line."""
    found = []
    if overdue:
        found.append(f"{overdue} {'job takes' if overdue == 1 else 'jobs take'} longer than it said")
    if lost:
        found.append(f"it never showed {lost} {'job' if lost == 1 else 'jobs'} that it had accepted")
    return tuple(found)


def _as_load(job: SentJob, now: float) -> PendingJob:
    place = job.place
    submitted = None if job.submitted_at is None else now - job.submitted_at
    return PendingJob(place.offer.cluster, place.offer.processors, place.offer.execution_time, place.transfer.counted,
                   now - job.chosen_at, submitted)  # fmt: skip


def _led_on(before: float | None, newest: float) -> float:
    return newest if before is None else before + NEWEST * (newest - before)
