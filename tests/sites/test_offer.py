"""What a site says is read with bounds: an answer is used whole or not at all, and never raises anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.sites.offer import LONGEST, offers_in, offers_of_grid, runs_known
from tests.sites.answers import answer, placement, waiting

NAN, INFINITE = float("nan"), float("inf")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


def test_what_starts_at_once_and_what_waits_are_offers_of_one_cluster() -> None:
    found = offers_in(answer(placement(processors=4), later=[waiting(processors=8, time=50.0)]), "east")
    assert [(each.processors, each.wait, each.completion) for each in found] == [(4, 0.0, 100.0), (8, 300.0, 350.0)]
    assert (found[0].site, found[0].free, found[0].capacity, found[0].age) == ("east", 8, 16, 5.0)
    assert (found[0].scheduler, found[0].partition) == ("c", "p")


def test_of_one_cluster_and_width_the_soonest_counts() -> None:
    found = offers_in(answer(placement(wait=900.0), later=[waiting(wait=60.0)]), "east")
    assert [each.completion for each in found] == [160.0]


def test_a_slowdown_by_others_is_part_of_the_run() -> None:
    assert offers_in(answer(placement() | {"slowdown": 1.5}), "east")[0].execution_time == 150.0


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([], "does not answer"), ("yes", "does not answer"), (None, "does not answer"),
        ({"placements": []}, "without a format, as older versions do"), (answer(format=2), "in format 2"),
        (answer(format=True), "in format True"), (answer(why="no model of cg yet"), "no model of cg yet"),
        (answer(), "no room for the job"), (answer(why="a\nb\x1b[2J" + 5000 * "c"), r"a b \[2J"),
        (answer(placement(time=-1.0)), "execution_time"), (answer(placement(time=float("nan"))), "execution_time"),
        (answer(placement(time=10 * LONGEST)), "is invalid"), (answer(placement(wait=float("inf"))), "queue_wait"),
        (answer(placement(processors=0)), "processors"), (answer(placement(cluster="a; rm -rf /")), "no valid name"),
        (answer(later=[waiting() | {"wait": -5.0}]), "wait"), (answer(later=[waiting() | {"low": 1e9}]), "is invalid"),
        (answer(placement(), clusters={"c/p": {"free": -1, "processors": 1}}), "free"),
        (answer(*1001 * [placement()]), "cannot be used"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_no_answer_is_refused_in_one_line(wrong: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        offers_in(wrong, "east")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


@given(JSON, st.sampled_from(["placements", "later", "clusters", "why", "version", "format"]))
def test_garbage_is_refused_or_read_within_bounds(garbage: Any, place: str) -> None:
    try:
        found = offers_in(answer(placement(), later=[waiting()]) | {place: garbage}, "east")
    except ValueError as error:
        found, said = (), str(error)
    else:
        said = ""
    assert bool(found) != bool(said)
    assert "\n" not in said
    assert all(0.0 <= each.low <= each.high and 0.0 < each.completion <= 2 * LONGEST for each in found)


@given(JSON)
def test_garbage_of_a_grid_is_refused(garbage: Any) -> None:
    with pytest.raises(ValueError):
        offers_of_grid({"format": 1, "sites": garbage}, "east")


def interval_read(low: Any, high: Any, *, of_grid: bool) -> tuple[float, float]:
    row = {"site": "s", "cluster": "c", "processors": 4, "completion": 100.0, "execution_time": 100.0, "free": 8,
           "capacity": 16, "interval": {"low": low, "high": high}}  # fmt: skip
    site = answer(placement(time=100.0) | {"interval": {"low": low, "high": high, "level": 0.9}})
    (found,) = offers_of_grid({"format": 1, "sites": [row]}, "east") if of_grid else offers_in(site, "east")
    return found.low, found.high


@pytest.mark.parametrize("of_grid", [True, False])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 120.0), (130.0, 120.0), (0.0, -1.0), (NAN, 120.0), (80.0, NAN), (INFINITE, INFINITE)]
)
def test_an_interval_that_cannot_be_is_refused(low: float, high: float, of_grid: bool) -> None:
    with pytest.raises(ValueError, match="an interval is invalid"):
        interval_read(low, high, of_grid=of_grid)


@pytest.mark.parametrize("of_grid", [True, False])
@pytest.mark.parametrize("high", [INFINITE, 1e308, 2 * LONGEST])
def test_no_interval_ends_later_than_a_site_may_name(high: float, of_grid: bool) -> None:
    assert interval_read(80.0, high, of_grid=of_grid) == (80.0, 2 * LONGEST)
    assert interval_read(80.0, 120.0, of_grid=of_grid) == (80.0, 120.0)
    assert interval_read(None, None, of_grid=True) == (0.0, 2 * LONGEST)


@pytest.mark.parametrize("spoken", [True, 1.0, "1", 2, None])
def test_an_answer_of_another_format_is_understood_nowhere(spoken: Any) -> None:
    for read in (offers_in, offers_of_grid):
        with pytest.raises(ValueError, match="format"):
            read(answer(placement(), format=spoken), "east")
    assert runs_known({"format": spoken, "runs": 7}) is None


def test_only_a_whole_number_of_runs_is_one() -> None:
    found = [runs_known({"format": 1, "runs": runs}) for runs in (7, 0, -1, True, 7.0, None)]
    assert found == [7, 0, None, None, None, None]
