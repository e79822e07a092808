"""Sites lend each other runs: one that knows nothing of an application predicts by theirs, and says so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.porting.platforms import LENDS
from metasched.predictors.robust.known_runs import BORROWED
from metasched.records import Run
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.sites.grid import Sites
from metasched.sites.lending import NEWEST, LentRun, lent_document, lent_to, runs_in
from metasched.sites.question import SitesQuestion
from metasched.sites.settings import SiteTable
from tests.service.daemons import headers_for, running, seconds
from tests.sites.answers import answer, placement
from tests.sites.test_grid import Daemons, grid

QUESTION = SitesQuestion("cg", 900.0, {"processors": [4]}, data=0.0)
ROW = {
    "cluster": "c8", "problem_size": 900.0, "processors": 4, "min_avg_avail_cpu": 0.8, "min_avg_avail_bw": None,
    "execution_time": 12.5, "learnable": True, "user": "1003", "nodes": ["n1"], "id": "0a",
}  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from([-1, 0, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ROW]), inner, max_size=4),
    max_leaves=6,
)


def runs_of(cluster: str, count: int) -> tuple[Run, ...]:
    return tuple(Run("cg", cluster, 100.0 + n, 1 + n % 4, 0.9, math.nan, 1.0 + n) for n in range(count))


@given(JSON | st.builds(lambda row: {"runs": [ROW | row, ROW]}, st.dictionaries(st.sampled_from([*ROW]), JSON)))
def test_whatever_a_site_says_of_its_runs_what_is_sound_is_taken(said: Any) -> None:
    found = runs_in(said, "east", "cg")
    assert all(run.cluster.startswith("east/") and run.application == "cg" for run in found)
    if isinstance(said, dict) and isinstance(said.get("runs"), list) and ROW in said["runs"]:
        assert found[-1].execution_time == 12.5


def test_no_user_and_no_node_is_passed_on_and_not_too_many_runs() -> None:
    found = runs_in({"runs": 3 * NEWEST * [ROW] + [ROW | {"learnable": False}]}, "east", "cg")
    assert len(found) == NEWEST - 1
    assert (found[0].user, found[0].nodes) == ("", ())
    assert "1003" not in str(lent_document(found[0]))


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_site_is_lent_the_runs_of_others_as_many_as_a_model_counts_with(east: int, west: int) -> None:
    found = lent_to(
        "here", {"here": runs_of("here/c", 50), "east": runs_of("east/c", east), "west": runs_of("w/c", west)}
    )
    assert len(found) == min(sum(count for count in (east, west) if count >= LENDS), BORROWED)
    assert {run.cluster for run in found} <= {"east/c", "w/c"}


def test_a_run_is_lent_as_it_is() -> None:
    run = Run("cg", "east/c8", 900.0, 4, 0.8, math.nan, 12.5, extra={"threads": "2", "parameter:steps": "100"})
    again = LentRun.model_validate(lent_document(run)).run("cg")
    assert lent_document(again) == lent_document(run)
    assert again.settings == run.settings


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Daemon]]:
    with (
        running(tmp_path_factory.mktemp("near")) as near,
        running(tmp_path_factory.mktemp("far"), learned=False) as far,
    ):
        yield {"near": near, "far": far}


def asking(daemons: dict[str, Daemon], asked: list[tuple[str, str, Any]]) -> Any:
    clients = {}
    for name, daemon in daemons.items():
        headers = headers_for(daemon, f"grid {len(daemon.store.tokens.all())}", "scheduler")
        clients[name] = TestClient(make_app(daemon), headers=headers)

    def ask(table: SiteTable, method: str, path: str, document: Any = None, timeout: float | None = None) -> Any:
        asked.append((table.name, path, document))
        found = clients[table.name].request(method, path, json=document)
        if found.status_code != 200:
            raise RuntimeError(found.json()["detail"])
        return found.json()

    return ask


def test_a_site_that_knows_nothing_predicts_by_the_runs_of_another_and_learns_nothing_by_that(
    daemons: dict[str, Daemon],
) -> None:
    asked: list[tuple[str, str, Any]] = []
    sites = grid(asking(daemons, asked), ["near", "far"])
    found = {each.offer.site: each for each in sites.rank(QUESTION).places}
    assert found.keys() == {"near", "far"}
    near, far = found["near"].offer, found["far"].offer
    assert (near.lenders, far.lenders) == ((), ("near",))
    assert "predicted by runs at near, since it has few of its own" in found["far"].reason
    assert "runs at" not in found["near"].reason
    truth = seconds(900.0, 4, 1.0)
    assert far.low < truth < far.high
    # As wide as a speed that nobody knows.
    assert far.high / far.low > 4.0 > near.high / near.low
    assert far.execution_time == pytest.approx(near.execution_time, rel=0.5)
    assert daemons["far"].models.learned() == {}
    assert daemons["far"].store.runs.all() == ()
    again = sites.rank(QUESTION).places
    assert {each.offer.execution_time for each in again} == {near.execution_time, far.execution_time}
    lent = [document["lent"] for name, _, document in asked if document and "lent" in document]
    assert [len(each) for each in lent] == [80, 80]
    assert sum(path.startswith("/v1/runs") for _, path, _ in asked) == 1


def test_a_site_alone_says_that_it_knows_nothing(daemons: dict[str, Daemon]) -> None:
    asked: list[tuple[str, str, Any]] = []
    sites = grid(asking({"far": daemons["far"]}, asked), ["far"])
    assert sites.rank(QUESTION).left_out == {"far": "no model of cg yet, nor of any other application"}
    assert len(asked) == 1


def test_runs_are_lent_by_schedulers_only_and_not_without_end(daemons: dict[str, Daemon]) -> None:
    far, statuses = daemons["far"], []
    asked = {"application": "cg", "problem_size": 900, "later": True}
    for role, count in (("reader", 4), ("scheduler", BORROWED + 1), ("scheduler", 4)):
        lent = [lent_document(run) for run in runs_of("east/c", count)]
        headers = headers_for(far, f"{role} {count}", role)
        statuses.append(TestClient(make_app(far)).post("/v1/rankings", json=asked | {"lent": lent}, headers=headers))
    assert [each.status_code for each in statuses] == [403, 422, 200]


@pytest.mark.parametrize("said", [RuntimeError("silent"), {"runs": 7}, {"runs": 2 * [ROW]}, None, "x"], ids=str)
def test_where_nothing_is_lent_a_site_is_left_out_with_its_own_reason(said: Any) -> None:
    def east(path: str, document: Any) -> Any:
        return said if path.startswith("/v1/runs") else answer(placement(), runs=50)

    poor = {"format": 1, "placements": [], "why": "no model of cg yet", "runs": 0}
    found = grid(Daemons(east=east, west=poor), ["east", "west"]).rank(QUESTION)
    assert found.left_out == {"west": "no model of cg yet"}
    assert [each.offer.site for each in found.places] == ["east"]


def test_a_site_that_fails_when_asked_again_keeps_what_it_said_by_itself() -> None:
    def west(path: str, document: Any) -> Any:
        return RuntimeError("too slow") if "lent" in document else answer(placement(time=77.0), runs=5)

    def east(path: str, document: Any) -> Any:
        return {"runs": 9 * [ROW]} if path.startswith("/v1/runs") else answer(placement(), runs=50)

    found = grid(Daemons(east=east, west=west), ["east", "west"]).rank(QUESTION).places
    assert [(each.offer.execution_time, each.offer.lenders) for each in found] == [(77.0, ()), (100.0, ())]


def test_what_lent_runs_missed_does_not_count_against_the_site() -> None:
    def west(path: str, document: Any) -> Any:
        return answer(placement(time=10.0), runs=0)

    def east(path: str, document: Any) -> Any:
        return {"runs": 9 * [ROW]} if path.startswith("/v1/runs") else answer(placement(time=99.0), runs=50)

    sites = Sites([SiteTable(name=name, url="/x") for name in ("east", "west")], "0.1.0",
                  ask=Daemons(east=east, west=west))  # fmt: skip
    uid = sites.sent.send(sites.rank(QUESTION).places).uid
    sites.sent.submitted(uid, "west", "7")
    sites.sent.ended(sites.sent.find(uid), 5000.0)
    assert sites.sent.newest(1)[0].state == "ended"
    assert sites.sent.known(["west"])["west"].trust.outcomes == 0
