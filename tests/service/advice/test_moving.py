"""Running jobs are advised by the daemon, to their own users; those that allow it are moved, and moves are judged."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from known_model import Known

from metasched.advised_placements import AdvisedPlacement, Outcome
from metasched.cli.placements.advise_running import advice_lines
from metasched.jobs import LONGEST_COMMENT, LONGEST_MARK, moved_comment, read_mark
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.moving.elsewhere import Mover
from metasched.records import InputError, Load, Settings
from metasched.service.advice.moving import RunningAdvisor, _without
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.service.learning.moves import Moves
from metasched.service.quality.advice_quality import settled
from metasched.store.errors import StoreError
from tests.service.daemons import headers_for, running

MARK = "metasched:app=cg,n=1800,checkpoint=2"
JOB = StartedJob(
    ("n1",), (1,), 20.0, "cg", 1800.0, number="7", partition="main", user="alice", user_number="7001", comment=MARK
)


class Moving:
    """A scheduler that puts jobs where it is told, and remembers it."""

    name = "toy"

    def __init__(self) -> None:
        self.moved: list[tuple[str, tuple[str, ...], str, str]] = []
        self.broken = False

    def move(self, number: str, nodes: Sequence[str], partition: str, comment: str) -> None:
        if self.broken:
            raise RuntimeError("the toy does not move it")
        self.moved.append((number, tuple(nodes), partition, comment))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("daemon"), moving={"restart": 1.0}) as daemon:
        state = ClusterState.make("toy/main", ["n1", "n2"], processors=[3, 4], available_bandwidth=100.0)
        now = daemon.clock.now()
        daemon.clusters.put("toy", [Partition(state, "east", "toy", "main")], now)
        daemon.clusters.put_running("toy", [JOB, replace(JOB, number="8", user="bob", comment="")], now)
        yield daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[TestClient]:
    headers = headers_for(daemon, f"{time.monotonic()}", "reader", user="alice")
    with TestClient(make_app(daemon), headers=headers) as client:
        yield client


def loaded(daemon: Daemon, cpu: float) -> None:
    now = daemon.clock.now()
    daemon.clusters.note([Load(now, "n1", cpu, 100.0), Load(now, "n2", 0.95, 100.0)])
    daemon.clusters.refresh(now)


def asked(client: TestClient, status: int = 200, **question: Any) -> dict[str, Any]:
    answer = client.post("/v1/running-jobs/advice", json=question)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def test_a_job_on_a_busy_node_should_move_and_on_an_idle_one_stay(daemon: Daemon, client: TestClient) -> None:
    loaded(daemon, 0.05)
    found = asked(client, job="7", partitions=["main"])
    assert (found["move"], found["placement"]["nodes"]) == (True, ["n2"])
    assert found["costs"] == {"checkpoint": 2.0, "transfer": 0.0, "restart": 1.0}
    assert advice_lines(found)[0].startswith("move to toy/main: n2: the move saves ")
    loaded(daemon, 0.95)
    found = asked(client, job="7", partitions=["main"])
    assert not found["move"]
    assert advice_lines(found)[0].startswith("stay on toy/main: n1: ")


def test_of_two_jobs_on_the_same_nodes_only_the_one_that_would_move_is_left_out(daemon: Daemon) -> None:
    jobs = [RunningJob(("n1",), (2,), 30.0, 10.0, running_for=each) for each in (5.0, 60.0, 900.0)]
    other = RunningJob(("n2",), (2,), 30.0, 10.0)
    mover = Mover(1800.0, "toy/main", ("n1",), (2,), 60.0)
    assert _without((*jobs, other), mover) == (jobs[0], jobs[2], other)
    assert _without((replace(jobs[1], processors=(1,)), jobs[2]), mover) == (replace(jobs[1], processors=(1,)),)
    assert _without((other,), mover) == (other,)


def test_a_job_with_gpus_is_not_advised_to_move(daemon: Daemon, client: TestClient) -> None:
    now = daemon.clock.now()
    daemon.clusters.refresh(now)
    before = daemon.clusters.view.running["toy"]
    special = replace(JOB, number="9", devices=(("gpu", "a100"), ("gpus", 2.0)))
    daemon.clusters.put_running("toy", [*before, special], now)
    daemon.clusters.refresh(now)
    try:
        assert asked(client, 422, job="9")["detail"] == (
            "job 9 has gpu a100, gpus 2, expected one that needs processors alone"
        )
        assert [job.number for job in daemon.running_advisor.movable(daemon.clusters.view, "toy")] == ["7"]
    finally:
        daemon.clusters.put_running("toy", before, now)
        daemon.clusters.refresh(now)


@pytest.mark.parametrize(
    ("longest", "more"),
    [(LONGEST_MARK, ",r={}"), (LONGEST_COMMENT - len("metasched:"), " {}")],
    ids=["mark", "comment"],
)
def test_a_job_whose_comment_has_no_room_for_a_move_is_not_moved(longest: int, more: str, daemon: Daemon) -> None:
    now = daemon.clock.now()
    daemon.clusters.refresh(now)
    before = daemon.clusters.view.running["toy"]
    added = len(moved_comment(MARK, "0" * 32, 0.5)) - len("metasched:")
    words = ",q=" + "1" * 300 if "r=" in more else ""
    fits = MARK + words + more.format("1" * (longest - added - len(words) - len(more.format(""))))
    try:
        daemon.clusters.put_running(
            "toy", [replace(JOB, comment=fits), replace(JOB, number="9", comment=fits + "1")], now
        )
        daemon.clusters.refresh(now)
        assert [job.number for job in daemon.running_advisor.movable(daemon.clusters.view, "toy")] == ["7"]
    finally:
        daemon.clusters.put_running("toy", before, now)
        daemon.clusters.refresh(now)


def test_only_own_jobs_are_told_of(daemon: Daemon, client: TestClient) -> None:
    assert asked(client, 404, job="8")["detail"] == "no job 8 runs"
    assert asked(client, 404, job="9")["detail"] == "no job 9 runs"


def test_a_job_that_no_scheduler_runs_is_described(daemon: Daemon, client: TestClient) -> None:
    loaded(daemon, 0.95)
    job = {"application": "cg", "problem_size": 1800, "nodes": "w1", "running_for": 5}
    found = asked(client, **job, data=100, bandwidth=100, checkpoint=0, restart=0)
    assert (found["cluster"], found["placement"]["cluster"]) in (("west", "east"), ("west", "toy/main"))
    assert found["costs"] == {"checkpoint": 0.0, "transfer": 8.0, "restart": 0.0}
    # What has to be sent for longer than it saves stays where it is.
    assert not asked(client, **job, data=1e6, bandwidth=100)["move"]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ({}, "expected a job, or its application, problem_size, nodes and running_for"),
        ({"application": "cg", "problem_size": 9}, "expected a job, or its application"),
        ({"application": "cg", "problem_size": 9, "nodes": "e1"}, "expected a job, or its application"),
        ({"problem_size": 9, "nodes": "e1", "running_for": 1}, "expected a job, or its application"),
        (
            {"application": "cg", "problem_size": 9, "nodes": "x1", "running_for": 1},
            "no known partition contains the nodes x1",
        ),
        ({"application": "md", "problem_size": 9, "nodes": "e1", "running_for": 1}, "no model of md on east yet"),
        (
            {"application": "cg", "problem_size": 9, "nodes": "e[1-2]", "running_for": 1, "processors": 1},
            "processors is 1, expected at least one on each of 2 nodes",
        ),
        ({"job": "7", "done": 1.5}, "done"),
        ({"job": "7", "threads": 2}, "threads 2 is given with a job, whose scheduler tells its settings"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused_in_one_line(
    question: dict[str, Any], why: str, daemon: Daemon, client: TestClient
) -> None:
    daemon.clusters.refresh(daemon.clock.now())
    assert why in asked(client, 422, **question)["detail"]


def test_a_misspelt_parameter_is_said_and_no_job_with_one_is_moved_by_itself(
    daemon: Daemon, client: TestClient
) -> None:
    loaded(daemon, 0.05)
    why = "parameter 'stpes' is unknown, expected none, since the runs learned had none"
    described = {"application": "cg", "problem_size": 9, "nodes": "e1", "running_for": 1}
    plain, stated = asked(client, **described), asked(client, **described, parameters={"stpes": 3})
    assert stated["warnings"] == [why, *plain["warnings"]]
    assert {**stated, "warnings": []} == {**plain, "warnings": []}
    view, now = daemon.clusters.view, daemon.clock.now()
    job = replace(JOB, settings=Settings.of(parameters={"stpes": 3.0}))
    assert daemon.running_advisor.about(JOB, view, now, within="toy").advice.decision.move
    with pytest.raises(InputError, match=r"^parameter 'stpes' is unknown"):
        daemon.running_advisor.about(job, view, now, within="toy")


def test_a_job_that_allows_it_is_moved_and_the_move_is_judged_by_the_loads_that_came(daemon: Daemon) -> None:
    loaded(daemon, 0.05)
    source, now = Moving(), daemon.clock.now()
    assert daemon.moves.look(source, daemon.clusters.view, now) == 1
    [(number, nodes, partition, comment)] = source.moved
    assert (number, nodes, partition) == ("7", ("n2",), "main")
    mark = read_mark(comment)
    assert mark is not None
    assert mark.placement is not None
    assert 0 < mark.done < 1
    advice = daemon.writes.placement(mark.placement) or daemon.store.placements.find(mark.placement)
    assert advice is not None
    answer, question = advice.answer, advice.question
    assert (answer.id, answer.mode, answer.steer, answer.placed) == (mark.placement, "act", "nodes", True)
    assert (answer.scheduler, answer.partition, answer.nodes, answer.node_count) == ("toy", "main", "n2", 1)
    assert (question.job, question.user, question.application, question.problem_size) == ("7", "7001", "cg", 1800.0)
    assert answer.move is not None
    assert (answer.move.cluster, answer.move.nodes, answer.move.platform) == ("toy/main", "n1", "east")
    assert answer.move.left == pytest.approx(1.0 - mark.done, abs=1e-3)
    outcome = Outcome("east", "main", ("n2",), 1, 60.0, 0, job="7", scheduler="toy", start=now + 1.0)
    quick, slow = (replace(advice, outcome=replace(outcome, execution_time=each)) for each in (60.0, 1e6))
    paid, regretted = daemon.moves.paid, daemon.moves.regretted
    daemon.moves.judge([quick, slow])
    assert (daemon.moves.paid, daemon.moves.regretted) == (paid + 1, regretted + 1)
    # A part of a run says nothing of how well whole runs are placed.
    assert settled(quick) is None
    daemon.moves.judge([replace(quick, outcome=None), replace(quick, outcome=replace(outcome, exit_status=1))])
    assert (daemon.moves.paid, daemon.moves.regretted) == (paid + 1, regretted + 1)


def test_of_moves_that_are_judged_together_none_is_counted_before_all_can_be(daemon: Daemon) -> None:
    loaded(daemon, 0.05)
    now = daemon.clock.now()
    assert daemon.moves.look(Moving(), daemon.clusters.view, now) == 1
    outcome = Outcome("east", "main", ("n2",), 1, 60.0, 0, job="7", scheduler="toy", start=now + 1.0)
    ended = [
        replace(daemon.moves.made[0].advice, outcome=replace(outcome, execution_time=each)) for each in (60.0, 1e6)
    ]
    faults = [StoreError("the disk is full")]

    def observed(
        scheduler: str, nodes: tuple[str, ...], start: float, end: float, own: float = 0.0
    ) -> tuple[float, float]:
        if end - start > 1e5 and faults:
            raise faults.pop()
        return daemon._observed(scheduler, nodes, start, end, own)

    moves = Moves(daemon.running_advisor, daemon.writes, observed, daemon.models, daemon.metrics)
    with pytest.raises(StoreError):
        moves.judge(ended)
    assert (moves.paid, moves.regretted, moves.made) == (0, 0, [])
    moves.judge(ended)
    assert (moves.paid, moves.regretted) == (1, 1)


@dataclass(frozen=True)
class InSteps(Known):
    """Computes as long as its steps take."""

    def under(self, settings: Settings) -> InSteps:
        return replace(self, work=self.work * float(dict(settings.parameters).get("steps", 1.0)))


def test_a_move_is_judged_by_what_its_own_parameters_make_of_the_stay(daemon: Daemon) -> None:
    loaded(daemon, 0.05)
    now, view = daemon.clock.now(), daemon.clusters.view
    settings = Settings.of(parameters={"steps": 50.0})
    job = replace(JOB, number="11", comment=f"{MARK},steps=50,threads=1", settings=settings)
    models: Any = SimpleNamespace(
        on=lambda application, usable, user: {each.state.name: InSteps(traffic=0.0) for each in usable},
        predictor=lambda application, platform, user: InSteps(traffic=0.0),
    )
    advisor = RunningAdvisor(daemon.placer, models, daemon._observed, daemon.running_advisor._moving)
    moves = Moves(advisor, daemon.writes, daemon._observed, models, daemon.metrics)
    moved = advisor.about(job, view, now, within="toy")
    assert moves._move(Moving(), moved, view, now)
    advice = moves.made[0].advice
    assert advice.question.settings.parameters == (("steps", 50.0),)
    outcome = Outcome("east", "main", ("n2",), 1, 1.0, 0, job="11", scheduler="toy", start=now)
    moves.judge([replace(advice, outcome=outcome)])
    (made,) = moves.made
    assert made.staying == pytest.approx(moved.advice.decision.stay, rel=0.2)
    assert made.staying > 1800.0 * 100.0 * 25.0


def page(daemon: Daemon, **token: Any) -> str:
    """The text of the dashboard for the holder of a token."""
    html = TestClient(make_app(daemon)).get("/", headers=headers_for(daemon, f"page {time.monotonic()}", **token)).text
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def test_the_dashboard_shows_running_jobs_with_their_advice_to_those_who_may_see_them(daemon: Daemon) -> None:
    loaded(daemon, 0.05)
    busy = page(daemon, role="reader", user="alice")
    assert re.search(r"7 cg N 1800 main: n1 [\d.]+ s ↷ move to \S+ \S+ the move saves", busy)
    assert "no job is moved, since [moving] act and the mode act are not both set" in busy
    loaded(daemon, 0.95)
    assert "· stay" in page(daemon, role="reader", user="alice")
    assert "Running jobs" not in page(daemon, role="reader", user="carol")


def test_the_dashboard_shows_moves_and_which_of_them_paid_also_after_a_restart(daemon: Daemon) -> None:
    loaded(daemon, 0.05)
    source, now = Moving(), daemon.clock.now()
    assert daemon.moves.look(source, daemon.clusters.view, now) == 1
    advice = daemon.moves.made[0].advice
    assert "… not finished, or not reported" in page(daemon, role="admin")
    outcome = Outcome("east", "main", ("n2",), 1, 60.0, 0, job="7", scheduler="toy", start=now + 1.0)
    ended = [replace(advice, outcome=replace(outcome, execution_time=each, exit_status=status))
             for each, status in ((60.0, 0), (1e6, 0), (5.0, 1))]  # fmt: skip
    before = daemon.moves.paid, daemon.moves.regretted
    for each, said in zip(
        ended, ("✓ worthwhile: done 61.0 s after", "≠ not worthwhile: done", "✕ failed, or the time"), strict=True
    ):
        daemon.moves.judge([each])
        assert daemon.moves.made[0].advice.outcome == each.outcome
        assert said in page(daemon, role="admin")
    assert (daemon.moves.paid, daemon.moves.regretted) == (before[0] + 1, before[1] + 1)
    fresh = Moves(daemon.running_advisor, daemon.writes, daemon._observed, daemon.models, daemon.metrics)
    fresh.judge([ended[0], AdvisedPlacement(1.0, advice.question, advice.answer.model_copy(update={"move": None}))])
    assert [(each.advice.uid, each.paid) for each in fresh.made] == [(advice.uid, True)]


def test_a_scheduler_that_does_not_move_a_job_leaves_it_and_records_nothing(daemon: Daemon) -> None:
    loaded(daemon, 0.05)
    source = Moving()
    source.broken = True
    before = len(daemon.store.placements.recent(100))
    assert daemon.moves.look(source, daemon.clusters.view, daemon.clock.now()) == 0
    assert len(daemon.store.placements.recent(100)) in (before, before + 1)
    assert source.moved == []
