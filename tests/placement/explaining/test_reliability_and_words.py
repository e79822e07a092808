"""Failures, energy and the parts of a placement beside what they come to by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from known_model import Known

from metasched.blocks.failures import FailureRate
from metasched.placement.clusters.state import ClusterState
from metasched.placement.explaining.breakdown import Explanation, breakdown, explained
from metasched.placement.explaining.documents import PlacementTable, explanation_document, infeasible_document
from metasched.placement.explaining.energy_words import energy_words
from metasched.placement.explaining.reliability import check_failure_times, under_failures
from metasched.placement.explaining.what_if import scaling
from metasched.placement.ranking.query import Curve, InfeasibleError
from metasched.predictors.contract import Term
from metasched.records import InputError, Interval, Placement, Prediction, ResourceSet

COUNT = np.array([1, 2, 4, 8])
TIME = np.array([800.0, 420.0, 230.0, 150.0])


def placement(cpu: float = 1.0, time: float = 100.0, **more) -> Placement:
    frequency = more.pop("frequency", None)
    sets = ResourceSet("c", ("n0", "n1"), 2, cpu, 100.0, frequency=frequency)
    return Placement(sets, Prediction(time, Interval(90.0, 110.0, 0.9), "m"), **more)


def test_failures_strike_jobs_that_others_slow_down_for_as_long_as_they_take() -> None:
    """Twice as slow, after the same wait."""
    rate = FailureRate(1e-3)
    found = under_failures(Curve(COUNT, TIME, TIME, TIME, TIME + 10.0), 8, 4, rate, None, 0.9, slowdown=2.0)
    assert found.success == pytest.approx(math.exp(-1e-3 * 300.0 * 4))
    assert found.expected_completion == pytest.approx(10.0 + math.expm1(4e-3 * 300.0) / 4e-3)


def test_failures_stretch_every_number_of_processors_by_its_own_nodes() -> None:
    """Eight processors on four nodes: two of each, and from scratch (e^(r T) - 1) / r, with r for 1, 1, 2, 4 nodes."""
    rate = FailureRate(1e-3)
    found = under_failures(Curve(COUNT, TIME, TIME, TIME, TIME + 10.0), 8, 4, rate, None, 0.9)
    struck = 1e-3 * np.array([1, 1, 2, 4])
    assert found.completion.tolist() == pytest.approx((10.0 + np.expm1(struck * TIME) / struck).tolist())
    assert found.expected_completion == pytest.approx(found.completion[3])
    assert found.success == pytest.approx(math.exp(-1e-3 * 150.0 * 4))
    assert (found.interval.low, found.interval.high) == pytest.approx((found.success, found.success))
    assert (found.interval.level, found.nodes, found.fastest, found.checkpoints) == (0.9, 4, 8, None)
    often = under_failures(Curve(COUNT, TIME, TIME, TIME, TIME), 8, 8, FailureRate(5e-3), None, 0.9)
    assert often.fastest == 4  # (e^4.6 - 1) / 0.02 s on four nodes, (e^6 - 1) / 0.04 s on eight
    assert often.processors.tolist() == COUNT.tolist()


def test_checkpoints_bound_what_failures_cost() -> None:
    found = under_failures(Curve(COUNT, TIME, TIME, TIME, TIME + 10.0), 2, 2, FailureRate(1e-3), 5.0, 0.8)
    assert found.checkpoints is not None
    assert (found.checkpoints.cost, found.checkpoints.young) == (5.0, pytest.approx(math.sqrt(2 * 5.0 / 2e-3)))
    assert 0.0 < found.checkpoints.exact < found.checkpoints.young
    assert found.checkpoints.expected_completion == pytest.approx(found.completion[1])
    assert found.checkpoints.interval == pytest.approx((420.0 - 5.0) / (found.checkpoints.number + 1))
    assert 10.0 + 420.0 < found.checkpoints.expected_completion < found.expected_completion
    assert found.expected_completion == pytest.approx(10.0 + np.expm1(2e-3 * 420.0) / 2e-3)


def test_the_first_to_finish_writes_the_checkpoints_that_fit_its_length() -> None:
    """Of many processors so short is the work that no checkpoint pays: from there on restarts from scratch count."""
    count = 2 ** np.arange(13)
    time = 1e5 / count + 2.0 * np.sqrt(count)
    curve = Curve(count, time, time, time, time)
    found = under_failures(curve, 4096, 4096, FailureRate(2e-5), 600.0, 0.9)
    assert (found.fastest, found.completion.min()) == (512, pytest.approx(1_049.0, abs=0.5))
    assert found.checkpoints is not None
    assert (found.checkpoints.number, found.checkpoints.interval) == (0, None)
    scratch = under_failures(curve, 4096, 4096, FailureRate(2e-5), None, 0.9)
    assert np.all(found.completion <= scratch.completion)
    assert found.completion[0] < 0.7 * scratch.completion[0]


@pytest.mark.parametrize("cost", [None, 1e4])
def test_where_nothing_ends_nothing_is_first(cost: float | None) -> None:
    found = under_failures(Curve(COUNT, *(TIME * 1e6,) * 4), 8, 4, FailureRate(1.0), cost, 0.9)
    assert found.fastest is None
    assert np.isinf(found.completion).all()


@pytest.mark.parametrize("cost", [0.0, -1.0, math.inf, math.nan])
def test_a_checkpoint_takes_a_finite_time(cost: float) -> None:
    with pytest.raises(InputError, match=r"--checkpoint is .*, expected seconds from"):
        check_failure_times(None, cost)


def test_an_observed_rate_leaves_the_chance_in_doubt() -> None:
    found = under_failures(Curve(COUNT, TIME, TIME, TIME, TIME), 8, 4, FailureRate.observed(2, 1e5), None, 0.9)
    assert found.interval.low < found.success < found.interval.high < 1.0
    assert found.success == pytest.approx((1.0 + 2.5e-5 * 600.0 / 2.5) ** -2.5)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"energy": 500.0}, "500 J, 5 W on average"),
        ({"energy": 500.0, "slowdown": 2.0}, "500 J, 2.5 W on average"),
        ({"frequency": 1800.0}, "at 1800 MHz"),
        ({"success": 0.99174}, "0.9917 probability that no node fails"),
        (
            {"success": 0.99174, "success_interval": Interval(0.98, 0.99512, 0.9)},
            "0.9917 probability (0.98 to 0.9951 at 90%) that no node fails",
        ),
        ({"energy": 500.0, "success": 0.5}, "500 J, 5 W on average, 0.5 probability that no node fails"),
    ],
)
def test_energy_clock_and_chance_are_said_where_they_are_known(more: dict, words: str) -> None:
    assert energy_words(placement(**more)) == words


def test_scaling_is_against_the_fewest_processors() -> None:
    curve = Curve(
        np.array([2, 3, 4, 6]), *(np.array([60.0, 50.0, 30.0, 24.0]),) * 3, np.array([60.0, 50.0, 30.0, 31.0])
    )
    found = scaling(curve, 3)
    assert found.processors.tolist() == [2, 3, 4, 6]
    assert found.execution_time.tolist() == [60.0, 50.0, 30.0, 24.0]
    assert found.speedup.tolist() == pytest.approx([2.0, 2.4, 4.0, 5.0])
    assert found.efficiency.tolist() == pytest.approx([1.0, 0.8, 1.0, 5.0 / 6])
    assert found.fastest == 4
    assert scaling(curve, 4).processors.tolist() == [2, 4, 6]


class Parts(Known):
    """Known, with its two terms named."""

    def breakdown(self, request) -> tuple[Term, ...]:
        asked = (request.problem_size, request.processors, request.available_cpu, request.available_bandwidth)
        both, alone = (float(model.expect_many(*asked).item()) for model in (self, Known(self.work, 0.0)))
        return Term("computation", "", alone), Term("communication", "", both - alone)

    def expect_many(self, *asked):
        return np.atleast_1d(super().expect_many(*asked))


def test_each_part_of_a_completion_has_its_seconds() -> None:
    model = Parts(work=100.0, traffic=1000.0)  # 50 s N and 20 s N of two processors with all of CPU and 100 Mbit/s
    plain = breakdown(placement(time=70.0, queue_wait=7.0), model, 1.0)
    assert [(part.name, pytest.approx(part.seconds)) for part in plain] == [
        ("wait", 7.0),
        ("computation", 50.0),
        ("communication", 20.0),
    ]
    fast = breakdown(placement(cpu=2.0, time=45.0), model, 1.0)
    assert [(part.name, pytest.approx(part.seconds)) for part in fast[3:]] == [("faster processors", -25.0)]
    assert fast[3].how == "the slowest node has 2 times a free processor of the reference node"
    older = breakdown(placement(time=60.0, slowdown=1.5), model, 1.0)
    assert [(part.name, pytest.approx(part.seconds)) for part in older[3:]] == [
        ("model then", -10.0),
        ("contention", 30.0),
    ]
    assert [part.how for part in older[3:]] == [
        "the model has learned since then, and now predicts 70",
        "stretched 1.5 times by jobs already running",
    ]


def test_a_note_says_what_loads_to_come_make() -> None:
    model = Parts(work=100.0, traffic=1000.0)
    cluster = ClusterState.make("c", ["n0", "n1", "n2"], available_cpu=[1.0, 0.8, 0.1], available_bandwidth=100.0)
    found = explained(placement(cpu=0.5, time=120.0), model, 1.0, cluster)
    assert found.notes == (
        "measured last were CPU 0.8 and 100 Mbit/s, for which it would run 82.5 s; forecasts and jobs just placed "
        "change this by +37.5 s",
    )
    assert (found.least_cpu, found.narrowest) == ("node n1", "link of n0")
    assert explained(placement(cpu=0.8, time=82.5), model, 1.0, cluster).notes == ()


def test_a_placement_with_all_that_can_be_known_reads_back_from_its_document() -> None:
    sets = ResourceSet("c", ("n0", "n1"), 8, 0.5, 90.0, 4, 2, 1800.0)
    prediction = Prediction(100.0, Interval(90.0, 110.0, 0.8), "m", ("few runs",))
    whole = Placement(sets, prediction, 7.0, 1.5, "best", 500.0, 0.99, 80.0)
    document = explanation_document(
        Explanation(whole, (Term("wait", "until it starts", 7.0),), "node n0", "link of n1", ("a note",)),
        {"time": None},
    )
    assert PlacementTable.model_validate(document).record() == whole
    assert document["parts"] == [{"name": "wait", "how": "until it starts", "seconds": 7.0}]
    assert (document["least_cpu"], document["narrowest"], document["notes"]) == ("node n0", "link of n1", ["a note"])
    assert document["costs"] == {"time": None}
    assert infeasible_document("cg", 5.0, InfeasibleError("all are down", for_now=True)) == {
        "application": "cg", "problem_size": 5.0, "placements": [], "why": "all are down", "for_now": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nodes", []),
        ("processors", 0),
        ("processors", 1_000_000_001),
        ("available_cpu", 0.0),
        ("execution_time", math.inf),
        ("interval", {"low": 1.0, "high": 2.0, "level": 1.0}),
        ("interval", {"low": 1.0, "high": 2.0, "level": 0.0}),
        ("queue_wait", -1.0),
        ("slowdown", 0.99),
        ("success", 1.01),
        ("threads", 0),
        ("processes_per_node", 0),
    ],
)
def test_a_document_that_no_placement_has_is_refused(key: str, value: object) -> None:
    document = placement(success=1.0).as_dict()
    assert PlacementTable.model_validate(document).record().success == 1.0
    known = placement(success=0.75, success_interval=Interval(0.5, 1.0, 0.9))
    assert PlacementTable.model_validate(known.as_dict()).record().success_interval == known.success_interval
    with pytest.raises(ValueError, match=key):
        PlacementTable.model_validate(document | {key: value})
