"""When a job that waits is withdrawn: where another site saves more than all doubt, and not again and again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.sites.choice import SitePlacement
from metasched.sites.data import transfers
from metasched.sites.links import SiteLink
from metasched.sites.sent_jobs import SentJob
from metasched.sites.trust import Trust, trust
from metasched.sites.withdrawal import LONGEST, MOST_RESENT, Verdict, verdict
from tests.sites.answers import offer

NOW, RESTED = 10_000.0, 300.0


def place(site: str, wait: float = 0.0, time: float = 100.0, data: float = 0.0) -> SitePlacement:
    return SitePlacement(offer(site, wait, time), 0.0, transfers([site], data, {site: SiteLink(800.0)})[site], Trust())


def sent(ago: float = 1000.0, data: float = 0.0, **fields: Any) -> SentJob:
    home = place("east", data=data)
    made = {"state": "submitted", "job": "7", "submitted_at": NOW - ago} | fields
    return SentJob("0a", NOW - ago, (home,), home, **made)


def waits(wait: float, low: float | None = None) -> dict[str, Any]:
    return {"state": "waiting", "wait": wait, "low": wait if low is None else low, "high": 2.0 * wait}


def said(job: SentJob, waiting: Any, *places: SitePlacement, believed: Trust = Trust()) -> Verdict:  # noqa: B008
    return verdict(job, waiting, places, believed, NOW, RESTED)


def test_a_job_leaves_where_another_site_saves_more_than_its_doubt() -> None:
    found = said(sent(), waits(3600.0), place("east", 3600.0), place("west", 60.0))
    assert found == Verdict(True, "west saves 59.0 min, more than its uncertainty of 25.0 s", 3700.0, 160.0, 25.0)


@pytest.mark.parametrize(
    ("job", "waiting", "elsewhere", "why"),
    [
        (sent(), waits(3600.0, low=10.0), place("west", 60.0), "less than its uncertainty of"),
        (sent(), waits(600.0), place("west", 400.0), "worth it from 300 s on"),
        (sent(), waits(600.0), place("west", 900.0), "would take 300 s longer"),
        (sent(), waits(600.0), place("west", 600.0), "would take 0 s longer"),
        (sent(), waits(3600.0), place("west", 0.0, data=1000.0), "longer"),
        (sent(ago=RESTED - 1.0), waits(3600.0), place("west"), "and stays for 300 s"),
        (sent(ago=900.0, data=10.0), waits(3600.0), place("west"), "and stays for 16.7 min"),
        (sent(resent=MOST_RESENT), waits(3600.0), place("west"), "sent elsewhere 3 times"),
        (sent(), waits(3600.0), place("east"), "no other site"),
        (sent(), {"state": "running", "wait": 0.0, "low": 0.0}, place("west"), "in no queue"),
        (sent(), {"state": "not ready", "wait": None}, place("west"), "in no queue"),
        (sent(), {"state": "waiting", "wait": None, "low": None}, place("west"), "does not say"),
        (sent(), waits(float("nan")), place("west"), "does not say"),
        (sent(), {"state": "waiting", "wait": 10**400, "low": 0}, place("west"), "does not say"),
        (sent(), waits(60.0, low=-1.0), place("west"), "does not say"),
        (sent(), waits(60.0, low=True), place("west"), "does not say"),
        (sent(), "soon", place("west"), "in no queue"),
    ],
)  # fmt: skip
def test_a_job_stays_and_it_is_said_why(job: SentJob, waiting: Any, elsewhere: SitePlacement, why: str) -> None:
    found = said(job, waiting, elsewhere)
    assert not found.withdraw
    assert why in found.why


@pytest.mark.parametrize(
    ("job", "waiting", "elsewhere", "why"),
    [
        (sent(ago=RESTED), waits(3600.0), place("west"), "west saves"),
        (sent(resent=2), waits(3600.0), place("west"), "west saves"),
        (sent(), waits(600.0), place("west", 300.0), "west saves 300 s"),  # half of the wait, no less
        (sent(), waits(600.0), place("west", 300.5), "and is worth it from 300 s on"),
        (sent(), waits(600.0, low=300.0), place("west", 299.0), "less than its uncertainty of 301 s"),
        (sent(), waits(LONGEST), place("west"), "west saves"),
        (sent(), waits(LONGEST * 1.01), place("west"), "does not say"),
        (sent(), {"state": "waiting", "wait": True, "low": 0.0}, place("west"), "does not say"),
        (sent(), {"state": "waiting", "wait": 3600, "low": 3600}, place("west"), "west saves"),
        (sent(submitted_at=None), waits(3600.0), place("west"), "it was submitted 0 s ago"),
    ],
)
def test_what_just_suffices_to_leave_and_what_does_not(
    job: SentJob, waiting: Any, elsewhere: SitePlacement, why: str
) -> None:
    found = said(job, waiting, place("east", 3600.0), elsewhere)
    assert (found.withdraw, why in found.why) == (why.startswith("west saves"), True), found.why


def test_a_site_that_says_too_little_is_not_believed_about_what_is_left() -> None:
    west = place("west", 1000.0)
    assert not said(sent(), waits(600.0), west).withdraw
    assert said(sent(), waits(600.0), west, believed=trust(50 * [5.0])).withdraw


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(1.0, 1e5), st.floats(0.0, 1.0))
def test_what_leaves_gains_and_a_shorter_wait_never_makes_it_leave(
    here: float, there: float, run: float, shorter: float
) -> None:
    west = place("west", there, run)
    found = said(sent(), waits(here), west)
    if found.withdraw:
        assert found.stay is not None
        assert found.leave is not None
        assert found.doubt is not None
        assert found.stay - found.leave > found.doubt
    else:
        less = said(sent(), waits(shorter * here), west)
        # The gain shrinks with the wait by as much, what makes it worth it by half of that only.
        assert not less.withdraw


def test_the_clock_alone_lets_a_job_go() -> None:
    young = sent(ago=10.0)
    assert not said(young, waits(3600.0), place("west")).withdraw
    assert said(replace(young, submitted_at=NOW - RESTED), waits(3600.0), place("west")).withdraw
