"""Applications that are simulated before their first runs: what the daemon answers, and what runs change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from metasched.predictors.porting.platforms import ENOUGH
from metasched.records import InputError, Request, Run
from metasched.service.app import make_app
from metasched.service.configuration import read_configuration
from metasched.service.simulated_applications import simulated_applications
from metasched.service.state.models import Models
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.service.daemons import running

SYSTEM = """
[[network]]
name = "lan"
entry = "node.toml"

[[node]]
name = "n"
count = 16
network = "lan"
device = "node.toml"
slots = { w = 1 }
"""
ENTRY = """
kind = "cluster"
title = "made"
source = "made"

[values]
speed = { value = 1.0, unit = "Gflop/s" }
bandwidth = { value = 1.0, unit = "Gbit/s" }
"""
PROGRAM = "n = 1000\nrounds = 1\n\n\ndef w():\n    for i in range(rounds):\n        compute(n ** 2 * 1e4 / size)\n"
TABLE = """
[[simulated]]
application = "heat"
platform = "c"
system = "system.toml"
program = "heat.app"
size = "n"
"""
CLUSTERS = '[[cluster]]\nname = "c"\nnodes = [{ names = "n[1-4]" }]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("system.toml", SYSTEM), ("node.toml", ENTRY), ("heat.app", PROGRAM), ("clusters.toml", CLUSTERS),
        ("metasched.toml", 'database = "metasched.db"\nclusters = "clusters.toml"\n' + TABLE),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


def ended(n: float, p: int, scale: float = 2.0) -> Run:
    return Run("heat", "c", n, p, 1.0, 1000.0, scale * n**2 * 1e-5 / p)


@pytest.fixture
def models(folder: Path) -> Iterator[Models]:
    with Store.open(folder / "metasched.db") as store:
        known = Models(store)
        known.simulate(simulated_applications(read_configuration(folder / "metasched.toml").simulated))
        yield known


def learn(models: Models, runs: list[Run]) -> None:
    for each in runs:
        models._learn(RecordedRun(each))
    assert models.failures == 0


def seconds(models: Models, n: float, p: int) -> tuple[float, str]:
    predictor = models.predictor("heat", "c")
    assert predictor is not None
    found = predictor.predict(Request(n, p, 1.0, 1000.0))
    return found.execution_time, found.model


def test_the_daemon_answers_before_the_first_run(folder: Path) -> None:
    table = read_configuration(folder / "metasched.toml").simulated[0].model_dump()
    with running(folder, learned=False, clusters=CLUSTERS, simulated=[table]) as daemon:
        told = {"Authorization": f"Bearer {daemon.store.tokens.add('admin', 'admin')}"}
        daemon.access.refresh()
        client = TestClient(make_app(daemon))
        asked = {
            "application": "heat", "platform": "c", "problem_size": 2000, "processors": 4,
            "available_cpu": 1.0, "available_bandwidth": 1000.0,
        }  # fmt: skip
        found = client.post("/v1/predictions", json=asked, headers=told)
        assert found.status_code == 200, found.text
        assert found.json()["execution_time"] == pytest.approx(10.0)
        assert found.json()["warnings"] == ["no run has been learned yet: the time comes from simulation alone"]
        ranked = client.post("/v1/rankings", json={"application": "heat", "problem_size": 2000}, headers=told)
        assert ranked.status_code == 200, ranked.text
        best = ranked.json()["placements"][0]
        assert (best["processors"], best["execution_time"]) == (4, pytest.approx(10.0, rel=0.01))


def test_runs_correct_the_simulation_until_there_are_enough_of_them(models: Models) -> None:
    assert seconds(models, 2000, 4)[0] == pytest.approx(10.0)
    learn(models, [ended(n, p) for n in (1000.0, 2000.0) for p in (1, 2)])
    time, model = seconds(models, 2000, 4)
    assert time == pytest.approx(20.0, rel=0.05)
    assert model.endswith("corrected by 4 runs")
    learn(models, [ended(1000.0 + 50.0 * k, 1 + k % 4) for k in range(ENOUGH - 4)])
    time, model = seconds(models, 2000, 4)
    assert time == pytest.approx(20.0, rel=0.05)
    assert "simulation" not in model


def test_a_daemon_that_starts_again_corrects_by_the_runs_that_were_saved(folder: Path) -> None:
    with Store.open(folder / "metasched.db") as store:
        store.runs.add_all(RecordedRun(ended(n, p)) for n in (1000.0, 2000.0) for p in (1, 2))
        models = Models(store)
        models.simulate(simulated_applications(read_configuration(folder / "metasched.toml").simulated))
        models.start()
        models.stop()
        assert seconds(models, 2000, 4)[1].endswith("corrected by 4 runs")
        again = Models(store)
        again.simulate(simulated_applications(read_configuration(folder / "metasched.toml").simulated))
        again.read()
        assert seconds(again, 2000, 4)[0] == pytest.approx(20.0, rel=0.05)


def test_an_application_that_takes_too_many_instructions_holds_nobody_up(folder: Path) -> None:
    text = PROGRAM.replace("compute(n ** 2", "n = n + 0.5\n        compute(n ** 2").replace(
        "rounds = 1", "rounds = 1e6"
    )
    (folder / "heat.app").write_text(text)
    (found,) = simulated_applications(read_configuration(folder / "metasched.toml").simulated)
    with pytest.raises(InputError):
        found.predict(Request(2000, 4, 1.0, 1000.0))
    assert found.expect_many(2000, [1, 2], 1.0, 1000.0).tolist() == [float("inf")] * 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('size = "n"', 'size = "m"', "simulated heat: m is not a variable of the application, expected n, rounds"),
        ('size = "n"', 'size = "n"\nlabel = "v"', "label v has no code, expected one of w"),
        ('size = "n"', 'size = "n"\nvariables = { r = 2 }', "r is not a variable, expected one of n, rounds"),
        ('size = "n"', 'size = "n"\nprocesses = { v = 2 }', "label v has no code, expected one of w"),
        ('"heat.app"', '"none.app"', "none.app: no such file"),
        ('platform = "c"', 'platform = "c"\nspeed = 1', "speed"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_with_what_is_wrong(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "metasched.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        simulated_applications(read_configuration(path).simulated)
    assert message in str(caught.value)


def test_an_application_is_simulated_once_for_each_platform(folder: Path) -> None:
    path = folder / "metasched.toml"
    path.write_text(path.read_text() + TABLE)
    with pytest.raises(InputError, match="heat is simulated on c twice, expected one table for both"):
        read_configuration(path)
