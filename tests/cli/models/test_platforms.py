"""``fit``, ``predict``, ``evaluate`` and ``rank`` with runs of several platforms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from metasched.records import Run
from metasched.store.files.runs import write_runs
from tests.predictors.made import runs


def on(platform: str, factor: float, count: int, seed: int, phase: str = "train") -> list[Run]:
    return [
        replace(run, cluster=platform, execution_time=factor * run.execution_time, phase=phase)
        for run in runs(count, seed=seed)
    ]


def answer(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> Any:
    code, out, err = call(capsys, *map(str, arguments))
    assert code == status, err
    return json.loads(out) if status == 0 else err


def test_a_campaign_of_several_platforms_is_judged_where_few_or_no_rows_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*on("few", 2.0, 8, 5, "predict"), *on("none", 0.5, 8, 6, "predict")]
    write_runs(tmp_path / "runs.csv", [*on("many", 1.0, 30, 1), *on("few", 2.0, 3, 2), *asked])
    found = answer(capsys, "evaluate", tmp_path, "--json")
    parts = {part["cluster"]: part for part in found["evaluated"]}
    assert found["not_evaluated"] == []
    assert {name: part["training"] for name, part in parts.items()} == {"few": 3, "none": 0}
    assert parts["few"]["ppe_mean"] < 10.0
    first, *later = [each["ppe"] for each in found["series"] if each["cluster"] == "none"]
    assert sum(later) / len(later) < min(15.0, first)  # its scale is learned
    assert parts["none"]["interval_coverage"] >= 0.75


def test_a_model_of_several_platforms_predicts_on_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path / "runs.csv", [*on("a", 1.0, 25, 1), *on("b", 3.0, 25, 2)])
    model = tmp_path / "made.json"
    fitted = answer(capsys, "fit", tmp_path / "runs.csv", "-o", model, "--json")
    assert fitted["cluster"] == "a, b"
    assert [part["platform"] for part in fitted["platforms"]] == ["a", "b"]
    request = ("--problem-size", 1000, "--processors", 4, "--cpu", 0.8, "--bandwidth", 60, "--json")
    a, b, new = (answer(capsys, "predict", model, *request, "--platform", name) for name in ("a", "b", "new"))
    assert b["execution_time"] / a["execution_time"] == pytest.approx(3.0, rel=0.15)
    assert new["interval"]["high"] / new["interval"]["low"] > 5.0 > a["interval"]["high"] / a["interval"]["low"]
    (tmp_path / "site.toml").write_text(
        "".join(f'[[cluster]]\nname = "{name}"\nnodes = [{{ names = "{name}[1-4]" }}]\n' for name in "ac")
    )
    ranked = answer(
        capsys, "rank", "--application", "made", "--problem-size", 1000, "--processors", "4", "--model", model,
        "--clusters", tmp_path / "site.toml", "--json",
    )  # fmt: skip
    widths = {each["cluster"]: each["interval"]["high"] / each["interval"]["low"] for each in ranked["placements"]}
    assert widths["c"] > 3.0 * widths["a"]


def test_what_does_not_fit_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path / "runs.csv", on("a", 1.0, 5, 1))
    answer(capsys, "fit", tmp_path / "runs.csv", "-o", tmp_path / "a.json", "--json")
    request = ("--problem-size", 1000, "--processors", 4, "--cpu", 0.8, "--bandwidth", 60)
    wrong = answer(capsys, "predict", tmp_path / "a.json", *request, "--platform", "b", status=2)
    assert "--platform is b, expected a, the only platform of the model" in wrong
    write_runs(tmp_path / "two.csv", [*on("a", 1.0, 5, 1), *on("b", 1.0, 5, 1)])
    wrong = answer(capsys, "fit", tmp_path / "two.csv", "-o", tmp_path / "b.json", "--method", "published", status=2)
    assert "expected --cluster to choose one" in wrong
