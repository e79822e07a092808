"""When an active probe is due again."""

from __future__ import annotations

import pytest

from monitors.sensors.schedule import ProbeSchedule


@pytest.mark.parametrize(
    "limits", [(0.0, 10.0, 0.1), (-1.0, 10.0, 0.1), (20.0, 10.0, 0.1), (1.0, 10.0, 0.0), (1.0, 10.0, -0.1)]
)
def test_limits_that_cannot_be_are_refused(limits: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"expected 0 < shortest <= longest and a budget above 0$"):
        ProbeSchedule(*limits)


def test_the_shortest_and_the_longest_time_may_be_the_same() -> None:
    schedule = ProbeSchedule(10.0, 10.0, 1.0)
    schedule.probed(0.0, 0.9, cost=0.0)
    assert (schedule.due(9.9), schedule.due(10.0)) == (False, True)
    schedule.probed(10.0, 0.9, cost=0.0)
    assert (schedule.due(19.9), schedule.due(20.0)) == (False, True)


def test_a_large_change_shortens_the_wait_and_small_ones_lengthen_it_within_the_limits() -> None:
    schedule = ProbeSchedule(10.0, 40.0, 1.0)
    moment, waits = 0.0, []
    for value in (0.9, 0.9, 0.9, 0.9, 0.1, 0.9, 0.1, 0.9):
        schedule.probed(moment, value, cost=0.0)
        waits.append(next(wait for wait in range(1, 100) if schedule.due(moment + wait)))
        moment += waits[-1]
    assert waits == [10, 20, 40, 40, 20, 10, 10, 10]


def test_a_hint_of_a_large_change_makes_a_probe_due_after_the_shortest_time() -> None:
    schedule = ProbeSchedule(10.0, 40.0, 1.0)
    for moment in (0.0, 10.0, 30.0):
        schedule.probed(moment, 0.9, cost=0.0, hint=0.9)
    assert [schedule.due(41.0, hint) for hint in (None, 0.9, 0.1)] == [False, False, True]
    assert not schedule.due(39.0, 0.1)


def test_a_probe_waits_until_the_budget_allows_it() -> None:
    schedule = ProbeSchedule(10.0, 40.0, 0.01)
    schedule.probed(0.0, 0.9, cost=0.5)
    assert [schedule.due(moment) for moment in (10.0, 49.0, 50.0)] == [False, False, True]
