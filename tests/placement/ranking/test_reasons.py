"""What a reason says made most of a difference: by a made model that a single thing makes slower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from metasched.placement.ranking.reasons import Cause, explain_order
from metasched.records import Interval, Place, Placement, Prediction, ResourceSet

BEST = ResourceSet("c", ("n1", "n2"), 2, 0.5, 100.0)
ANY = "any processes a node"


def time(place: Place, processors: int, cpu: float, bandwidth: float) -> float:
    """40 s of computing on two processors that are half free, and 10 s of 1,000 Mbit."""
    slower = (1.0 if place[3] is None else 2400.0 / place[3]) * (1.5 if place[2] > 1 else 1.0)
    return slower * 40.0 / (processors * cpu) + 1000.0 / bandwidth


def placed(chosen: ResourceSet, wait: float = 0.0, slowdown: float = 1.0) -> Placement:
    seconds = time(chosen.place, chosen.processors, chosen.available_cpu, chosen.available_bandwidth)
    return Placement(chosen, Prediction(seconds, Interval(seconds, seconds, 0.9), ""), wait, slowdown)


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        (placed(replace(BEST, processors=1)), "1 processor instead of 2"),
        (placed(replace(BEST, processors=3)), "3 processors instead of 2"),  # faster: why it is not the best
        (placed(replace(BEST, available_cpu=0.25)), "available CPU 0.25 instead of 0.50"),
        (placed(replace(BEST, available_bandwidth=10.0)), "bandwidth 10 instead of 100 Mbit/s"),
        (placed(BEST, wait=30.4), "a wait of 30 instead of 0 s"),
        (placed(BEST, slowdown=1.5), "jobs already running stretch it 1.50 instead of 1.00 times"),
        # Of several the one that makes most of it.
        (placed(replace(BEST, processors=1, available_bandwidth=50.0), wait=39.0), "1 processor instead of 2"),
        (placed(replace(BEST, processors=1, available_bandwidth=50.0), wait=41.0), "a wait of 41 instead of 0 s"),
        (placed(replace(BEST, available_bandwidth=25.0), wait=29.0), "bandwidth 25 instead of 100 Mbit/s"),
        # Less processors, but faster ones: the whole is earlier, and so is what is said.
        (placed(replace(BEST, processors=1, available_cpu=1.5)), "available CPU 1.50 instead of 0.50"),
        # Layouts and clocks.
        (placed(replace(BEST, frequency=1200, processes_per_node=1)), f"1 process a node at 1200 MHz instead of {ANY}"),
        (placed(replace(BEST, processes_per_node=2, threads=4)), f"2 processes a node of 4 threads instead of {ANY}"),
        (placed(replace(BEST, processes_per_node=9, threads=4)), f"2 processes a node of 4 threads instead of {ANY}"),
        (placed(BEST), "no difference according to the model"),
        (placed(replace(BEST, cluster="d")), "another cluster's model"),
    ],
)  # fmt: skip
def test_the_cause_is_what_alone_makes_most_of_the_difference(other: Placement, cause: str) -> None:
    assert Cause(time).of(placed(BEST), other) == cause


def test_a_difference_is_measured_where_the_better_one_is_stretched_and_waits() -> None:
    """Stretched twice, half a CPU less costs 160 s instead of 80; waits count by their difference."""
    better = placed(BEST, wait=50.0, slowdown=2.0)
    worse = placed(replace(BEST, available_cpu=0.25), wait=109.0, slowdown=2.0)
    assert Cause(time).of(better, worse) == "available CPU 0.25 instead of 0.50"
    worse = placed(replace(BEST, available_cpu=0.25), wait=131.0, slowdown=2.0)
    assert Cause(time).of(better, worse) == "a wait of 131 instead of 50 s"
    worse = placed(replace(BEST, available_cpu=0.25), wait=50.0, slowdown=3.7)
    assert Cause(time).of(better, worse) == "jobs already running stretch it 3.70 instead of 2.00 times"


def of(seconds: float) -> Placement:
    return Placement(BEST, Prediction(seconds, Interval(seconds, seconds, 0.9), ""))


@pytest.mark.parametrize(
    ("best", "other", "said"),
    [
        (100.0, 100.0, "as fast"), (100.0, 100.049, "as fast"), (100.0, 100.051, "0.1% slower"),
        (100.0, 99.951, "as fast"), (100.0, 99.949, "0.1% faster"), (100.0, 250.0, "150.0% slower"),
        (5e-324, 1e-323, "100.0% slower"),
    ],
)  # fmt: skip
def test_a_difference_of_less_than_a_twentieth_of_a_percent_is_none(best: float, other: float, said: str) -> None:
    cause = Cause(lambda place, *point: best)
    first, second = explain_order([of(best), of(other)], cause, 2, None)
    assert first == f"best; the next is {said}: no difference according to the model"
    assert second == f"{said}: no difference according to the model"


def test_the_first_is_compared_with_the_second_and_as_many_others_as_are_shown_with_the_first() -> None:
    cause = Cause(time)
    three = [placed(BEST), placed(replace(BEST, processors=1)), placed(BEST, wait=100.0)]
    reasons = [
        "best; the next is 80.0% slower: 1 processor instead of 2",
        "80.0% slower: 1 processor instead of 2",
        "200.0% slower: a wait of 100 instead of 0 s",
    ]
    for shown in (None, 3, 2, 1):
        assert explain_order(three, cause, 9, shown) == reasons[:shown]
    assert explain_order(three[:1], cause, 1, None) == ["the only resource set"]
    assert explain_order(three[:1], cause, 2, None) == ["the best of 2 resource sets compared"]
