"""Completion in partitions where a job has to wait: beside what every number of processors gives, one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Forecast, Loads
from metasched.placement.loads.forecast import RecordedLoads
from metasched.records import InputError, Interval, Placement, Prediction, Request, ResourceSet
from metasched.service.advice import recent
from metasched.service.advice.later import _limit, described, later
from metasched.service.advice.recent import RecentPlacements
from metasched.service.schemas import RankIn

STATE = ClusterState.make(
    "c/p", ["n0", "n1", "n2"], processors=[4, 4, 8], available_cpu=[0.5, 0.7, 0.1],
    available_bandwidth=[50.0, 70.0, 10.0],
)  # fmt: skip
UP = replace(STATE, up=np.array([True, True, False]))


def partition(name: str = "p", **changes: Any) -> Partition:
    state = replace(changes.pop("state", UP), name=f"c/{name}")
    return Partition(state, "east", **({"scheduler": "c", "name": name, "time_limit": 1000.0, "total": 24} | changes))


class Model:
    """100 s on one processor; half a second more for each; a tenth around that; nothing on 16."""

    def __init__(self) -> None:
        self.asked: list[tuple[Request, float]] = []

    def predict(self, request: Request, level: float) -> Prediction:
        """The time, by P alone."""
        self.asked.append((request, level))
        if request.processors == 16:
            raise InputError("not learned")
        time = 100.0 / request.processors + 0.5 * request.processors
        high = math.inf if request.processors == 2 else 1.1 * time
        return Prediction(time, Interval(time - 20.0, high, level), "")


class Queued:
    """The wait grows with P; a partition named ``full`` has none."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def one_more(self, partition: str, processors: int, limit: float, source: str) -> dict[str, float]:
        """Ten seconds for each processor."""
        self.asked.append((partition, processors, limit, source))
        if partition == "full":
            raise InputError("no such queue")
        return {"wait": 10.0 * processors, "low": 1.0 * processors, "high": 90.0 * processors}


def asked_for(
    partitions: tuple[Partition, ...],
    question: RankIn,
    constraints: Constraints,
    known: Any,
    over: Forecast | None = None,
) -> Any:
    models = SimpleNamespace(on=lambda application, usable: {each.state.name: known for each in usable})
    placer: Any = SimpleNamespace(
        constraints=lambda asked: constraints, loads=lambda now, forecast: Loads(over if forecast else None, now=now)
    )
    queued, view = Queued(), SimpleNamespace(partitions=partitions)
    return later(question, view, models, placer, queued, 1000.0), queued.asked  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "tried"),
    [
        ({}, [1, 4, 8]),  # 2 and 16 have no finite prediction
        ({"min_processors": 3}, [3, 6, 12, 24]),
        ({"max_processors": 4}, [1, 4]),
        ({"processors": (4, 8, 25, 24)}, [4, 8, 24]),
        ({"processors": (3, 5, 24), "min_processors": 4, "max_processors": 5}, [5]),
        ({"processors": tuple(range(3, 15))}, [3, 5, 6, 8, 9, 11, 12, 14]),
    ],
)
def test_the_earliest_completion_is_chosen_among_the_numbers_of_processors(
    limits: dict[str, Any], tried: list[int]
) -> None:
    model = Model()
    question = RankIn(application="cg", problem_size=700.0, level=0.8)
    (best,), waits = asked_for((partition(),), question, Constraints(**limits), model)
    assert [processors for _, processors, *_ in waits] == tried
    times = {count: 100.0 / count + 0.5 * count for count in tried}
    assert waits == [("p", count, pytest.approx(1.1 * times[count]), "c") for count in tried]
    count = min(tried, key=lambda each: 10.0 * each + times[each])
    assert best == {
        "cluster": "c/p", "processors": count, "wait": 10.0 * count, "low": 1.0 * count, "high": 90.0 * count,
        "execution_time": times[count], "execution_low": max(times[count] - 20.0, 0.0),
        "execution_high": pytest.approx(1.1 * times[count]),
    }  # fmt: skip
    # What the nodes that are up have to spare on average.
    request, level = model.asked[0]
    assert (request.problem_size, level) == (700.0, 0.8)
    assert (request.available_cpu, request.available_bandwidth) == pytest.approx((0.6, 60.0))


