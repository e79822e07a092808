"""Jobs that wait for the nodes they were sent to are let go, and no others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from metasched.advised_placements import AdvisedPlacement, Answer, Ask
from metasched.placement.clusters.partition import JobLimits, Partition
from metasched.placement.clusters.state import ClusterState
from metasched.schedulers.contract import BoundJob
from metasched.service.advice.release import release
from metasched.service.state.live_clusters import View
from metasched.store.database.store import Store

VIEW = View(0.0, (Partition(ClusterState.make("c/p", ["n1", "n2", "n3"]), "c", "c", "p", 7200.0, True, 600.0),))
BOUND = BoundJob("7", "0a", frozenset({"n1", "n2"}), "p", -30.0)


@dataclass
class Scheduler:
    """Holds one job that is bound."""

    job: BoundJob = BOUND
    name: str = "c"
    released: list[tuple[str, float | None, int | None]] = field(default_factory=list)

    def bound(self) -> list[BoundJob]:
        return [self.job]

    partitions: Sequence[str] = ()

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str]) -> None:
        self.released.append((number, time_limit, nodes))
        self.partitions = partitions


def let_go(
    folder: Path,
    job: BoundJob = BOUND,
    steer: str = "nodes",
    view: View = VIEW,
    advised: float | None = 60.0,
    scheduler: Scheduler | None = None,
    **asked: object,
) -> Scheduler:
    ask = Ask.model_validate({"application": "cg", "problem_size": 5, "scheduler": "c"} | asked)
    answer = Answer(
        id="0a", mode="act", steer=steer, placed=True, message="", scheduler="c", partition="p", nodes="n[1-2]",
        node_count=2, processors=4, time_limit=advised,
    )  # fmt: skip
    scheduler = scheduler or Scheduler(job)
    with Store.open(folder / "metasched.db") as store:
        store.placements.add([AdvisedPlacement(5.0, ask, answer)])
        count = release(scheduler, store.placements, view, -10.0)  # type: ignore[arg-type]
    assert count == len(scheduler.released)
    return scheduler


def released(folder: Path, job: BoundJob = BOUND, steer: str = "nodes", **asked: Any) -> list[object]:
    scheduler = let_go(folder, job, steer, **asked)
    assert not scheduler.partitions
    return [*scheduler.released]


def test_a_job_gets_back_what_it_would_have_had(tmp_path: Path) -> None:
    assert released(tmp_path) == [("7", 600.0, 3)]


def test_the_limit_and_the_spread_that_a_user_asked_for_stay(tmp_path: Path) -> None:
    assert released(tmp_path, time_limit=1800.0, per_node=1) == [("7", 1800.0, None)]


def test_a_job_that_was_sent_to_one_of_several_partitions_may_run_in_all_that_admit_it(tmp_path: Path) -> None:
    def partition(name: str, scheduler: str = "c", longest: float = 7200.0, total: int = 8, **more: Any) -> Partition:
        limits = JobLimits(**more)
        state = ClusterState.make(f"{scheduler}/{name}", ["n1"])
        return Partition(state, "c", scheduler, name, longest, True, 600.0, total, lambda holder: limits)

    others = (
        partition("small", total=3), partition("short", longest=599.0), partition("other", "d"), partition("q"),
        partition("denied", processors=0), partition("brief", time=599.0), partition("wide", fewest_nodes=3),
        partition("elsewhere"), partition("r", nodes=2, time=600.0, processors=4),
    )  # fmt: skip
    view = View(0.0, (*others, *VIEW.partitions))
    named = [each.name for each in view.partitions if each.name != "elsewhere"]
    assert let_go(tmp_path, view=view, partitions=named).partitions == ["p", "q", "r"]
    (tmp_path / "again").mkdir()
    assert let_go(tmp_path / "again", view=view, partitions=["p"]).partitions == []


@pytest.mark.parametrize(
    ("now", "kept"), [(0.0, 1800.0), (60.0, 1800.0), (1800.0, 1800.0), (3600.0, 3600.0), (math.inf, None)]
)
def test_no_limit_becomes_shorter_than_an_operator_has_made_it(now: float, kept: float | None, tmp_path: Path) -> None:
    assert released(tmp_path, replace(BOUND, time_limit=now), time_limit=1800.0) == [("7", kept, 3)]


@pytest.mark.parametrize(
    ("now", "advised", "kept"),
    [
        (120.0, 121.0, 120.0),  # 121 s were given as three minutes
        (180.0, 121.0, 1800.0),
        (120.0, None, 120.0),  # whose limit was left as it was
        (1800.0, None, 1800.0),
        (0.0, None, 1800.0),  # which the scheduler does not tell
    ],
)
def test_no_limit_becomes_longer_than_its_user_has_made_it(
    now: float, advised: float | None, kept: float, tmp_path: Path
) -> None:
    job = replace(BOUND, time_limit=now)
    assert released(tmp_path, job, advised=advised, time_limit=1800.0) == [("7", kept, 3)]


@pytest.mark.parametrize("own", ["q", "q,p", "p,q"])
def test_a_job_stays_in_the_partitions_that_its_user_has_put_it_into(own: str, tmp_path: Path) -> None:
    other = Partition(ClusterState.make("c/q", ["n1"]), "c", "c", "q", 7200.0, True, 300.0)
    view = View(0.0, (*VIEW.partitions, other))
    scheduler = let_go(tmp_path, replace(BOUND, partition=own), view=view)
    assert scheduler.partitions == []
    # The default limit is that of the first one, as in Slurm.
    assert scheduler.released == [("7", 600.0 if own.startswith("p") else 300.0, 3 if own.startswith("p") else 1)]


def test_a_job_in_a_partition_that_is_not_known_gets_the_limit_of_the_one_that_it_was_sent_to(tmp_path: Path) -> None:
    assert let_go(tmp_path, replace(BOUND, partition="hidden")).released == [("7", 600.0, 3)]


@pytest.mark.parametrize(("most", "nodes"), [(None, 3), (2, 3), (1, None), (3, None)])
def test_the_number_of_nodes_that_a_user_has_set_meanwhile_stays(
    most: int | None, nodes: int | None, tmp_path: Path
) -> None:
    assert released(tmp_path, replace(BOUND, most_nodes=most)) == [("7", 600.0, nodes)]


@pytest.mark.parametrize(
    "job",
    [
        BoundJob("7", "0a", frozenset({"n1", "n2"}), "p", -5.0),
        BoundJob("7", "0a", frozenset({"n3"}), "p", -30.0),
        BoundJob("7", "0b", frozenset({"n1", "n2"}), "p", -30.0),
    ],
    ids=["waits for a moment", "user named its nodes", "placement unknown"],
)
def test_others_stay_as_they_are(job: BoundJob, tmp_path: Path) -> None:
    assert released(tmp_path, job) == []


@pytest.mark.parametrize("still_bound", [True, False])
def test_only_a_job_that_stays_bound_is_reported_as_one_that_could_not_be_released(
    still_bound: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @dataclass
    class Refusing(Scheduler):
        def release(self, number: str, *others: object) -> None:
            if not still_bound:
                self.job = replace(self.job, number="8")  # it has started
            raise RuntimeError("job is no longer pending")

    assert let_go(tmp_path, scheduler=Refusing()).released == []
    assert ("job 7 of c stays bound to n[1-2]: job is no longer pending" in caplog.text) == still_bound


def test_a_job_that_was_not_sent_to_nodes_stays_as_it_is(tmp_path: Path) -> None:
    assert released(tmp_path, steer="features") == []
