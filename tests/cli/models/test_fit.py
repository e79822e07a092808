from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call, refusal

from metasched.cli import figures
from metasched.predictors.contract import Predictions
from metasched.store.files.models import read_model
from metasched.store.files.runs import write_runs
from tests.predictors.made import runs

Answer = tuple[int, str, str]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def metasched(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    return partial(call, capsys)


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
        "ppe_under_30", "interval_coverage", "interval_width_median", "fit_seconds", "series", "peers",
    } <= set(found)  # fmt: skip
    assert found["predictions"] == len(found["series"]) == 12
    assert set(found["peers"]) == {"power_law", "ridge", "gaussian_process", "amdahl"}
    assert 0 < found["ppe_mean"] < 30
    status, out, _ = metasched("evaluate", campaign, "--method", "published", "--models", "single")
    assert status == 0
    assert "mean PPE" in out


def test_evaluate_draws_training_runs_by_seed_and_need_not_learn(
    metasched: Callable[..., Answer], campaign: Path
) -> None:
    def answer(*options: object) -> dict[str, Any]:
        status, out, err = metasched("evaluate", campaign, *options, "--json")
        assert (status, err) == (0, "")
        found = json.loads(out)
        del found["fit_seconds"]
        return dict(found)

    first = answer("--training", 6, "--seed", 3, "--no-learning")
    assert (first["training"], first["predictions"], first["learning"]) == (6, 12, False)
    assert first["interval_width_median"] > 1.0
    assert answer("--training", 6, "--seed", 3, "--no-learning") == first
    assert answer("--training", 6, "--seed", 4, "--no-learning")["series"] != first["series"]
    assert answer("--training", 6, "--seed", 3)["series"][-1] != first["series"][-1]


