"""Finds the outcomes of jobs that were sent to sites: by the placements that a site lists, else by its queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metasched.client.connection import DeniedError
from metasched.records import InputError
from metasched.sites.offer import LONGEST
from metasched.sites.sent_jobs import SentJob, SentJobs
from metasched.sites.settings import SiteTable
from metasched.sites.site_client import SiteClient

#: Placements of a site that are asked for to find outcomes, and jobs that are looked for in its queue at a time.
NEWEST, LOOKED_FOR = 1000, 50
#: Time after its submission when a job that its site has never reported is given up (s).
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

    def look(self) -> None:
        """Ask the sites for the outcomes of the jobs sent there; those that do not answer are asked again later."""
        open_jobs: dict[str, list[SentJob]] = {}
        for job in self._sent.open():
            open_jobs.setdefault(job.site, []).append(job)
        tables = [self._tables[name] for name in open_jobs if name in self._tables]
        path = f"/v1/placements?limit={NEWEST}"
        heard = self._client.ask_all(tables, {table.name: ("GET", path, None) for table in tables}, 60.0)
        for table in tables:
            outcomes = _reported(heard[table.name].answer)
            left = []
            for job in open_jobs[table.name]:
                outcome = next((each for each in outcomes.get(job.job, ()) if each.is_of(job)), None)
                if outcome is not None:
                    self._sent.ended(job, outcome.took, failed=outcome.failed)
                else:
                    left.append(job)
            for job in left[:LOOKED_FOR]:
                if not self._in_queue(table, job):
                    break

    def _in_queue(self, table: SiteTable, job: SentJob) -> bool:
        """Look for a job in the queue of its site; whether the site answers."""
        try:
            found = self._client.ask(table, "GET", job.wait_path)
        except DeniedError:  # of a token that has expired, for example
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
            elif now - begun > NEVER_SEEN:
                self._sent.forgotten(job)
            return True
        except RuntimeError:
            return False
        if isinstance(found, dict):
            self._sent.seen(job, running=found.get("state") == "running")
        return True


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How long a job took from its submission on (s) by the site's clock, and whether it failed."""

    scheduler: str
    took: float
    failed: bool

    def is_of(self, job: SentJob) -> bool:
        """Whether it is of a job of the same number, as far as the schedulers are known."""
        return self.scheduler == job.place.offer.scheduler or not (self.scheduler and job.place.offer.scheduler)


def _reported(answer: Any) -> dict[str, list[_Outcome]]:
    """The outcomes by the numbers of their jobs, the newest first."""
    found: dict[str, list[_Outcome]] = {}
    for each in answer if isinstance(answer, list) else ():
        try:
            outcome = each["outcome"]
            took = float(outcome["start"]) + float(outcome["execution_time"]) - float(each["made_at"])
            if 0.0 < took <= LONGEST:
                of = _Outcome(str(outcome.get("scheduler", "")), took, outcome["exit_status"] != 0)
                found.setdefault(str(outcome["job"]), []).append(of)
        except (AttributeError, TypeError, KeyError, ValueError, OverflowError):
            continue
    return found
