"""The page of accounting states the numbers by which the daemon reads and learns it."""

from __future__ import annotations

import pytest
from stated import page, word

from metasched.history import playback
from metasched.history.run_times.similarity import OTHERS, OWN
from metasched.service.configuration import Keep, Periods
from metasched.service.learning import accounting
from metasched.service.state import job_history

DAY = 86_400.0


@pytest.mark.parametrize(
    "said",
    [
        f"what ended in the last {word(accounting.REACH / DAY)} days when it is first started",
        f"allows ({Keep().past_jobs:,.0f} days), or {word(accounting.EMPTY)} weeks in a row are empty",
        f"called at most once in {word(Periods().accounting / 60.0)} minutes",
        f"the last {OWN} of each user and the last {OTHERS} of each limit",
        f"all relevant jobs are learned again, at most once {'an hour' if job_history.AGAIN == 3600.0 else ''}",
    ],
)
def test_the_page_of_accounting_states_it(said: str) -> None:
    assert said in page("history")


def test_a_period_is_a_week_and_the_jobs_learned_are_as_many_as_the_page_states() -> None:
    assert accounting.PERIOD == 7 * DAY
    assert (playback.NEWEST, playback.MOST) == (10_000, 60_000)
    assert "the newest ten thousand jobs" in page("history")
    assert "at most sixty thousand" in page("history")