def test_evaluate_judges_every_application_and_platform_that_has_train_rows(
    metasched: Callable[..., Answer], campaign: Path
) -> None:
    path = campaign / "runs.csv"
    header, *rows = path.read_text().splitlines()
    elsewhere = [row.replace(",c8,", ",c9,") for row in rows]
    nowhere = [row.replace(",c8,", ",c10,") for row in rows if row.startswith("predict")]
    path.write_text("\n".join([header, *rows, *elsewhere, *nowhere]) + "\n")
    command = ("evaluate", campaign, "--method", "published", "--no-learning")
    status, out, err = metasched(*command, "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert (found["application"], found["cluster"], found["predictions"]) == ("made", "c8, c9", 24)
    assert [(one["cluster"], one["training"], one["predictions"]) for one in found["evaluated"]] == [
        ("c8", 40, 12),
        ("c9", 40, 12),
    ]
    assert found["evaluated"][0]["ppe_mean"] == found["evaluated"][1]["ppe_mean"] == pytest.approx(found["ppe_mean"])
    assert found["not_evaluated"] == [{"application": "made", "cluster": "c10", "predictions": 12}]
    status, _, err = metasched(*command)
    assert status == 0
    assert "made on c10 was not evaluated: no row of phase train" in err
    status, out, _ = metasched(*command, "--cluster", "c9", "--json")
    assert json.loads(out)["cluster"] == "c9"


def test_evaluate_says_where_no_energy_was_measured(metasched: Callable[..., Answer], campaign: Path) -> None:
    path = campaign / "runs.csv"
    header, *rows = path.read_text().splitlines()
    metered = [f"{row},{100 + number}" for number, row in enumerate(rows)]
    half = [
        row.replace(",c8,", ",c9,") + (f",{number}.5" if "train" in row else ",") for number, row in enumerate(rows, 1)
    ]
    path.write_text("\n".join([f"{header},energy", *metered, *half]) + "\n")
    command = ("evaluate", campaign, "--quantity", "energy", "--no-learning")
    status, out, err = metasched(*command, "--json")
    found = json.loads(out)
    assert (status, err, found["cluster"], found["predictions"]) == (0, "", "c8", 12)
    assert found["not_evaluated"] == [{"application": "made", "cluster": "c9", "predictions": 12}]
    status, _, err = metasched(*command)
    assert (status, err.splitlines()[-1]) == (
        0,
        "metasched: made on c9 was not evaluated: no row to predict has a measured energy",
    )
    status, _, err = metasched(*command, "--cluster", "c9")
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith("no row to predict has the measured energy, expected at least one\n")


def test_evaluate_refuses_what_it_cannot_draw_in_one_line(metasched: Callable[..., Answer], campaign: Path) -> None:
    path = campaign / "runs.csv"
    for options, says in (
        (("--training", 41), "--training: has 40 train rows to draw from, expected at least 41"),
        (("--training", 0), "--training is '0'"),
        (("--training", "few"), "--training is 'few'"),
        (("--training", 5, "--seed", -1), "--seed is '-1'"),
    ):
        assert says in refusal(metasched("evaluate", campaign, *options))
    path.write_text("\n".join(line.split(",", 1)[1] for line in path.read_text().splitlines()) + "\n")
    assert "no row has phase train, expected at least one, or --training K to draw K runs" in refusal(
        metasched("evaluate", campaign)
    )
    status, out, _ = metasched("evaluate", campaign, "--training", 40, "--method", "published", "--json")
    assert (status, json.loads(out)["predictions"]) == (0, 12)


def test_unmeasured_loads_and_further_columns_are_learned_and_evaluated(
    metasched: Callable[..., Answer], campaign: Path
) -> None:
    path = campaign / "runs.csv"
    header, *rows = path.read_text().splitlines()
    answer = [",".join(cell for place, cell in enumerate(row.split(",")) if place not in (5, 6)) for row in rows]
    names = header.replace("min_avg_avail_cpu,min_avg_avail_bw,", "") + ",min_avg_avail_cpu,min_avg_avail_bw"
    path.write_text("\n".join([f"{names},processes_per_node,user", *(f"{row},,,2,ann" for row in answer)]) + "\n")
    for method in ("published", "robust"):
        status, out, _ = metasched("evaluate", campaign, "--method", method, "--peers", "--no-learning", "--json")
        assert status == 0
        assert 0 < json.loads(out)["ppe_mean"] < 200


def test_plots_are_written_as_png(metasched: Callable[..., Answer], campaign: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    metasched("fit", campaign / "runs.csv", "-o", model, "--method", "published")
    where = ("--problem-size", 1000, "--cpu", 0.5, "--bandwidth", 50)
    for arguments in (
        ("predicted", campaign, "--method", "published"),
        ("error", campaign),
        ("scaling", model, *where, "--processors", 16),
        ("scaling", model, "--problem-size", 1000),
    ):
        picture = tmp_path / f"{arguments[0]}.png"
        status, out, _ = metasched("plot", *arguments, "-o", picture, "--json")
        assert (status, json.loads(out)) == (0, {"picture": str(picture)})
        assert picture.read_bytes().startswith(PNG)


def test_time_limits_of_a_model_file(metasched: Callable[..., Answer], campaign: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    metasched("fit", campaign / "runs.csv", "-o", model)
    job = ("walltime", "--model", model, "--problem-size", 1000, "--processors", 4, "--chance", 0.05)
    status, out, _ = metasched(*job, "--json")
    known = read_model(model)
    (limit,) = json.loads(out)["clusters"][0]["limits"]
    assert (status, json.loads(out)["application"], json.loads(out)["clusters"][0]["cluster"]) == (
        0, known.application, known.cluster,
    )  # fmt: skip
    assert limit["chance"] == pytest.approx(0.05)
    assert limit["seconds"] > json.loads(out)["clusters"][0]["median"]
    assert f"a model of {known.application}, expected one of lu" in refusal(metasched(*job, "--application", "lu"))


def test_one_run_only_is_fitted_with_a_note(metasched: Callable[..., Answer], tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", runs(1))
    status, out, _ = metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json", "--json")
    assert status == 0
    assert any("with 1 run the model relies largely on what is typical" in note for note in json.loads(out)["notes"])


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
    assert says in refusal(metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json"))
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
    assert says in refusal(
        metasched("predict", tmp_path / "m.json", *(item for pair in asked.items() for item in pair))
    )


@pytest.mark.parametrize("method", ["published", "robust", "tournament"])
@pytest.mark.parametrize("size", ["1e300", "1e-300"])
@pytest.mark.parametrize(
    "verb", [("predict", "{}"), ("walltime", "--model", "{}"), ("plan", "{}", "--budget", "100")], ids=lambda v: v[0]
)
def test_a_size_whose_time_cannot_be_computed_is_one_line_and_status_2(
    metasched: Callable[..., Answer], tmp_path: Path, verb: tuple[str, ...], size: str, method: str
) -> None:
    write_runs(tmp_path / "runs.csv", runs(30))
    metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json", "--method", method)
    words = [word.format(tmp_path / "m.json") for word in verb]
    status, out, err = metasched(*words, "--problem-size", size, "--processors", 4)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "Request(" not in err


def test_a_model_file_cut_short_is_refused(metasched: Callable[..., Answer], tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", runs(30))
    model = tmp_path / "m.json"
    metasched("fit", tmp_path / "runs.csv", "-o", model, "--method", "published")
    model.write_text(model.read_text()[:500])
    ask = ("predict", model, "--problem-size", 100, "--processors", 2, "--cpu", 0.5, "--bandwidth", 50)
    assert "not a whole JSON document" in refusal(metasched(*ask))


def test_a_folder_that_may_not_be_written_is_named(metasched: Callable[..., Answer], tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", runs(3))
    assert "nowhere" in refusal(metasched("fit", tmp_path / "runs.csv", "-o", tmp_path / "nowhere" / "m.json"))


def test_a_campaign_without_training_rows_or_loads_is_refused(metasched: Callable[..., Answer], campaign: Path) -> None:
    assert "loads.csv" in refusal(metasched("evaluate", campaign, "--loads", "forecast"))
    assert "--method published" in refusal(metasched("evaluate", campaign, "--models", "single"))
    rows = (campaign / "runs.csv").read_text().replace("train,", "predict,")
    (campaign / "runs.csv").write_text(rows)
    assert "phase train" in refusal(metasched("evaluate", campaign))


def test_a_table_of_sizes_processors_and_times_alone_is_learned_and_asked_without_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "jacobi.csv"
    rows = [f"{n},{p},{1e-3 * n / p}" for n in range(100, 900, 100) for p in (1, 2, 4)]
    table.write_text("\n".join(["problem_size,processors,execution_time", *rows]) + "\n")
    model = tmp_path / "jacobi.json"
    for words in (("fit", str(table), "-o", str(model)), ("predict", str(model), "--problem-size", "1000",
                                                         "--processors", "4", "--json")):  # fmt: skip
        status, out, _ = call(capsys, *words)
        assert status == 0
    output = json.loads(out)
    assert output["execution_time"] == pytest.approx(0.25, rel=0.05)
    assert output["loads"] == {"available_cpu": 1.0, "available_bandwidth": 1000.0}
    assert json.loads(model.read_text())["application"] == "jacobi"


def test_without_loads_a_prediction_takes_those_that_runs_usually_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "runs.csv"
    rows = [f"cg,c8,{n},{p},{cpu},10000.0,{1e-3 * n / (p * cpu)}" for n in range(100, 900, 100)
            for p, cpu in ((1, 0.4), (2, 0.5), (4, 0.8))]  # fmt: skip
    header = "application,cluster,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,execution_time"
    table.write_text("\n".join([header, *rows]) + "\n")
    asked = ("predict", str(tmp_path / "m.json"), "--problem-size", "500", "--processors", "2")
    found = []
    for words in (("fit", str(table), "-o", str(tmp_path / "m.json"), "--method", "published"), (*asked, "--json"),
                  (*asked, "--cpu", "0.5", "--bandwidth", "10000", "--json"), asked,
                  (*asked, "--cpu", "0.7"), (*asked, "--bandwidth", "20")):  # fmt: skip
        status, out, _ = call(capsys, *words)
        assert status == 0
        found.append(out)
    without, with_them = json.loads(found[1]), json.loads(found[2])
    assert without.pop("loads") == {"available_cpu": 0.5, "available_bandwidth": 10_000.0}
    assert without == with_them
    assert "with CPU 0.5 and 10000 Mbit/s, the usual values of the runs" in found[3]
    assert "with 10000 Mbit/s, the usual value of the runs" in found[4]
    assert "with CPU 0.5, the usual value of the runs" in found[5]


def test_intervals_hold_the_loads_that_are_not_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(3)
    table, model = tmp_path / "runs.csv", tmp_path / "m.json"
    rows = [
        f"cg,c8,{n},{p},{cpu},1000,{2e-3 * n / (p * cpu) * noise},{0.1 * n / cpu * noise}"
        for n in range(100, 900, 100)
        for p in (1, 2, 4, 8)
        for cpu, noise in [(draw.uniform(0.3, 1.0), draw.lognormal(0.0, 0.03))]
    ]
    header = "application,cluster,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,execution_time,energy"
    table.write_text("\n".join([header, *rows]) + "\n")
    asked = ("predict", str(model), "--problem-size", "500", "--processors", "4", "--json")
    assert call(capsys, "fit", str(table), "-o", str(model))[0] == 0
    without = json.loads(call(capsys, *asked)[1])
    usual = without["loads"]["available_cpu"]
    given = json.loads(call(capsys, *asked, "--cpu", str(usual), "--bandwidth", "1000")[1])
    assert without["execution_time"] == given["execution_time"]
    times = 2e-3 * 500 / (4 * draw.uniform(0.3, 1.0, 500))

    def held(answer: dict[str, Any]) -> float:
        low, high = answer["interval"]["low"], answer["interval"]["high"]
        return float(np.mean((times >= low) & (times <= high)))

    assert (held(without) > 0.85, held(given) < 0.3) == (True, True)
    of_energy, of_given = (each["energy"]["interval"] for each in (without, given))
    assert of_energy["high"] / of_energy["low"] > 1.2 * of_given["high"] / of_given["low"]
    drawn: list[Predictions] = []
    real = figures.time_and_efficiency
    monkeypatch.setattr(figures, "time_and_efficiency", lambda *shown: drawn.append(shown[1]) or real(*shown))
    plotted = ("plot", "scaling", str(model), "-o", str(tmp_path / "p.png"), "--problem-size", "500")
    assert call(capsys, *plotted, "--processors", "4")[0] == 0
    ends = drawn[0].low[-1], drawn[0].high[-1]
    assert ends == pytest.approx((without["interval"]["low"], without["interval"]["high"]))


@pytest.mark.parametrize("lacks", ["cluster", "min_avg_avail_bw"])
def test_a_table_with_half_of_what_belongs_together_is_refused(
    lacks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [
        "application",
        "cluster",
        "problem_size",
        "processors",
        "min_avg_avail_cpu",
        "min_avg_avail_bw",
        "execution_time",
    ]
    cells = dict(zip(names, ("cg", "c8", "100", "2", "1", "100", "5"), strict=True))
    del cells[lacks]
    (tmp_path / "runs.csv").write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    assert f"column {lacks} missing" in refusal(call(capsys, "fit", tmp_path / "runs.csv", "-o", tmp_path / "m.json"))