def test_numbers_that_are_all_too_large_are_not_tried() -> None:
    question = RankIn(application="cg", problem_size=700.0)
    assert asked_for((partition(),), question, Constraints(processors=(30, 40)), Model()) == ([], [])


def test_each_thread_of_a_job_waits_for_a_processor() -> None:
    question = RankIn(application="cg", problem_size=700.0, threads=3)
    (best,), waits = asked_for((partition(),), question, Constraints(), Model())
    assert [processors for _, processors, *_ in waits] == [3, 12, 24]
    assert best["processors"] == 1
    assert best["wait"] == 30.0


def test_large_partitions_are_tried_with_the_eight_largest_powers_of_two() -> None:
    question = RankIn(application="cg", problem_size=700.0)
    _, waits = asked_for((partition(total=5000, time_limit=None),), question, Constraints(), Model())
    assert [processors for _, processors, *_ in waits] == [32 << power for power in range(8)]


def test_partitions_that_were_not_asked_for_or_have_nothing_are_left_out() -> None:
    down = replace(UP, up=np.zeros(3, dtype=bool))
    every = (
        partition("p"), partition("q"), partition("full"), partition("down", state=down), partition("x", scheduler=""),
        partition("s", time_limit=10.0),
    )  # fmt: skip

    def named(**asked: Any) -> list[str]:
        question = RankIn(application="cg", problem_size=700.0, **asked)
        return [each["cluster"] for each in asked_for(every, question, Constraints(), Model())[0]]

    assert named() == ["c/p", "c/q"]
    assert named(clusters=["c/q", "c/x"]) == ["c/q"]
    assert named(partitions=["p", "down"]) == ["c/p"]
    question = RankIn(application="cg", problem_size=700.0)
    assert asked_for(every, question, Constraints(), None)[0] == []


@pytest.mark.parametrize(
    ("most", "expected"), [(None, 120.0), (200.0, 120.0), (110.0, 110.0), (100.0, 100.0), (99.9, None)]
)
def test_a_job_asks_for_what_it_hardly_exceeds_within_the_partitions_limit(
    most: float | None, expected: float | None
) -> None:
    prediction = Prediction(100.0, Interval(80.0, 120.0, 0.9), "")
    if expected is None:
        with pytest.raises(InputError, match="the job would be ended by the partition's time limit"):
            _limit(partition(time_limit=most), prediction)
    else:
        assert _limit(partition(time_limit=most), prediction) == expected


class Sensitive:
    """100 s by the processors and the CPU that there is."""

    def predict(self, request: Request, level: float) -> Prediction:
        """Exactly that, with a model that is in no doubt."""
        time = 100.0 / request.processors / request.available_cpu
        return Prediction(time, Interval(time, time, level), "")

    def expect_many(self, problem_size: float, processors: Any, cpu: Any, bandwidth: Any) -> Any:
        """The same for arrays."""
        return 100.0 / np.asarray(processors) / cpu + 0.0 * bandwidth


def time_of(state: ClusterState, over: Forecast | None = None, **asked: Any) -> tuple[float, float, float]:
    """What one process needs in a partition where it has to wait, with the ends of the interval."""
    question = RankIn(application="cg", problem_size=700.0, processors=[1], **asked)
    constraints = Constraints(processors=(1,))
    ((found,), _) = asked_for((partition(state=state),), question, constraints, Sensitive(), over)
    return found["execution_time"], found["execution_low"], found["execution_high"]


def test_a_silent_node_has_no_more_to_spare_than_the_lower_quartile_of_the_others() -> None:
    state = replace(STATE, age=np.array([0.0, 0.0, 900.0]), available_cpu=np.array([0.5, 0.5, 1.0]))
    assert time_of(state)[0] == pytest.approx(200.0)
    assert time_of(state, stale_after=1000.0)[0] == pytest.approx(150.0)


def test_nodes_are_as_fast_as_they_are() -> None:
    assert time_of(replace(STATE, available_cpu=np.full(3, 0.5), speed=np.full(3, 0.5)))[0] == pytest.approx(400.0)


