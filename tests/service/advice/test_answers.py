"""The fields of an answer beside what they are by hand: features, steering, and the time limit."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from metasched.advised_placements import Ask
from metasched.placement.clusters.partition import JobLimits, Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import Interval, Placement, Prediction, ResourceSet
from metasched.service.advice import answers
from metasched.service.advice.answers import _common_feature, _steer, _time_limit, answer, holder_of, nothing

FEATURES = [frozenset(each.split()) for each in ("ib new gpu", "ib new", "ib old", "ib old big", "")]
STATE = ClusterState.make("c/p", [f"n{number}" for number in range(5)], features=FEATURES)
BEST = Placement(
    ResourceSet("c/p", ("n0", "n1"), 2, 0.9, 90.0), Prediction(100.0, Interval(80.0, 125.0, 0.9), "m"), slowdown=1.2
)
CONFIGURATION: Any = SimpleNamespace(
    mode="act", steer="nodes", time_limit_level=0.99, time_limit_margin=1.5, energy=SimpleNamespace(set_frequency=True)
)
ASK = Ask(application="cg", problem_size=500.0, qos="q", login="ann", account="a")


@pytest.mark.parametrize(
    ("nodes", "feature"),
    [("0", "gpu"), ("01", "new"), ("12", "ib"), ("23", "old"), ("3", "big"), ("04", ""), ("4", "")],
)
def test_a_job_prefers_the_rarest_feature_that_its_nodes_have_in_common(nodes: str, feature: str) -> None:
    assert _common_feature(STATE, tuple(f"n{number}" for number in nodes)) == feature


@pytest.mark.parametrize(
    ("steer", "releases", "expected"),
    [("nodes", True, "nodes"), ("nodes", False, "features"), ("partition", False, "partition"), ("none", True, "none")],
)
def test_a_job_is_bound_to_nodes_where_it_can_be_released(steer: str, releases: bool, expected: str) -> None:
    configuration: Any = SimpleNamespace(steer=steer)
    assert _steer(Partition(STATE, "p", releases=releases), configuration) == expected


@pytest.mark.parametrize(
    ("high", "asked", "partition", "accounted", "limit"),
    [
        (100.0, None, None, None, 180.0),  # 100 s, 1.2 times as long as alone, and half of that more
        (100.1, None, None, None, 240.0),
        (100.0, 150.0, None, None, 150.0),
        (100.0, 300.0, 170.0, None, 170.0),
        (100.0, 300.0, 170.0, 160.0, 160.0),
        (math.inf, None, None, None, None),
        (math.inf, None, 170.0, None, 170.0),
    ],
)
def test_a_time_limit_is_hardly_reached_and_no_longer_than_what_holds_now(
    high: float, asked: float | None, partition: float | None, accounted: float | None, limit: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given: list[Any] = []

    def predicted(*words: Any) -> Prediction:
        given.append(words[1:])
        return Prediction(90.0, Interval(80.0, high, 0.99), "m")

    monkeypatch.setattr(answers, "predict_one", predicted)
    chosen = Partition(STATE, "p", time_limit=partition, limits=lambda holder: JobLimits(time=accounted))
    ask = ASK.model_copy(update={"time_limit": asked})
    nothing_known: Any = None
    counted: Any = SimpleNamespace(doubt=lambda processors, level: ("doubt", processors, level))
    assert _time_limit(ask, BEST, chosen, counted, nothing_known, CONFIGURATION) == limit
    assert given == [(500.0, 2, 0.9, 90.0, 0.99, ("doubt", 2, 0.99))]


@pytest.mark.parametrize(
    ("slowdown", "ties", "said"),
    [
        (1.0, (), "100 s expected, 80.0 s to 125 s at 90%"),
        (1.009, (), "101 s expected, 80.7 s to 126 s at 90%"),
        (1.01, (), "101 s expected, 1.01 times as long as alone, 80.8 s to 126 s at 90%"),
        (1.0, ("q", "r"), "100 s expected, 80.0 s to 125 s at 90%; Slurm chooses among p, q, r, which are near ties"),
    ],
)  # fmt: skip
def test_an_answer_says_where_how_long_and_who_chooses(
    slowdown: float, ties: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_time_limit", lambda *words: 180.0)
    chosen = Partition(STATE, "platform", "slurm", "p", releases=True)
    nothing_known: Any = None
    found = answer(
        "0a", ASK, replace(BEST, slowdown=slowdown), chosen, STATE, nothing_known, ("a doubt",), CONFIGURATION, ties
    )
    assert found.message == f"cg n=500 on 2 processors of p (n[0-1]): {said}"
    assert found.model_dump(exclude={"placement", "message"}) == {
        "id": "0a", "mode": "act", "steer": "partition" if ties else "nodes", "placed": True, "scheduler": "slurm",
        "partition": "p", "partitions": ["p", *ties] if ties else [], "nodes": "n[0-1]", "node_count": 2,
        "processors": 2, "prefer": "new", "frequency": None, "time_limit": 180.0, "warnings": ["a doubt"], "move": None,
    }  # fmt: skip


def test_no_advice_says_why_and_limits_are_of_who_is_billed() -> None:
    found = nothing("0a", "no model of cg yet", CONFIGURATION)
    assert (found.placed, found.message, found.mode, found.steer) == (False, "no model of cg yet", "act", "nodes")
    holder = holder_of(ASK)
    assert (holder.qos, holder.user, holder.account) == ("q", "ann", "a")
