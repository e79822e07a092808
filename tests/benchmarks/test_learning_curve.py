"""The learning curve: what its page says of made-up cases, and that a campaign is judged by the shipped protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.learning_curve import CONTENDERS, OWN, Case, Curve, judge, page
from metasched.cli import main
from metasched.predictors.judging.peers import PEERS
from metasched.store.files.runs import write_runs
from tests.predictors.made import runs


def made(own: float, others: float) -> Curve:
    def summary(ppe: float) -> dict[str, float]:
        return {
            "ppe_mean": ppe,
            "ppe_median": ppe / 2,
            "interval_coverage": 0.9,
            "interval_width_median": 2.6,
            "fit_seconds": 0.1,
        }

    errors = {name: own if name == OWN else others for name in CONTENDERS}
    cases = tuple(Case(name, 5, summary(error)) for name, error in errors.items())
    return Curve(cases, {name: [(error, error / 2)] for name, error in errors.items()})


def test_the_page_sets_what_was_measured_beside_what_was_asked() -> None:
    text = page([made(20.0, 30.0), made(10.0, 40.0)], [made(7.0, 9.0)], "two campaigns", 1, "")
    assert "from two campaigns of the testbed's judged seed" in text
    assert "| 5 | 15.0 / 7.5 | 35.0 / 17.5 |" in text
    assert "| 5 runs, mean / median PPE | <= 23 / 14 % | 15.0 / 7.5 % | reached |" in text
    assert "| 5 runs, interval width | <= 2.5 | 2.6 | **missed** |" in text
    assert "| 5 runs, coverage of 90 % intervals | 88% to 93% | 90.0% | reached |" in text
    assert "| 5 runs, against the best peer | < 35.0 % | 15.0 % | reached |" in text
    assert "| learning from 5 runs, predictions 1 to 10 | <= 11 % | 15.0 % | **missed** |" in text
    assert "| learning from 5 runs, predictions 11 to 30 | <= 6.5 % | 7.5 % | **missed** |" in text
    _, others = text.split("## A program that is not part of the design")
    assert "| 5 | 7.0 / 3.5 | 9.0 / 4.5 |" in others
    assert "| 5 runs, against the best peer | < 9.0 % | 7.0 % | reached |" in others
    worse = page([made(31.0, 30.0)], [], "one", 1, "")
    assert "| 5 runs, against the best peer | < 30.0 % | 31.0 % | **missed** |" in worse


def test_a_campaign_is_judged_as_evaluate_judges_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.learning_curve.STRETCHES", {(0, 2): 11.0, (2, 4): 6.5})
    phased = [(run, "train") for run in runs(20)] + [(run, "predict") for run in runs(4, seed=1)]
    write_runs(tmp_path / "runs.csv", [replace(run, phase=phase) for run, phase in phased])
    curve = judge(tmp_path, draws=1, counts=[5])
    assert [case.name for case in curve.cases] == [OWN, *(peer.name for peer in PEERS)]
    assert all(len(parts) == 2 for (parts,) in curve.learning.values())
    with pytest.raises(SystemExit):
        main(["evaluate", str(tmp_path), "--training", "5", "--seed", "1", "--no-learning", "--peers", "--json"])
    shipped = json.loads(capsys.readouterr().out)
    found = {case.name: case.summary["ppe_mean"] for case in curve.cases}
    assert found == pytest.approx({OWN: shipped["ppe_mean"]} | {k: v["ppe_mean"] for k, v in shipped["peers"].items()})


def test_all_training_runs_are_learned_once_whatever_the_number_of_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.learning_curve.STRETCHES", {(0, 2): 11.0, (2, 4): 6.5})
    monkeypatch.setattr("benchmarks.learning_curve.CONTENDERS", {OWN: CONTENDERS[OWN]})
    phased = [(run, "train") for run in runs(8)] + [(run, "predict") for run in runs(4, seed=1)]
    write_runs(tmp_path / "runs.csv", [replace(run, phase=phase) for run, phase in phased])
    curve = judge(tmp_path, draws=3, counts=[5, 8])
    assert sorted(case.training for case in curve.cases) == [5, 5, 5, 8]
    assert len(curve.learning[OWN]) == 3
