"""The views of available CPU by hand: at none, one and several processes, and where each limit begins."""

from __future__ import annotations

import math

import pytest

from monitors.sensors.cpu_views import followed_view, queue_view, quota_view, turns_view, utilisation_view
from monitors.sensors.job import Turn


@pytest.mark.parametrize(
    ("processors", "runnable", "k", "share"),
    [(4, 0.0, 1, 1.0), (4, 3.0, 1, 1.0), (4, 4.0, 1, 0.8), (4, 7.0, 1, 0.5), (4, 6.0, 2, 0.5), (4, 0.0, 8, 0.5),
     (0.5, 0.0, 1, 0.5), (2, 3.0, 2, 0.4)],
)  # fmt: skip
def test_a_queue_is_divided_evenly(processors: float, runnable: float, k: int, share: float) -> None:
    assert queue_view(processors, runnable, k) == pytest.approx(share)


@pytest.mark.parametrize(
    ("idle", "busy", "runnable", "k", "share"),
    [
        (1.0, 0.0, 0.0, 1, 1.0),
        (2.0, 2.0, 0.0, 1, 1.0),
        (0.0, 1.0, 0.0, 1, 0.5),  # at least one other works while something is busy
        (0.0, 1.0, 3.0, 1, 0.25),
        (0.0, 4.0, 1.0, 1, 0.8),  # four processors are busy: at least four others
        (0.5, 3.5, 7.0, 1, 0.5 + 3.5 / 8),
        (0.5, 3.5, 6.0, 2, (0.5 + 3.5 * 2 / 8) / 2),
        (0.0, 4.0, 4.0, 4, 0.5),
        (3.0, 1.0, 1.0, 4, (3.0 + 4 / 5) / 4),
    ],
)
def test_what_is_idle_is_had_and_what_is_busy_is_divided(
    idle: float, busy: float, runnable: float, k: int, share: float
) -> None:
    assert utilisation_view(idle, busy, runnable, k) == pytest.approx(share)


@pytest.mark.parametrize(
    ("quota", "used", "k", "share"),
    [
        (2.0, 0.0, 1, 1.0),
        (2.0, 1.5, 1, 1.0),  # an even part, beside one other, is more than is left
        (0.5, 0.0, 1, 0.5),
        (0.5, 0.3, 1, 0.25),
        (1.5, 0.0, 2, 0.75),
        (1.5, 1.0, 2, 0.5),
        (1.0, 3.0, 1, 0.25),  # more than the quota is used: as if three others shared it
        (1.0, 3.0, 3, 0.5 / 3),
    ],
)
def test_a_quota_leaves_what_is_not_used_or_an_even_part(quota: float, used: float, k: int, share: float) -> None:
    assert quota_view(quota, used, k) == pytest.approx(share)


@pytest.mark.parametrize(
    ("idle", "busy", "own", "others", "k", "share"),
    [
        ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0], 0.0, 1, 1.0),
        ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0], 0.0, 2, 0.5),  # beside one other at least
        ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0], 3.0, 2, 0.25),
        ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0], 3.0, 5, 0.25),  # more processes than processors share the least
        ([0.0, 0.0], [1.0, 2.0], [0.9, 1.5], 1.0, 1, 0.9),
        ([0.0, 0.0], [1.0, 2.0], [0.9, 1.5], 1.0, 2, 0.75),
        ([2.0], [2.0], [0.0], 9.0, 1, 0.5),
        ([0.0], [1.0], [1.2], 1.0, 1, 1.0),  # accounts that differ by a tick
        ([0.0, 1.0], [0.0, 1.0], [0.0, 1.0], 1.0, 1, math.nan),
        ([0.0], [0.0], [0.0], 1.0, 1, math.nan),
    ],
)
def test_a_job_that_runs_gets_what_is_idle_and_its_own(
    idle: list[float], busy: list[float], own: list[float], others: float, k: int, share: float
) -> None:
    assert followed_view(idle, busy, own, others, k) == pytest.approx(share, nan_ok=True)


@pytest.mark.parametrize(
    ("turns", "stolen", "otherwise", "processors", "k", "share"),
    [
        ([], 0.0, 0.7, 2, 1, 0.7),
        ([Turn(1.0, 0.0)], 0.0, math.nan, 2, 1, math.nan),
        ([Turn(1.0, 0.0)], 0.0, 1.0, 2, 1, 1.0),
        ([Turn(0.5, 0.5)], 0.0, 0.5, 2, 1, 0.5),
        ([Turn(0.5, 0.5)], 0.2, 0.4, 2, 1, 0.4),
        ([Turn(0.0, 0.0)], 0.0, 0.3, 2, 1, 0.3),  # it wanted no processor: the other view counts
        ([Turn(0.01, 0.0)], 0.0, 0.5, 2, 1, 0.75),  # it wanted one for as long as the other view counts
        ([Turn(0.9, 0.1), Turn(0.2, 0.2)], 0.0, 0.5, 2, 1, (0.9 + 0.005) / 1.01),
        ([Turn(0.2, 0.2), Turn(0.9, 0.1)], 0.0, 0.5, 2, 2, 0.5),
        # Four want two processors for the whole time: half is no load of others.
        ([Turn(0.5, 0.5)] * 4, 0.0, 1.0, 2, 4, 1.0),
        ([Turn(0.25, 0.75)] * 4, 0.0, 1.0, 2, 4, (0.5 + 0.01) / 1.01),
    ],
)
def test_turns_tell_the_least_share_of_those_that_count(
    turns: list[Turn], stolen: float, otherwise: float, processors: int, k: int, share: float
) -> None:
    found = turns_view(turns, 1.0, stolen, otherwise, processors, k)
    assert found == pytest.approx(share, nan_ok=True)


def test_turns_count_by_the_length_of_the_interval() -> None:
    turns = [Turn(5.0, 5.0)] * 4
    assert turns_view(turns, 10.0, 0.0, 1.0, 2, 4) == pytest.approx(1.0)
    assert turns_view(turns, 20.0, 0.0, 1.0, 2, 4) == pytest.approx(5.01 / 10.01)
