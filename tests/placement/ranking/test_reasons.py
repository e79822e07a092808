"""What a reason says made most of a difference: by a made model that a single thing makes slower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from metasched.placement.ranking.reasons import Cause, explain_order
from metasched.records import Interval, Place, Placement, Prediction, ResourceSet

BEST = ResourceSet("c", ("n1", "n2"), 2, 0.5, 100.0)
ANY = "any number of processes a node"
SLOW = "d"


def time(place: Place, processors: int, cpu: float, bandwidth: float) -> float:
    """40 s of computing on two processors that are half free, and 10 s of 1,000 Mbit; cluster d is half as fast."""
    slower = (1.0 if place[3] is None else 2400.0 / place[3]) * (1.5 if place[2] > 1 else 1.0)
    slower *= (2.0 if place[0] == SLOW else 1.0) * (1.0 if place[1] is None else 1.0 + place[1] / 100)
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
        (placed(replace(BEST, processes_per_node=1)), f"1 process a node instead of {ANY}"),
        (placed(replace(BEST, processors=1, threads=4)), "1 process of 4 threads instead of 2 processors"),
        (placed(replace(BEST, threads=4)), "4 threads a process instead of 1 thread a process"),
        (placed(replace(BEST, frequency=1200)), "1200 MHz instead of the usual clock"),
        (
            placed(replace(BEST, frequency=1200, processes_per_node=1)),
            f"1 process a node and 1200 MHz instead of {ANY} and the usual clock",
        ),
        (
            placed(replace(BEST, processes_per_node=9, threads=4)),
            f"2 processes a node and 4 threads a process instead of {ANY} and 1 thread a process",
        ),
        # Numbers that would be spelled alike have as many digits as tell them apart.
        (placed(replace(BEST, available_cpu=0.4961)), "available CPU 0.496 instead of 0.500"),
        (placed(replace(BEST, available_bandwidth=99.999)), "bandwidth 99.999 instead of 100 Mbit/s"),
        (placed(replace(BEST, available_cpu=0.5 - 1e-15)), "no difference according to the model"),
        (placed(BEST, wait=0.31), "a wait of 0.3 instead of 0.0 s"),
        (placed(BEST, slowdown=1.0001), "jobs already running stretch it 1.0001 instead of 1.0000 times"),
        # Models of other clusters.
        (placed(replace(BEST, cluster=SLOW)), "another cluster's model"),
        (placed(replace(BEST, cluster=SLOW, available_cpu=0.49)), "another cluster's model"),
        (placed(replace(BEST, cluster=SLOW, available_cpu=0.1)), "available CPU 0.10 instead of 0.50"),
        (placed(replace(BEST, cluster="e", available_cpu=0.49)), "available CPU 0.49 instead of 0.50"),
        (placed(replace(BEST, cluster="e")), "no difference according to the model"),
        (placed(BEST), "no difference according to the model"),
    ],
)  # fmt: skip
def test_the_cause_is_what_alone_makes_most_of_the_difference(other: Placement, cause: str) -> None:
    assert Cause(time).of(placed(BEST), other) == cause


def test_processes_of_several_threads_are_no_processors() -> None:
    chosen = replace(BEST, threads=2)
    cause = Cause(time)
    few = placed(replace(chosen, processors=1))
    assert cause.of(placed(chosen), few) == "1 process of 2 threads instead of 2"
    assert explain_order([few], cause, 1, None) == ["the best resource set of 1 process of 2 threads"]


def test_a_difference_is_measured_where_the_better_one_is_stretched_and_waits() -> None:
    """Stretched twice, half a CPU less costs 160 s instead of 80; waits count by their difference."""
    better = placed(BEST, wait=50.0, slowdown=2.0)
    worse = placed(replace(BEST, available_cpu=0.25), wait=109.0, slowdown=2.0)
    assert Cause(time).of(better, worse) == "available CPU 0.25 instead of 0.50"
    worse = placed(replace(BEST, available_cpu=0.25), wait=131.0, slowdown=2.0)
    assert Cause(time).of(better, worse) == "a wait of 131 instead of 50 s"
    worse = placed(replace(BEST, available_cpu=0.25), wait=50.0, slowdown=3.7)
    assert Cause(time).of(better, worse) == "jobs already running stretch it 3.70 instead of 2.00 times"


@pytest.mark.parametrize(
    ("ours", "theirs", "cause"),
    [
        ({"processes_per_node": 2}, {"processes_per_node": 1}, "1 process a node instead of 2 processes a node"),
        ({"threads": 2}, {"threads": 4}, "4 threads a process instead of 2 threads a process"),
        ({"frequency": 2400.0}, {"frequency": 1200.0}, "1200 MHz instead of 2400 MHz"),
        (
            {"processes_per_node": 4},
            {"processes_per_node": 9},
            "up to 9 processes a node instead of up to 4 processes a node",
        ),
        (
            {"processes_per_node": 1, "threads": 2, "frequency": 1200.0},
            {"processes_per_node": 2, "threads": 1, "frequency": 1200.0},
            "2 processes a node and 1 thread a process instead of 1 process a node and 2 threads a process",
        ),
    ],
)
def test_of_layouts_and_clocks_what_differs_is_said(
    ours: dict[str, float], theirs: dict[str, float], cause: str
) -> None:
    better, worse = replace(BEST, **ours), replace(BEST, **theirs)
    slow = {worse.place: 2.0, better.place: 1.0}
    found = Cause(lambda place, *_: slow[place]).of(_taking(better, 1.0), _taking(worse, 2.0))
    assert found == cause


def _taking(chosen: ResourceSet, seconds: float) -> Placement:
    return Placement(chosen, Prediction(seconds, Interval(seconds, seconds, 0.9), ""))


def of(seconds: float) -> Placement:
    return _taking(BEST, seconds)


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
    assert explain_order(three[:1], cause, 1, None) == ["the best resource set of 2 processors"]
    assert explain_order(three[:1], cause, 2, None) == ["the best of 2 resource sets compared"]
