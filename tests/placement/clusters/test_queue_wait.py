"""How long a job waits for enough free processors."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from metasched.placement.clusters.queue_wait import QueueWait, earliest_start
from metasched.records import InputError


@given(
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(1, 4), st.floats(1, 100)), min_size=1, max_size=5),
    st.integers(1, 25),
)
def test_earliest_start_is_when_enough_processors_are_free(free, running, wanted) -> None:
    wait = float(earliest_start(free, running).at(wanted))
    assume(wanted <= free + sum(processors for processors, _ in running))
    ended = sum(processors for processors, remaining in running if remaining <= wait)
    assert wait == 0.0 or free + ended >= wanted
    earlier = sum(processors for processors, remaining in running if remaining < wait)
    assert wait == 0.0 or free + earlier < wanted


def test_pending_jobs_are_served_first() -> None:
    wait = earliest_start(1, [(3, 10.0)], [(4, 50.0)])
    assert wait.at([1, 4]).tolist() == [60.0, 60.0]


def test_waits_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="expected 1 and then ascending"):
        QueueWait([2, 3], [0.0, 0.0])
    with pytest.raises(InputError, match="expected finite numbers of at least 0"):
        QueueWait([1], [-1.0])
