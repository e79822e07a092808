"""Decides whether a pending job should be withdrawn and sent elsewhere: if the gain exceeds its uncertainty.

What it has left at its site is the wait, as the site predicts it now from the jobs before it, and the run; elsewhere it
is what the site offers now, its data brought there. Both are as far believed as each site's outcomes justify. As for
jobs that move while they run (:mod:`metasched.placement.moving.decision`), the gain must exceed its doubt, and be worth
it, and a job that was moved stays for a while.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metasched.placement.moving.decision import REST, WORTH
from metasched.plain_numbers import span
from metasched.sites.choice import SitePlacement
from metasched.sites.sent_jobs import SentJob
from metasched.sites.trust import Trust

#: Longest wait that is believed (s); a century is three thousand million seconds.
LONGEST = 1e12
#: How often a job is sent elsewhere at most.
MOST_RESENT = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a job should be withdrawn, and why.

    Parameters
    ----------
    withdraw : whether it should.
    why : in words.
    stay, leave : what it has left at its site and what it takes elsewhere (s), None where that cannot be said.
    doubt : what the difference may be wrong by (s), likewise.
    """

    withdraw: bool
    why: str
    stay: float | None = None
    leave: float | None = None
    doubt: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The verdict as a JSON document."""
        return {name: getattr(self, name) for name in self.__slots__}


def verdict(
    job: SentJob, waits: Any, places: Sequence[SitePlacement], trust: Trust, now: float, rested: float
) -> Verdict:
    """Whether a job that was submitted should be withdrawn from its site.

    Parameters
    ----------
    job : as it was sent.
    waits : what its site answers to ``GET /v1/waits/JOB``.
    places : all sites as they rank now.
    trust : how far its site is believed.
    now : the time by the clock of ``job`` (s).
    rested : how long it stays at least where it was submitted (s).
    """
    if not isinstance(waits, dict) or waits.get("state") != "waiting":
        return Verdict(False, "it is in no queue whose waits its site can predict")
    wait, low = _seconds(waits.get("wait")), _seconds(waits.get("low"))
    if wait is None or low is None:
        return Verdict(False, "its site does not say how long it waits")
    if job.resent >= MOST_RESENT:
        return Verdict(False, f"it was sent elsewhere {job.resent} times")
    here = now - (now if job.submitted_at is None else job.submitted_at)
    rest = max(rested, REST * job.place.transfer.counted)
    if here < rest:
        return Verdict(False, f"it was submitted {span(here)} ago, and stays for {span(rest)}")
    others = [each for each in places if each.offer.site != job.site]
    if not others:
        return Verdict(False, "no other site can take it")
    best, run = min(others, key=lambda each: each.completion), job.place.offer.execution_time
    stay, leave = trust.multiplier * (wait + run), best.completion
    gain = stay - leave
    doubt = math.hypot(max(stay - trust.low * (min(low, wait) + run), 0.0), max(best.interval[1] - leave, 0.0))
    least = WORTH * trust.multiplier * wait
    if gain <= 0.0:
        why = f"{best.offer.site} would take {span(leave - stay)} longer"
    elif gain <= doubt:
        why = f"{best.offer.site} would save {span(gain)}, less than its uncertainty of {span(doubt)}"
    elif gain < least:
        why = f"{best.offer.site} would save {span(gain)}, and is worth it from {span(least)} on"
    else:
        why = f"{best.offer.site} saves {span(gain)}, more than its uncertainty of {span(doubt)}"
    return Verdict(gain > doubt and gain >= least, why, stay, leave, doubt)


def _seconds(value: Any) -> float | None:
    """A time that a site tells (s); None where it tells none, or one that is none: whole numbers have no end."""
    known = type(value) in (int, float) and 0 <= value <= LONGEST
    return float(value) if known else None
