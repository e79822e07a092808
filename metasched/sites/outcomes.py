"""Finds the outcomes of jobs that were sent to sites: by the placements that a site lists, else by its queue."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metasched.client.connection import DeniedError
from metasched.records import InputError
from metasched.sites.offer import LONGEST
from metasched.sites.sent_jobs import SHOWN, SentJob, SentJobs
from metasched.sites.settings import SiteTable
from metasched.sites.site_client import SiteClient

#: Placements of a site that are asked for to find outcomes, jobs that are sought in its queue at a time, and how long
#: that may take (s): a site that answers slowly must not delay the others.
NEWEST, AT_A_TIME, PATIENCE = 1000, 50, 10.0
#: Time after which a job that its site has never shown is given up (s), from when the site first did not show it.
NEVER_SEEN = 3600.0
#: Largest uncertainty of the end of a job from which a site is learned: seconds, or a share of the time.
OFF, OFF_PART = 60.0, 0.1


class Outcomes:
    """The outcomes of sent jobs.

    Parameters
    ----------
    tables : how the sites are configured, by name.
    client : asks them.
    sent : the jobs, of which the outcomes are noted.
    now : the time by the monotonic clock by which jobs were sent (s).
    """

    def __init__(
        self, tables: Mapping[str, SiteTable], client: SiteClient, sent: SentJobs, now: Callable[[], float]
    ) -> None:
        self._tables, self._client, self._sent, self._now = tables, client, sent, now
        #: When each open job was sought last, by its uid (s).
        self._sought: dict[str, float] = {}

    def look(self) -> None:
        """Ask the sites for the outcomes of the jobs sent there; those that do not answer are asked again later."""
        open_jobs: dict[str, list[SentJob]] = {}
        for job in self._sent.open():
            open_jobs.setdefault(job.site, []).append(job)
        uids = {job.uid for jobs in open_jobs.values() for job in jobs}
        self._sought = {uid: at for uid, at in self._sought.items() if uid in uids}
        tables = [self._tables[name] for name in open_jobs if name in self._tables]
        path = f"/v1/placements?limit={NEWEST}"
        heard = self._client.ask_all(tables, {table.name: ("GET", path, None) for table in tables}, 60.0)
        for table in tables:
            outcomes = _reported(heard[table.name].answer)
            left = []
            for job in open_jobs[table.name]:
                outcome = next((each for each in outcomes.get(job.job, ()) if each.is_of(job, self._now())), None)
                if outcome is not None:
                    self._sent.ended(job, outcome.took, failed=outcome.failed)
                else:
                    left.append(job)
            self._seek(table, sorted(left, key=lambda job: self._sought.get(job.uid, -math.inf)))

    def _seek(self, table: SiteTable, jobs: list[SentJob]) -> None:
        """Look for jobs in the queue of their site as far as it answers in time; the first ones next time last."""
        ends = self._now() + PATIENCE
        for job in jobs[:AT_A_TIME]:
            if self._now() > ends or not self._in_queue(table, job):
                return
            self._sought[job.uid] = self._now()

    def _in_queue(self, table: SiteTable, job: SentJob) -> bool:
        """Look for a job in the queue of its site; whether the site answers."""
        try:
            found = self._client.ask(table, "GET", job.wait_path)
        except (DeniedError, RuntimeError):  # of a token that has expired, for example
            return False
        except InputError:
            now, begun = self._now(), job.submitted_at or 0.0
            if job.seen_at is not None:
                # It ended between two looks: half way is off by half of what lies between at most. One that did not run
                # yet was cancelled, as far as anybody knows.
                half, took = (now - job.seen_at) / 2.0, (now + job.seen_at) / 2.0 - begun
                if job.running and half <= max(OFF, OFF_PART * took):
                    self._sent.ended(job, took)
                else:
                    self._sent.forgotten(job)
            elif job.missed_at is None:
                # A scheduler is asked only now and then: that it is not shown at first means nothing.
                if now - begun > SHOWN:
                    self._sent.missed(job)
            elif now - job.missed_at > NEVER_SEEN:
                self._sent.forgotten(job)
            return True
        if isinstance(found, dict):
            self._sent.seen(job, running=found.get("state") == "running")
        return True


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How long a job took from its submission on (s) by the site's clock, and whether it failed.

    ``age`` is how long ago it was submitted (s), 0 where the site does not say.
    """

    scheduler: str
    took: float
    failed: bool
    age: float

    def is_of(self, job: SentJob, now: float) -> bool:
        """Whether it is of this job, as far as schedulers and ages are known: sites give numbers again."""
        ours = job.place.offer.scheduler
        return (self.scheduler == ours or not (self.scheduler and ours)) and self.age <= now - job.chosen_at + SHOWN


def _reported(answer: Any) -> dict[str, list[_Outcome]]:
    """The outcomes by the numbers of their jobs, the newest first."""
    found: dict[str, list[_Outcome]] = {}
    for each in answer if isinstance(answer, list) else ():
        try:
            outcome = each["outcome"]
            took = float(outcome["start"]) + float(outcome["execution_time"]) - float(each["made_at"])
            if 0.0 < took <= LONGEST:
                age = float(each.get("age", 0.0))
                of = _Outcome(str(outcome.get("scheduler", "")), took, outcome["exit_status"] != 0, age)
                found.setdefault(str(outcome["job"]), []).append(of)
        except (AttributeError, TypeError, KeyError, ValueError, OverflowError):
            continue
    return found
