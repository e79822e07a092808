"""Usual loads of runs, what stands in for loads that were not measured, and what is said of what runs do not tell."""

from __future__ import annotations

import math

import pytest

from candidate_functions.terms import Observations
from metasched.predictors.robust.loads import Loads
from metasched.predictors.robust.notes import assumed_effects, notes_on

NAN = math.nan


def runs(cpu: list[float], bw: list[float], p: list[int] | None = None, n: list[float] | None = None) -> Observations:
    count = len(cpu)
    return Observations.of(n or [100.0] * count, p or [2] * count, cpu, bw, [1.0] * count)


def spread(logs: list[float], middle: float) -> float:
    """Around the median, with two imagined runs of 0.4."""
    return math.sqrt((sum((each - middle) ** 2 for each in logs) + 2.0 * 0.16) / (len(logs) + 2.0))


def test_usual_loads_are_medians_with_spreads_on_the_logarithm() -> None:
    cpu, bw = [0.2, 0.5, 0.9, NAN], [90.0, NAN, 50.0, NAN]
    found = Loads.of(runs(cpu, bw))
    assert (found.cpu, found.bandwidth) == pytest.approx((0.5, math.sqrt(90.0 * 50.0)))
    assert found.cpu_spread == pytest.approx(spread([math.log(each) for each in cpu[:3]], math.log(0.5)))
    links = [math.log(90.0), math.log(50.0)]
    assert found.bandwidth_spread == pytest.approx(spread(links, sum(links) / 2))
    assert found.varied


@pytest.mark.parametrize(
    ("cpu", "bw", "varied"),
    [
        ([0.5, 0.5], [90.0, 90.0], False), ([0.5, 0.6], [90.0, 90.0], True), ([0.5, 0.5], [90.0, 91.0], True),
        ([0.5, NAN], [NAN, NAN], False), ([NAN, NAN], [NAN, 90.0], False),
    ],
)  # fmt: skip
def test_loads_varied_where_two_that_were_measured_differ(cpu: list[float], bw: list[float], varied: bool) -> None:
    assert Loads.of(runs(cpu, bw)).varied is varied


@pytest.mark.parametrize("count", [1, 2, 6])
def test_where_no_load_was_measured_idle_nodes_are_assumed_the_surer_the_more_runs_there_are(count: int) -> None:
    found = Loads.of(runs([NAN] * count, [NAN] * count))
    assert (found.cpu, found.bandwidth) == (1.0, 1000.0)
    assert (found.cpu_spread, found.bandwidth_spread) == pytest.approx((0.4 * 2 / (2 + count),) * 2)


def test_what_was_not_measured_is_filled_in_with_its_spread() -> None:
    loads = Loads(0.5, 80.0, 0.3, 0.2, varied=True)
    whole, cpu, bandwidth = loads.filled(runs([0.9, NAN, NAN], [NAN, 70.0, NAN]))
    assert (whole.cpu.tolist(), whole.bw.tolist()) == ([0.9, 0.5, 0.5], [80.0, 70.0, 80.0])
    assert (cpu.tolist(), bandwidth.tolist()) == ([0.0, 0.3, 0.3], [0.2, 0.0, 0.2])


@pytest.mark.parametrize(
    ("sizes", "counts", "missing", "said"),
    [
        ([1.0, 2.0] * 5, [1, 2] * 5, 0, []),
        ([1.0, 2.0] * 4 + [1.0], [1, 2] * 4 + [1], 0,
         ["with 9 runs the model relies largely on what is typical of parallel applications"]),
        ([1.0] * 10, [1, 2] * 5, 0,
         ["10 runs on 2 processor counts with 1 problem size: how time grows with N is mostly assumed"]),
        ([1.0, 2.0] * 5, [4] * 10, 0,
         ["10 runs on 1 processor count with 2 problem sizes: how time falls with P is mostly assumed"]),
        ([1.0] * 10, [4] * 10, 0,
         ["10 runs on 1 processor count with 1 problem size: how time grows with N and falls with P is mostly "
          "assumed"]),
        ([1.0, 2.0] * 5, [1, 2] * 5, 1, ["loads were not measured during 1 of 10 runs, which have less weight"]),
    ],
)  # fmt: skip
def test_what_runs_do_not_determine_is_said(
    sizes: list[float], counts: list[int], missing: int, said: list[str]
) -> None:
    cpu = [NAN] * missing + [0.5] * (len(sizes) - missing)
    assert list(notes_on(runs(cpu, [90.0] * len(sizes), counts, sizes))) == said


def test_a_run_without_one_of_its_loads_counts_once() -> None:
    (note,) = notes_on(runs([NAN, 0.5, NAN] + [0.5] * 8, [NAN, NAN, 90.0] + [90.0] * 8, [1, 2] * 5 + [1],
                            [1.0, 2.0] * 5 + [1.0]))  # fmt: skip
    assert note == "loads were not measured during 3 of 11 runs, which have less weight"


CPU, LINKS = (f"available {what} hardly varied in the runs: its effect is assumed" for what in ("CPU", "bandwidth"))


@pytest.mark.parametrize(
    ("cpu", "bw", "p", "said"),
    [
        ([0.5, 0.5 * math.exp(0.11)], [90.0, 90.0 * math.exp(0.11)], [2, 2], []),
        ([0.5, 0.5 * math.exp(0.09)], [90.0, 90.0 * math.exp(0.11)], [2, 2], [CPU]),
        ([0.5, 0.9], [90.0, 90.0 * math.exp(0.09)], [2, 2], [LINKS]),
        ([0.5, 0.9], [90.0, 40.0], [2, 1], [LINKS]),  # of one processor the link has no effect
        ([NAN, NAN], [NAN, NAN], [2, 2], [CPU, LINKS]),
        ([0.5, NAN], [90.0, 40.0], [2, 2], [CPU]),
    ],
)
def test_loads_that_hardly_varied_are_named(cpu: list[float], bw: list[float], p: list[int], said: list[str]) -> None:
    assert list(assumed_effects(runs(cpu, bw, p))) == said
