"""Jobs whose names tell their problem size: predicted by their history until a model knows enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from metasched.history.argument_numbers import merged
from metasched.history.problem_sizes import SizeRule
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.service.app import make_app
from metasched.service.configuration import Configuration
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Learned
from metasched.service.state.sized_jobs import SizedJobs
from tests.service.daemons import headers_for, running

RULES = [SizeRule("solve_#", "1", "solve"), SizeRule("run.sh", "-n", "solve"), SizeRule("run.sh", "script:N=", "solve")]
HISTORY = {"run_time": 60.0, "interval": {}, "reason": "the last job took 60 s", "requested_time": 3600.0}


@dataclass
class Known:
    """Models that know so many runs of one application."""

    runs: int
    predictor_of: RobustPredictor

    def learned_by(self, key: tuple[str, str]) -> Learned:
        assert key == ("solve", "xeon")
        return Learned(self.runs)

    def predictor(self, application: str, platform: str, user: str = "") -> RobustPredictor:
        assert (application, platform) == ("solve", "xeon")
        return self.predictor_of


def known(runs: int) -> SizedJobs:
    sizes = range(200, 2200, 200)
    taught = RobustPredictor("solve", "xeon").fit(
        [Run("solve", "xeon", size, 2, 1.0, 1000.0, 5.0 + 1e-4 * size**2) for size in sizes]
    )
    clusters = LiveClusters()
    clusters.put("c", [Partition(ClusterState.make("c/p", ["n1"]), "xeon", "c", "p")], 0.0)
    clusters.refresh(now=0.0)
    return SizedJobs(RULES, Known(runs, taught), clusters)  # type: ignore[arg-type]


def asked(sized: SizedJobs, name: str, numbers: str = "") -> dict[str, Any]:
    return sized.predict(HISTORY, name, 2, numbers=numbers, cluster=None, partition="p", user="ada")


def test_a_model_that_knows_enough_predicts_within_the_limit() -> None:
    found = asked(known(10), "solve_1500")
    assert found["run_time"] == pytest.approx(230.0, rel=0.1)
    assert found["interval"]["low"] <= found["run_time"] <= found["interval"]["high"] <= 3600.0
    assert found["reason"] == "the model of solve for problem size 1500, by 10 runs"
    assert asked(known(10), "solve_900000")["run_time"] == 3600.0


@pytest.mark.parametrize("numbers", ["-n=1500", "script:N==1500 $1=9"])
def test_the_size_may_stand_in_arguments_or_in_the_script(numbers: str) -> None:
    sized = known(10)
    assert asked(sized, "run.sh", numbers)["reason"] == "the model of solve for problem size 1500, by 10 runs"
    assert asked(sized, "run.sh", "$1=1500") == asked(sized, "other.sh", numbers) == HISTORY


def test_before_that_and_for_other_names_the_history_does() -> None:
    early = asked(known(3), "solve_1500")
    assert (early["run_time"], early["reason"]) == (60.0, f"{HISTORY['reason']} (the model of solve knows 3 runs)")
    assert asked(known(10), "other_1500") == HISTORY


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"name": "solve_1500"}, ("solve", 1500.0)),
        ({"name": "run.sh", "arguments": "$1=9 -n=400"}, ("sized", 400.0)),
        ({"name": "run.sh", "script": "script:N==700"}, ("sized", 700.0)),
        ({"name": "run.sh", "arguments": "-n=400", "script": "script:N==700"}, ("sized", 400.0)),
        ({"name": "run.sh", "arguments": "$1=9"}, (None, None)),
        ({"name": "other.sh", "arguments": "-n=400"}, (None, None)),
    ],
)
def test_hooks_are_told_what_a_job_is_as_it_is_learned(
    asked: dict[str, str], answer: tuple[Any, Any], tmp_path: Path
) -> None:
    tables = [{"name": "solve_#", "application": "solve"}, {"name": "run.sh", "argument": "-n", "application": "sized"},
              {"name": "run.sh", "script": "N=", "application": "sized"}]  # fmt: skip
    with running(tmp_path, problem_size=tables) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon, "hook", "scheduler"))
        assert client.get("/v1/problem-sizes").json() == {"names": ["run.sh", "solve_#"]}
        found = client.post("/v1/problem-sizes", json=asked).json()
        assert (found["application"], found["problem_size"]) == answer
        learned = daemon.sized_jobs.mark(asked["name"], merged(asked.get("script", ""), asked.get("arguments", "")))
        assert answer == (None if learned is None else learned.application, learned and learned.problem_size)
        assert client.post("/v1/problem-sizes", json=asked | {"arguments": "rm x\n"}).status_code == 422


@pytest.mark.parametrize(
    ("order", "asked", "size"),
    [
        (("argument", "script"), {"arguments": "-n=400", "script": None}, 400.0),
        (("argument", "script"), {"arguments": "$1=7", "script": None}, None),
        (("script", "argument"), {"arguments": "-n=400", "script": None}, None),
        (("script", "argument"), {"arguments": "-n=400", "script": ""}, 400.0),
    ],
)
def test_no_size_is_taken_that_a_script_which_the_hook_cannot_see_might_overrule(
    order: tuple[str, str], asked: dict[str, Any], size: float | None, tmp_path: Path
) -> None:
    places = {"argument": "-n", "script": "N="}
    tables = [{"name": "run.sh", where: places[where], "application": "sized"} for where in order]
    tables.insert(0, {"name": "other.sh", "script": "N=", "application": "sized"})
    with running(tmp_path, problem_size=tables) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon, "hook", "scheduler"))
        found = client.post("/v1/problem-sizes", json={"name": "run.sh"} | asked).json()
        assert found["problem_size"] == size


def test_a_number_that_is_not_in_the_name_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a name with a # for each number"):
        configured(number=2)


@pytest.mark.parametrize(
    ("where", "place"),
    [({}, "1"), ({"number": 1}, "1"), ({"argument": "-n"}, "-n"), ({"script": "N="}, "script:N=")],
    ids=str,
)
def test_a_size_is_confirmed_where_it_stands(where: dict[str, Any], place: str) -> None:
    assert configured(**where).problem_size[0].place == place


@pytest.mark.parametrize("where", [{"argument": "-n 4"}, {"argument": ""}, {"script": "script:-n"}, {"script": "$"}])
def test_a_place_that_cannot_be_is_refused(where: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected an option, a variable or a position, such as -n, size= or \$1"):
        configured(**where)


def test_two_places_in_one_table_are_refused() -> None:
    with pytest.raises(ValueError, match="several of number, argument and script, expected one of them"):
        configured(number=1, argument="-n")


def configured(**where: Any) -> Configuration:
    return Configuration.model_validate({"problem_size": [{"name": "solve_#", "application": "solve", **where}]})
