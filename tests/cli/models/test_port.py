from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import status_of

from metasched.predictors.porting.predictor import PortedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.store.files.models import read_model, write_model
from metasched.store.files.runs import write_runs
from tests.predictors.porting.platforms import FAST, SLOW, campaign, idle

NEAR = replace(SLOW, name="near8", second=1e-4)


@pytest.fixture(scope="module")
def model_text(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("reference") / "m.json"
    write_model(path, RobustPredictor("made", SLOW.name).fit(campaign(SLOW, 60)))
    return path.read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch, model_text):
    (tmp_path / "m.json").write_text(model_text)
    for platform in (SLOW, FAST, NEAR):
        write_runs(tmp_path / f"{platform.name}.csv", idle(platform))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def port(*more: str) -> int:
    return status_of("port", "m.json", "--reference", "slow8.csv", *more)


def test_port_writes_a_model_that_predict_and_evaluate_use(folder, capsys) -> None:
    assert port("--target", "fast16.csv", "-o", "ported.json", "--processors", "16", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    (target,) = document["targets"]
    assert (document["reference"], target["cluster"], target["model"]) == ("slow8", "fast16", "ported.json")
    assert target["rcpu"]["low"] <= target["rcpu"]["value"] <= target["rcpu"]["high"]
    assert [row["processors"] for row in target["trust"]] == [1, 2, 4, 8, 16]
    assert all(row["interval"]["low"] < row["execution_time"] < row["interval"]["high"] for row in target["trust"])
    assert isinstance(read_model("ported.json"), PortedPredictor)

    assert (
        status_of(
            "predict",
            "ported.json",
            *["--problem-size", "2000", "--processors", "8", "--cpu", "0.9", "--bandwidth", "700"],
        )
        == 0
    )
    (folder / "runs").mkdir()
    write_runs(folder / "runs" / "runs.csv", campaign(FAST, 20, seed=3))
    capsys.readouterr()
    assert status_of("evaluate", "runs", "--start", "ported.json", "--json") == 0
    judged = json.loads(capsys.readouterr().out)
    assert (judged["method"], judged["predictions"]) == ("ported", 20)
    assert judged["ppe_mean"] < 15.0


def test_nodes_of_clusters_are_given_by_name(folder, capsys) -> None:
    assert port("--target", "fast16.csv", "-o", "p.json", "--nodes", "slow8=8", "--nodes", "fast16=8") == 0
    ported = read_model("p.json")
    assert isinstance(ported, PortedPredictor)
    sharing = ported.formula.sharing
    assert (sharing.reference, sharing.target, sharing.most_processors) == (8, 8, 8)


@pytest.mark.parametrize("given", ["fast16", "fast16=", "=8", "fast16=0", "fast16=-3", "fast16=8.5", "elsewhere=4"])
def test_nodes_that_make_no_sense_are_refused(folder, capsys, given: str) -> None:
    assert port("--target", "fast16.csv", "-o", "p.json", "--nodes", given) == 2
    assert "expected" in capsys.readouterr().err
    assert not (folder / "p.json").exists()


def test_port_to_several_targets_writes_a_model_for_each(folder, capsys) -> None:
    assert port("--target", "fast16.csv", "--target", "near8.csv", "-o", "to-{cluster}.json") == 0
    assert {path.name for path in folder.glob("to-*")} == {"to-fast16.json", "to-near8.json"}
    assert "expected PPE" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--target", "fast16.csv", "--target", "near8.csv", "-o", "p.json"], "expected {cluster} in the name"),
        (["--target", "absent.csv", "-o", "p.json"], "absent.csv"),
        (["--target", "fast16.csv", "-o", "p.json", "--level", "1.5"], "--level is 1.5"),
    ],
)
def test_port_refuses_what_it_cannot_do_and_writes_nothing(folder, capsys, options, says) -> None:
    assert port(*options) == 2
    assert says in capsys.readouterr().err
    assert not (folder / "p.json").exists()


def test_a_damaged_model_is_named_once(folder, capsys) -> None:
    (folder / "m.json").write_text((folder / "m.json").read_text()[:-9])
    assert port("--target", "fast16.csv", "-o", "p.json") == 2
    assert capsys.readouterr().err.count("m.json: ") == 1


def test_port_refuses_a_cluster_whose_name_would_lead_elsewhere(folder, capsys) -> None:
    write_runs(folder / "evil.csv", [replace(run, cluster="../evil") for run in idle(FAST)])
    assert port("--target", "evil.csv", "-o", "{cluster}.json") == 2
    assert "cannot be part of a file name" in capsys.readouterr().err
    assert not (folder.parent / "evil.json").exists()


def test_port_refuses_to_port_what_was_ported(folder, capsys) -> None:
    assert port("--target", "fast16.csv", "-o", "ported.json") == 0
    assert (
        status_of("port", "ported.json", "--reference", "slow8.csv", "--target", "fast16.csv", "-o", "again.json") == 2
    )
    assert "is itself ported" in capsys.readouterr().err


def test_evaluate_refuses_a_model_of_another_cluster(folder, capsys) -> None:
    (folder / "runs").mkdir()
    write_runs(folder / "runs" / "runs.csv", campaign(FAST, 5))
    assert status_of("evaluate", "runs", "--start", "m.json") == 2
    assert "expected made on fast16" in capsys.readouterr().err


def test_more_processors_than_can_be_computed_with_are_refused(folder, capsys) -> None:
    assert port("--target", "fast16.csv", "-o", "ported.json", "--processors", str(10**30)) == 2
    assert "--processors" in capsys.readouterr().err
    assert not (folder / "ported.json").exists()