def test_what_is_to_spare_is_forecast_until_the_end_of_the_run_and_the_interval_includes_its_doubt() -> None:
    time = np.arange(0.0, 1000.0, 10.0)
    busy = np.where(np.arange(100) % 20 < 10, 0.9, 0.1)[:, None] * np.ones(3)
    recorded = RecordedLoads(time, STATE.nodes, busy, np.full((100, 3), 50.0), now=990.0)
    horizons: list[float] = []

    def over(cluster: ClusterState, horizon: float) -> ClusterState:
        horizons.append(horizon)
        return recorded(cluster, horizon)

    measured = replace(STATE, available_cpu=np.full(3, 0.9))
    now = 100.0 / 0.9
    assert time_of(measured, over, forecast=False) == pytest.approx((now, now, now))
    assert not horizons
    time_then, low, high = time_of(measured, over)
    assert time_then > 1.3 * now
    assert low < 0.99 * time_then
    assert high > 1.01 * time_then
    assert horizons[-1] == pytest.approx(10.0 + time_then, rel=0.2)


def test_clusters_are_described_by_their_processors_and_the_age_of_their_schedulers_report() -> None:
    every = (partition("p"), partition("q", total=None), partition("r", total=5), partition("s", scheduler="other"))
    live: Any = SimpleNamespace(seen_at={"c": 70.0}, view=SimpleNamespace(partitions=every))
    expected = [("p", 24, "c", 30.0), ("q", 8, "c", 30.0), ("r", 8, "c", 30.0), ("s", 24, "other", None)]
    assert described(live, 100.0) == {
        f"c/{name}": {"scheduler": scheduler, "partition": name, "free": 8, "processors": processors, "age": age}
        for name, processors, scheduler, age in expected
    }
    assert described(live, 60.0)["c/p"]["age"] == 0.0


@pytest.mark.parametrize(
    ("nodes", "processors", "taken"),
    [
        (("n0",), 4, (4,)),
        (("n0", "n1"), 8, (4, 4)),
        (("n0", "n1"), 5, (4, 1)),
        (("n0", "n1", "n2"), 6, (4, 1, 1)),
        (("n2", "n0", "n1"), 3, (1, 1, 1)),
        (("n2", "n0"), 12, (8, 4)),
        (("n0", "n1"), 20, (4, 4)),
    ],
)
def test_a_placement_takes_free_processors_node_by_node_and_one_of_each_at_least(
    nodes: tuple[str, ...], processors: int, taken: tuple[int, ...]
) -> None:
    placed, view = (
        RecentPlacements(),
        SimpleNamespace(partitions=(partition("p"), partition("q"), partition("x", scheduler="d"))),
    )
    sets = ResourceSet("c/p", nodes, processors, 0.5, 50.0)
    best = Placement(sets, Prediction(90.0, Interval(80.0, 100.0, 0.9), ""), queue_wait=3.0)
    placed.add(best, partition("p"), STATE, Constraints(), view, 1000.0)  # type: ignore[arg-type]
    (job,) = placed.now()
    assert (job.cluster, job.nodes, job.processors) == ("c/p", nodes, taken)
    assert (job.dedicated, job.waits, job.overlapping) == (True, True, {"c/q"})
    assert (job.start, job.execution_time) == (1000.0, best.completion)
    placed.add(replace(best, queue_wait=0.0), partition("p", scheduler=""), STATE, Constraints(), view, 1000.0)  # type: ignore[arg-type]
    _, other = placed.now()
    assert (other.dedicated, other.waits) == (False, False)


def test_of_too_many_placements_the_oldest_eighth_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST_PLACED", 16)
    placed, view = RecentPlacements(), SimpleNamespace(partitions=(partition("p"),))
    counts = []
    for number in range(20):
        best = Placement(ResourceSet("c/p", ("n0",), 1, 0.5, 50.0), Prediction(1e6, Interval(1e6, 1e6, 0.9), ""))
        placed.add(best, partition("p"), STATE, Constraints(), view, 1000.0 + number)  # type: ignore[arg-type]
        counts.append(len(placed.now()))
    assert counts == [*range(1, 17), 15, 16, 15, 16]
    # What counts is when their scheduler was heard, less what a job needs until its allocation.
    placed.forget(view, {"c": 1000.0 + 17 + recent.ALLOCATED_WITHIN}, 1019.0)  # type: ignore[arg-type]
    assert len(placed.now()) == 3
    placed.forget(view, {"c": 1e9}, 1019.0)  # type: ignore[arg-type]
    assert len(placed.now()) == 3
    placed.forget(SimpleNamespace(partitions=view.partitions), {}, 1e9)  # type: ignore[arg-type]
    assert len(placed.now()) == 0
