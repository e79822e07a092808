from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metasched.cli import main
from metasched.store.campaigns import write_runs
from tests.predictors.made import runs

Answer = tuple[int, str, str]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def metasched(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    def call(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        status = left.value.code
        out, err = capsys.readouterr()
        return int(status or 0), out, err

    return call


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    folder = tmp_path / "campaign"
    folder.mkdir()
    training = [(run, "train") for run in runs(40)]
    rest = [(run, "predict") for run in runs(12, seed=1)]
    rows = ["phase,application,cluster,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,execution_time"]
    rows += [
        f"{phase},{run.application},{run.cluster},{run.problem_size},{run.processors},"
        f"{run.min_avg_avail_cpu},{run.min_avg_avail_bw},{run.execution_time}"
        for run, phase in training + rest
    ]
    (folder / "runs.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("method", ["published", "robust"])
def test_fit_writes_a_model_that_predict_answers_from(
    metasched: Callable[..., Answer], campaign: Path, tmp_path: Path, method: str
) -> None:
    model = tmp_path / "model.json"
    status, out, err = metasched("fit", campaign / "runs.csv", "-o", model, "--method", method, "--top", 3, "--json")
    fitted = json.loads(out)
    assert (status, err) == (0, "")
    assert (fitted["method"], fitted["runs"], len(fitted["sorted_list"])) == (method, 52, 3)
    errors = [entry["standard_error"] for entry in fitted["sorted_list"]]
    assert errors == sorted(errors)
    ask = ("predict", model, "--problem-size", 1000, "--processors", 4, "--cpu", 0.5, "--bandwidth", 50)
    status, out, _ = metasched(*ask, "--level", 0.8, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["interval"]["low"] < found["execution_time"] < found["interval"]["high"]
    assert found["interval"]["level"] == 0.8
    status, out, _ = metasched(*ask)
    assert status == 0
    assert "90% interval" in out


def test_evaluate_answers_by_the_contract(metasched: Callable[..., Answer], campaign: Path) -> None:
    status, out, err = metasched("evaluate", campaign, "--method", "published", "--peers", "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert {
        "application", "cluster", "method", "models", "loads", "predictions", "ppe_mean", "ppe_std", "ppe_median",
        "ppe_under_30", "interval_coverage", "series", "peers",
    } <= set(found)  # fmt: skip
    assert found["predictions"] == len(found["series"]) == 12
    assert set(found["peers"]) == {"ridge", "gaussian_process"}
    assert 0 < found["ppe_mean"] < 30
    status, out, _ = metasched("evaluate", campaign, "--method", "published", "--models", "single")
    assert status == 0
    assert "mean PPE" in out


def test_plots_are_written_as_png(metasched: Callable[..., Answer], campaign: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    metasched("fit", campaign / "runs.csv", "-o", model, "--method", "published")
    where = ("--problem-size", 1000, "--cpu", 0.5, "--bandwidth", 50)
    for arguments in (
        ("predicted", campaign, "--method", "published"),
        ("error", campaign),
        ("scaling", model, *where, "--processors", 16),
    ):
        picture = tmp_path / f"{arguments[0]}.png"
        status, out, _ = metasched("plot", *arguments, "-o", picture, "--json")
        assert (status, json.loads(out)) == (0, {"picture": str(picture)})
        assert picture.read_bytes().startswith(PNG)


def test_one_run_only_is_fitted_with_a_note(metasched: Callable[..., Answer], tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", runs(1))
    status, out, _ = metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json", "--json")
    assert status == 0
    assert any("1 run was too few" in note for note in json.loads(out)["notes"])


ROW = "made,c8,100,2,0.5,90,3.0"
HEADER = "application,cluster,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,execution_time"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (HEADER, "runs"),
        (HEADER.replace("processors,", "") + "\nmade,c8,100,0.5,90,3.0", "processors"),
        (f"{HEADER}\n{ROW}\nmade,c8,-1,2,0.5,90,3.0", "row 3"),
        (f"{HEADER}\n{ROW}\nmade,c8,100,2.5,0.5,90,3.0", "processors"),
        (f"{HEADER}\n{ROW}\nmade,c8,100,0,0.5,90,3.0", "processors"),
        (f"{HEADER}\n{ROW}\nmade,c8,100,2,1.5,90,3.0", "min_avg_avail_cpu"),
        (f"{HEADER}\n{ROW}\nmade,c8,100,2,0.5,0,3.0", "min_avg_avail_bw"),
        (f"{HEADER}\n{ROW}\nmade,c8,100,2,0.5,90,nan", "execution_time"),
        (f"{HEADER}\n{ROW}\nmade,c8,many,2,0.5,90,3.0", "problem_size"),
        (f"{HEADER}\n{ROW}\n{ROW}", "row 3"),
        (f"{HEADER}\n{ROW}\nother,c8,100,2,0.5,90,3.0", "--application"),
    ],
)
def test_bad_runs_are_one_line_and_status_2_and_leave_no_model(
    metasched: Callable[..., Answer], tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "runs.csv").write_text(text)
    status, out, err = metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json")
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"--problem-size": 0}, "problem_size"),
        ({"--processors": 0}, "processors"),
        ({"--cpu": 1.5}, "available_cpu"),
        ({"--bandwidth": -1}, "available_bandwidth"),
        ({"--level": 1}, "--level"),
        ({"--processors": "two"}, "processors"),
    ],
)
def test_bad_requests_are_one_line_and_status_2(
    metasched: Callable[..., Answer], tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    write_runs(tmp_path / "runs.csv", runs(30))
    metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json", "--method", "published")
    asked = {"--problem-size": 100, "--processors": 2, "--cpu": 0.5, "--bandwidth": 50} | options
    status, out, err = metasched("predict", tmp_path / "m.json", *(item for pair in asked.items() for item in pair))
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_model_file_cut_short_is_refused(metasched: Callable[..., Answer], tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", runs(30))
    model = tmp_path / "m.json"
    metasched("fit", tmp_path / "runs.csv", "-o", model, "--method", "published")
    model.write_text(model.read_text()[:500])
    ask = ("predict", model, "--problem-size", 100, "--processors", 2, "--cpu", 0.5, "--bandwidth", 50)
    status, _, err = metasched(*ask)
    assert status == 2
    assert "not a whole JSON document" in err


def test_a_folder_that_may_not_be_written_is_named(metasched: Callable[..., Answer], tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", runs(3))
    status, _, err = metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "nowhere" / "m.json")
    assert status == 2
    assert "nowhere" in err


def test_a_campaign_without_training_rows_or_loads_is_refused(metasched: Callable[..., Answer], campaign: Path) -> None:
    status, _, err = metasched("evaluate", campaign, "--loads", "forecast")
    assert status == 2
    assert "loads.csv" in err
    status, _, err = metasched("evaluate", campaign, "--models", "single")
    assert status == 2
    assert "--method published" in err
    rows = (campaign / "runs.csv").read_text().replace("train,", "predict,")
    (campaign / "runs.csv").write_text(rows)
    status, _, err = metasched("evaluate", campaign)
    assert status == 2
    assert "phase train" in err
