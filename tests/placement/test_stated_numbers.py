"""The page of placements states the numbers by which they are chosen; a change of one changes the other."""

from __future__ import annotations

import pytest
from stated import page, word

from metasched.placement.clusters import bandwidth_matrix, constraints, running_jobs
from metasched.placement.loads import staleness
from metasched.placement.moving import decision
from metasched.placement.ranking import layouts
from monitors.forecasters import sets


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("placement", f"The minimum is {constraints.LEAST_EFFICIENCY:g} unless"),
        ("placement", f"the default is {constraints.LEAST_EFFICIENCY:g} |"),
        ("placement", f"one of the layouts, at most {word(layouts.MOST_LAYOUTS)}, that"),
        ("placement", f"age from which loads are stale, {staleness.STALE_AFTER:g} s by default"),
        ("placement", f"whose measurement is older than {staleness.STALE_AFTER:g} s is not forecast"),
        ("placement", f"up to {bandwidth_matrix.MOST_EXACT_NODES} nodes and {bandwidth_matrix.MOST_CLIQUES:,} cliques"),
        ("placement", f"more than {sets.LEARNED_FROM} nodes it is learned from {sets.LEARNED_FROM} evenly spaced ones"),
        ("placement", f"to have {'a tenth' if running_jobs.OVERDUE == 0.1 else running_jobs.OVERDUE} left"),
        ("placement", f"at least {'half' if decision.WORTH == 0.5 else decision.WORTH} of the remaining time"),
        ("placement", f"not before {word(decision.REST)} times the cost of a move has passed"),
        ("forecasters", f"of which the last {sets.HISTORY} samples count"),
        ("forecasters", f"over the nearest {'tenth' if sets.NEAR_PART == 0.1 else sets.NEAR_PART})"),
    ],
)
def test_the_page_of_the_placements_states_it(name: str, said: str) -> None:
    assert said in page(name)
