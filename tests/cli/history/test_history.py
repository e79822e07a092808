"""What ``metasched history`` prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call, refusal

from benchmarks.replay.made_log import as_csv, made_log
from metasched.history.log_formats import UNNUMBERED
from metasched.store.database.store import Store

KEYS = {"jobs", "mae", "median_error", "underestimated", "interval_coverage", "avebsld", "mean_wait", "wait_mae",
        "wait_coverage", "seconds"}  # fmt: skip


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "history", *arguments)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.csv"
    path.write_text(as_csv(made_log(600, seed=1)), encoding="utf-8")
    return str(path)


def test_a_prediction_is_asked_for_with_the_numbers_in_arguments_and_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, str]] = []

    def consult(config: object, url: object, method: str, path: str, document: dict[str, str]) -> dict[str, object]:
        asked.append(document)
        return {"run_time": 60.0, "interval": {"low": 50.0, "high": 70.0}, "reason": "the model of solve",
                "early_failure": 0.0, "time_limit": 0.0}  # fmt: skip

    monkeypatch.setattr("metasched.cli.history.history.ask_daemon", consult)
    script = tmp_path / "run.sh"
    script.write_text("./solve -n 700\n")
    fields = ("predict", "--user", "ada", "--requested", "3600", "--processors", "8")
    for more in ((), ("--arguments", "case.in -n 400", "--script", str(script))):
        assert "the model of solve" in _run(capsys, *fields, *more)[1]
    assert [each.get("numbers") for each in asked] == [None, "script:-n=700 -n=400"]


@pytest.mark.parametrize("predictor", ["requests", "last-two", "keyed", "metasched", "clairvoyant"])
def test_every_predictor_is_judged_under_every_policy(capsys, log: str, predictor: str) -> None:
    fields = {}
    for policy in ("easy", "sjbf", "order-only"):
        arguments = [log, "--processors", "64", "--policy", policy, "--predictor", predictor, "--json"]
        status, out, _ = _run(capsys, "evaluate", *arguments)
        assert status == 0
        fields[policy] = json.loads(out)
        assert set(fields[policy]) >= KEYS
        assert fields[policy]["jobs"] == 600
        assert fields[policy]["avebsld"] >= 1.0
    assert (fields["easy"]["mae"] == 0) == (predictor == "clairvoyant")


def test_shaken_replays_are_told_one_by_one_and_by_their_mean(capsys, log: str) -> None:
    status, out, _ = _run(
        capsys, "evaluate", log, "--processors", "64", "--predictor", "requests", "--shakes", "3", "--json"
    )
    document = json.loads(out)
    assert (status, len(document["shaken"])) == (0, 3)
    assert document["avebsld"] == pytest.approx(sum(each["avebsld"] for each in document["shaken"]) / 3)


@pytest.mark.parametrize(
    ("tables", "words", "cluster"),
    [
        ("", [], ""),
        ('[[pbs]]\nname = "big"\n', [], "big"),
        ('[[pbs]]\nname = "big"\n', ["--cluster", "old"], "old"),
        ('[[slurm]]\nname = "a"\n[[pbs]]\nname = "b"\n', ["--cluster", "b"], "b"),
        ('[[slurm]]\nname = "a"\n[[pbs]]\nname = "b"\n', [], None),
    ],
)
def test_jobs_are_imported_for_the_cluster_that_is_configured_whatever_its_scheduler(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, log: str, tables: str, words: list[str], cluster: str | None
) -> None:
    configured = tmp_path / "metasched.toml"
    configured.write_text(f'database = "{tmp_path}/site.db"\n{tables}', encoding="utf-8")
    status, out, said = _run(capsys, "import", log, "--config", str(configured), *words, "--json")
    if cluster is None:
        assert (status, "--cluster: a, b are configured, expected one of them" in said) == (2, True)
        assert not (tmp_path / "site.db").exists()
    else:
        assert (status, json.loads(out)["cluster"]) == (0, cluster)


def test_what_a_log_lacks_is_done_without_and_said(capsys, tmp_path: Path) -> None:
    path = tmp_path / "poor.csv"
    path.write_text("submit_time,run_time,processors\n0,60,4\n5,30,8\n6,x,8\n9,30,4\n", encoding="utf-8")
    status, out, err = _run(capsys, "evaluate", str(path))
    assert status == 0
    assert "3 jobs" in out
    said = (
        "1 job torn or unreadable",
        "3 jobs without a request",
        "no requested times",
        "has no users",
        "does not state the number of",
    )
    assert [line for line in said if line not in err] == []


def test_array_tasks_without_the_number_of_the_queue_are_imported_once_and_mentioned(capsys, tmp_path: Path) -> None:
    path, database = tmp_path / "sacct.txt", tmp_path / "site.db"
    path.write_text("JobID|Submit|Start|ElapsedRaw|AllocCPUS\n4711_3|100|160|60|4\n7|100|160|60|4\n", encoding="utf-8")
    for new in (2, 0):
        status, out, err = _run(capsys, "import", str(path), "--cluster", "c8", "--database", str(database))
        assert (status, err.splitlines()[0]) == (0, f"metasched: 1 job {UNNUMBERED}")
        assert out.startswith(f"2 jobs read, {new} of them new")
    assert _run(capsys, "evaluate", str(path), "--processors", "8")[0] == 0


@pytest.mark.parametrize("cluster", ["", " ", "a\nb", "\x1b[31m"])
def test_jobs_are_imported_for_a_cluster_that_has_a_name(capsys, log: str, tmp_path: Path, cluster: str) -> None:
    database = tmp_path / "site.db"
    status, out, err = _run(capsys, "import", log, "--cluster", cluster, "--database", str(database))
    assert (status, out, err) == (2, "", f"metasched: --cluster is {cluster!r}, expected the name of a cluster\n")
    assert not database.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "No such file|no such file|not found|does not exist|there is no"),
        (["LOG", "--processors", "0"], "processors"),
        (["LOG", "--policy", "best"], "policy"),
        (["LOG", "--shakes", "-1"], "shakes"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_two(capsys, log: str, arguments: list[str], message: str) -> None:
    import re

    status, out, err = _run(capsys, "evaluate", *(log if each == "LOG" else each for each in arguments))
    assert (status, out) == (2, "")
    assert re.search(message, err)


def test_an_expectation_from_the_database_names_its_reason(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "site.db")
    assert _run(capsys, "import", log, "--database", database)[0] == 0
    fields = ("predict", "--user", "user1", "--requested", "3600", "--processors", "8", "--database", database)
    document = json.loads(_run(capsys, *fields, "--json")[1])
    assert 0 < document["interval"]["low"] <= document["run_time"] <= document["interval"]["high"] <= 3600
    assert document["reason"]
    assert document["complete"]
    assert "reaches its limit" in _run(capsys, *fields)[1]
    empty = str(tmp_path / "empty.db")
    Store.open(empty).close()
    assert "no past jobs are known yet" in refusal(_run(capsys, *fields[:-1], empty))
    for cluster in ("east", "west"):
        assert _run(capsys, "import", log, "--cluster", cluster, "--database", empty)[0] == 0
    assert "expected one of 'east', 'west' to be named" in refusal(_run(capsys, *fields[:-1], empty))
