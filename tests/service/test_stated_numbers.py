"""The page of the service states the numbers by which it works; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page, word

from metasched.cli.daemon import serve
from metasched.placement.ranking import fast_path
from metasched.service import authentication, daemon, load_intake
from metasched.service.advice import fronts
from metasched.service.api import slow_clients
from metasched.service.configuration import Keep, Limits, Periods
from metasched.service.quality import advice_quality, verdict
from metasched.service.state import load_forecasts, write_queue
from metasched.store.database import answer_limits, leadership
from tests.system.test_two_daemons import PROMISED

limits, keep = Limits(), Keep()


@pytest.mark.parametrize(
    "said",
    [
        f"at least {verdict.ENOUGH} jobs judged, an error of at most {verdict.MOST_ERROR:g} %, interval coverage not "
        f"significantly more than {100 * verdict.FEWER_HELD:g} points below the nominal level, at most "
        f"{100 * verdict.MOST_KILLED:g} % of jobs over the suggested time limit, and either a significant saving or "
        f"{word(10 * verdict.ALL_FOLLOW)} of ten jobs on the advised nodes anyway",
        f"with {100 * (1 - advice_quality.SURE):.0f} % bounds on either side",
        "forecasts the next {:g}, {:g}, {:g} and {:g} minutes".format(*(each / 60 for each in load_forecasts.LADDER)),
        f"a question about up to {fast_path.MOST_COUNTS} numbers of processors costs one batch",
        f"in the last {word(fronts.ASKED_WITHIN)} snapshots are computed for the next one",
        f"is earlier than that of {word(fast_path.FEW_COUNTS)} others",
        f"arrive completely within {slow_clients.WITHIN:g} s",
        f"its headers within {slow_clients.MOST_HEAD / 1024:g} KiB",
        f"beyond {slow_clients.MOST_CONNECTIONS} connections those",
        f"The session lasts {word(authentication.SESSION / 3600)} hours",
        f"{limits.samples_per_second:g} a second in the long run, {limits.samples_at_once:,} at once after a silence; "
        f"a client at most as many as {load_intake.NODES:,} nodes)",
        f"A body may be at most {limits.body_bytes / 2**20:g} MiB",
        f"Loads are deleted after {keep.loads:g} days, placements after {keep.placements:g} and past jobs after "
        f"{keep.past_jobs:,.0f}",
        f"leaves an answer unread for {slow_clients.WITHIN:g} s",
        f"takes over within {PROMISED:g} s of the leader's end",
        f"which it tries every {write_queue.RETRY:g} s",
        f"A lock is waited for {serve.LOCKED:g} s, once for each request",
        f"stored later: {write_queue.KEPT:,} are kept for that",
        f"given up after {serve.LOCKED:g} s, and a statement after {serve.LOCKED + answer_limits.AFTER_LOCKS:g} s",
        f"may take {answer_limits.LONGEST / 60:g} minutes",
    ],
)
def test_the_page_of_the_service_states_it(said: str) -> None:
    assert said in page("service")


def test_the_lead_changes_within_what_the_page_promises() -> None:
    assert daemon.LEAD + leadership.SETTLED < PROMISED


def test_the_journey_of_a_sample_states_its_periods() -> None:
    periods = Periods()
    assert f"Every {'second' if periods.loads == 1 else periods.loads} `metasched/service/periodic_work/views.py`" in (
        page("architecture")
    )
    assert f"Every {periods.forecasts:g} s `monitors/forecasters/sets.py` forecasts" in page("architecture")
