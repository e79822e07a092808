"""``metasched predict`` with the loads of each process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal

from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.store.files.models import read_model, write_model
from tests.predictors.phases.two_phases import campaign

CPUS, LINKS = "0.5,1,1,0.8", "80,60,90,70"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("phased") / "model.json"
    write_model(path, PhasedPredictor("two", "c8").fit(campaign(16, 1000, 3000)))
    return path


def read(model: Path) -> PhasedPredictor:
    known = read_model(model)
    assert isinstance(known, PhasedPredictor)
    return known


def ask(model: Path, *words: str) -> tuple[str, ...]:
    return ("predict", str(model), "--problem-size", "2500", "--processors", "4", *words)


def test_a_phased_model_predicts_from_the_loads_of_each_process(
    capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    status, out, _ = call(capsys, *ask(model, "--cpu", CPUS, "--bandwidth", LINKS, "--level", "0.8", "--json"))
    by_hand = read(model).predict_processes(2500, [0.5, 1.0, 1.0, 0.8], [80.0, 60.0, 90.0, 70.0], 0.8)
    assert (status, json.loads(out)) == (0, by_hand.as_dict())
    assert "slowest process of" in by_hand.model


def test_one_value_is_that_of_all_processes_and_usual_ones_are_said(
    capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    known = read(model)
    usual = float(np.median([run.min_avg_avail_bw for run in campaign(16, 1000, 3000)]))
    for words, links, said in ((("--bandwidth", "80"), 80.0, False), ((), usual, True)):
        status, out, _ = call(capsys, *ask(model, "--cpu", CPUS, *words, "--json"))
        found = json.loads(out)
        by_hand = known.predict_processes(2500, [0.5, 1.0, 1.0, 0.8], np.full(4, links))
        assert (status, found["execution_time"]) == (0, pytest.approx(by_hand.execution_time))
        assert ("loads" in found) == said
    status, out, _ = call(capsys, *ask(model, "--cpu", CPUS))
    assert f"with {usual:.4g} Mbit/s, the usual value of the runs" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--cpu", "0.5,1"), "--cpu lists 2 values, expected one for each of the 4 processes"),
        (("--bandwidth", "80,80,80"), "--bandwidth lists 3 values, expected one for each of the 4 processes"),
        (("--cpu", "0.5,1_0,1,1"), "--cpu is '0.5,1_0,1,1', expected a number, or several separated by commas"),
        (("--cpu", "0.5,fast,1,1"), "--cpu is '0.5,fast,1,1', expected a number, or several separated by commas"),
        (("--cpu", ""), "--cpu is '', expected a number, or several separated by commas"),
        (("--cpu", "0.5,1,1,-1"), "available_cpu is -1"),
        (("--cpu", "0.5,1,1,inf"), "available_cpu is inf"),
        (("--bandwidth", "80,80,inf,80"), "available_bandwidth is inf"),
    ],
)
def test_loads_that_no_processes_have_are_refused(
    words: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    assert line in refusal(call(capsys, *ask(model, *words)))


def test_a_model_of_the_smallest_loads_takes_no_list(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_model(tmp_path / "m.json", RobustPredictor("two", "c8").fit(campaign(8, 1000, 3000)))
    status, _, err = call(capsys, *ask(tmp_path / "m.json", "--cpu", CPUS))
    assert status == 2
    assert "--cpu and --bandwidth list several values, but robust models know only the smallest" in " ".join(
        err.split()
    )
