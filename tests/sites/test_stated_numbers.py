"""The page of the sites states the numbers by which they are chosen; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page, word

from metasched.predictors.porting.platforms import ENOUGH, LENDS
from metasched.predictors.robust.known_runs import BORROWED
from metasched.sites import choice, grid, lending, links, outcomes, pending, sent_jobs, site_paths, trust, withdrawal


@pytest.mark.parametrize(
    "said",
    [
        f"If the last probe is older than {'an hour' if links.STALE == 3600 else links.STALE}",
        f"The newest measurement has a weight of {sent_jobs.NEWEST}",
        f"the last {word(site_paths.WINDOW / 3600)} hours, at most {word(site_paths.AVERAGED)} measurements of each",
        f"worse than to within {100 * site_paths.EXPLAINED:g} %",
        f"fewer than {ENOUGH} runs of the application",
        f"sites that have at least {LENDS}: up to {BORROWED} of their newest {lending.NEWEST}",
        f"at most every {word(lending.REMEMBERED / 60)} minutes",
        f"from {'a minute' if grid.CLOCK == 60 else grid.CLOCK} on, `sites status` shows by how much",
        f"after {'an hour' if outcomes.NEVER_SEEN == 3600 else outcomes.NEVER_SEEN} the job is given up",
        f"warn for {'a week' if sent_jobs.SAID == 7 * 86_400 else sent_jobs.SAID}",
        f"at most {word(grid.MOST_HOPS)} grids ask each other in a row",
        f"from its last {trust.REMEMBERED} outcomes",
        f"half the weight of one that is {word(trust.HALF_LIFE)} later, and {word(trust.PRIOR)} outcomes without error",
        f"stop counting after {word(pending.RESERVED / 60)} minutes",
        f"Sites within {100 * choice.TIE:g} % of the earliest completion",
        f"uncertain by more than {'a minute' if outcomes.OFF == 60 else outcomes.OFF} and "
        f"{'a tenth' if outcomes.OFF_PART == 0.1 else outcomes.OFF_PART} of it",
        f"The newest {sent_jobs.MOST:,} jobs",
        f"moved at most {word(withdrawal.MOST_RESENT)} times",
    ],
)
def test_the_page_of_the_sites_states_it(said: str) -> None:
    assert said in page("sites")
