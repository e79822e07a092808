"""Simulations and signatures that answer before the first runs: what the daemon answers, and what runs change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from waiting import until

from metasched.predictors.porting.platforms import ENOUGH
from metasched.records import InputError, Request, Run
from metasched.service.analytic_models import analytic_models
from metasched.service.app import make_app
from metasched.service.configuration import read_configuration
from metasched.service.dashboard.applications import in_order, shown
from metasched.service.state.models import Models
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import trace_of
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.files.signatures import APPLICATION, VERSION, write_document
from tests.service.daemons import headers_for, running

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
        known.assume(analytic_models(read_configuration(folder / "metasched.toml")))
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
        told = headers_for(daemon)
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
        job = {name: asked[name] for name in asked if name != "platform"}
        for where in ({}, {"platform": "c"}):
            limits = client.post("/v1/walltimes", json=job | where, headers=told)
            assert limits.status_code == 200, limits.text
            [cluster] = limits.json()["clusters"]
            assert (cluster["cluster"], cluster["median"]) == ("c", pytest.approx(10.0, rel=0.01))


def test_runs_correct_the_simulation(models: Models) -> None:
    assert seconds(models, 2000, 4)[0] == pytest.approx(10.0)
    learn(models, [ended(n, p) for n in (1000.0, 2000.0) for p in (1, 2)])
    time, model = seconds(models, 2000, 4)
    assert time == pytest.approx(20.0, rel=0.05)
    assert model.endswith("corrected by 4 runs")


def unlike(k: int) -> Run:
    """A run that takes as long on any number of processors, of which no simulation knows."""
    n = 1000.0 + 100.0 * (7 * k % 10)
    return Run("heat", "c", n, 1 + k % 4, 1.0, 1000.0, n * 1e-2)


@pytest.mark.parametrize("again", [False, True], ids=["runs as they come", "a daemon that starts again"])
@pytest.mark.parametrize("right", [True, False], ids=["a right simulation", "a wrong one"])
def test_from_enough_runs_on_the_better_of_simulation_and_model_answers(folder: Path, right: bool, again: bool) -> None:
    runs = [ended(1000.0 + 100.0 * (7 * k % 10), 1 + k % 4) if right else unlike(k) for k in range(2 * ENOUGH)]
    with Store.open(folder / "metasched.db") as store:
        models = Models(store)
        models.assume(analytic_models(read_configuration(folder / "metasched.toml")))
        if again:
            store.runs.add_all(RecordedRun(each) for each in runs)
            models.start()
            models.stop()
        else:
            learn(models, runs)
        time, model = seconds(models, 1500, 4)
    assert ("simulation" in model) == right
    assert time == pytest.approx(
        runs[0].execution_time * (1500 / runs[0].problem_size) ** 2 / 4 if right else 15.0, rel=0.1
    )


def test_a_daemon_that_starts_again_corrects_by_the_runs_that_were_saved(folder: Path) -> None:
    with Store.open(folder / "metasched.db") as store:
        store.runs.add_all(RecordedRun(ended(n, p)) for n in (1000.0, 2000.0) for p in (1, 2))
        models = Models(store)
        models.assume(analytic_models(read_configuration(folder / "metasched.toml")))
        models.start()
        models.stop()
        assert seconds(models, 2000, 4)[1].endswith("corrected by 4 runs")
        again = Models(store)
        again.assume(analytic_models(read_configuration(folder / "metasched.toml")))
        again.read()
        assert seconds(again, 2000, 4)[0] == pytest.approx(20.0, rel=0.05)


def test_an_application_that_takes_too_many_instructions_holds_nobody_up(folder: Path) -> None:
    text = PROGRAM.replace("compute(n ** 2", "n = n + 0.5\n        compute(n ** 2").replace(
        "rounds = 1", "rounds = 1e6"
    )
    (folder / "heat.app").write_text(text)
    (found,) = analytic_models(read_configuration(folder / "metasched.toml"))
    with pytest.raises(InputError):
        found.predict(Request(2000, 4, 1.0, 1000.0))
    assert found.expect_many(2000, [1, 2], 1.0, 1000.0).tolist() == [float("inf")] * 2


def refusal(folder: Path, old: str, new: str) -> str:
    """What is wrong with the models of a configuration that says something else."""
    path = folder / "metasched.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError) as caught:
        analytic_models(read_configuration(path))
    return str(caught.value)


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
    assert message in refusal(folder, old, new)


def test_an_application_is_simulated_once_for_each_platform(folder: Path) -> None:
    path = folder / "metasched.toml"
    path.write_text(path.read_text() + TABLE)
    with pytest.raises(InputError, match="heat on c has several tables simulated or signature, expected one of either"):
        read_configuration(path)


SIGNED = """
[[signature]]
application = "box"
platform = "c"
signature = "box.json"
problem_size = 384
"""


@pytest.fixture
def signed(folder: Path) -> Path:
    """A folder whose configuration names a signature: a ring of exchanges beside work that all processes share."""

    def ring(n: int) -> dict[int, list[tuple[str, tuple[float, ...]]]]:
        step: list[tuple[str, tuple[float, ...]]] = [("compute", (1.6e9 / n,)), ("allreduce", (1000, 0, 0))]
        return {rank: [("init", ()), *(step * 10), ("finalize", ())] for rank in range(n)}

    rules = fit([trace_of(ring(n)) for n in (4, 8, 16)]).application
    document = {"kind": APPLICATION, "version": VERSION, "application": rules.as_dict(), "measured": {}}
    write_document(folder / "box.json", document)
    (folder / "metasched.toml").write_text('database = "metasched.db"\nclusters = "clusters.toml"\n' + SIGNED)
    return folder


def test_the_daemon_answers_by_a_signature_and_shows_its_phases_before_the_first_run(signed: Path) -> None:
    table = read_configuration(signed / "metasched.toml").signature[0].model_dump()
    with running(signed, learned=False, clusters=CLUSTERS, signature=[table]) as daemon:
        told = headers_for(daemon)
        client = TestClient(make_app(daemon))

        def predicted(processors: int) -> dict[str, Any]:
            asked = {
                "application": "box", "platform": "c", "problem_size": 384, "processors": processors,
                "available_cpu": 1.0, "available_bandwidth": 1000.0,
            }  # fmt: skip
            found = client.post("/v1/predictions", json=asked, headers=told)
            assert found.status_code == 200, found.text
            return dict(found.json())

        before = predicted(64)
        assert before["execution_time"] == pytest.approx(0.25, rel=0.1)
        assert "no run has been learned yet: the time comes from the signature alone" in before["warnings"]
        ranked = client.post("/v1/rankings", json={"application": "box", "problem_size": 384}, headers=told)
        assert ranked.json()["placements"][0]["processors"] == 4
        (card,) = [shown("box", "c", daemon.models)]
        assert (card.summary.method, card.summary.learned) == ("signature", 0)
        assert card.phases is not None
        assert card.phases.processors == 16
        assert ("box", "c") in in_order(daemon.models, "")
        for p in (1, 2, 4):
            daemon.models.learn(RecordedRun(Run("box", "c", 384, p, 1.0, 1000.0, 2 * 16.0 / p)))
        until(lambda: len(daemon.models.recent.of("box", "c")) >= 3)
        after = predicted(64)
        assert after["execution_time"] == pytest.approx(2 * before["execution_time"], rel=0.1)
        assert "no run has been learned yet: the time comes from the signature alone" not in after["warnings"]
        page = client.get("/", headers=told)
        assert page.status_code == 200
        assert "Phases of the signature on 4 processors" in page.text


@pytest.mark.parametrize("right", [True, False], ids=["a right signature", "a wrong one"])
def test_from_enough_runs_on_the_better_of_signature_and_model_answers(signed: Path, right: bool) -> None:
    with Store.open(signed / "metasched.db") as store:
        models = Models(store)
        models.assume(analytic_models(read_configuration(signed / "metasched.toml")))
        signature = models.predictor("box", "c")
        assert signature is not None
        processors = [2 + 37 * k % 211 for k in range(2 * ENOUGH)]
        times = 2 * signature.expect_many(384, processors, 1.0, 1000.0) if right else np.full(len(processors), 20.0)
        runs = zip(processors, times.tolist(), strict=True)
        learn(models, [Run("box", "c", 384, p, 1.0, 1000.0, seconds) for p, seconds in runs])
        predictor = models.predictor("box", "c")
        assert predictor is not None
        found = predictor.predict(Request(384, processors[0], 1.0, 1000.0))
    assert ("signature" in found.model) == right
    assert found.execution_time == pytest.approx(times[0], rel=0.05)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"box.json"', '"none.json"', "none.json: no such file"),
        ("problem_size = 384", "problem_size = 0", "problem_size"),
        ("problem_size = 384", 'problem_size = 384\nhardware = "nothing"', "there is no hardware 'nothing'"),
        ("problem_size = 384", 'problem_size = 384\nhardware = "none.toml"', "none.toml: no such file"),
        ('"box.json"', '"clusters.toml"', "clusters.toml: is not JSON"),
    ],
)
def test_a_wrong_signature_table_is_refused_with_what_is_wrong(signed: Path, old: str, new: str, message: str) -> None:
    assert message in refusal(signed, old, new)


def test_an_application_is_either_simulated_or_signed(signed: Path) -> None:
    path = signed / "metasched.toml"
    path.write_text(path.read_text() + TABLE.replace("heat", "box", 1))
    with pytest.raises(InputError, match="box on c has several tables simulated or signature"):
        read_configuration(path)
