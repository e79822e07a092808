"""What ``metasched wait`` asks the daemon, and how it shows the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import call, refusal

from metasched.cli.placements import wait as verb

JOB = {"cluster": "c", "job": "7", "partition": "p", "processors": 4, "state": "waiting", "wait": 600.0, "low": 0.0,
       "high": 900.0, "scheduler_start": None}  # fmt: skip
MORE = {"wait": 60.0, "low": 0.0, "high": 90.0, "run_time": 600.0, "reason": "the last 9 jobs took 10 min"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of a daemon that always answers the same."""
    answer: list[Any] = []

    def consult(config: Any, url: Any, method: str, path: str, document: Any = None) -> Any:
        answer.append((method, path, document))
        return MORE if method == "POST" else JOB if path.startswith("/v1/waits/") else [JOB, JOB | {"wait": None}]

    monkeypatch.setattr(verb, "ask_daemon", consult)
    return answer


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "wait", *arguments)


def test_a_job_is_asked_for_by_its_number(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(_run(capsys, "7/../x", "--cluster", "c&d", "--json")[1]) == JOB
    assert asked == [("GET", "/v1/waits/7%2F..%2Fx?cluster=c%26d", None)]
    assert "10.0 min" in _run(capsys, "7")[1]


def test_all_jobs_that_wait_are_shown(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert len(json.loads(_run(capsys, "--json")[1])) == 2
    assert _run(capsys)[1].count("waiting") == 2
    assert _run(capsys, "--cluster", "c&d")[1].count("waiting") == 2
    assert [path for _, path, _ in asked] == ["/v1/waits", "/v1/waits", "/v1/waits?cluster=c%26d"]


def test_a_job_that_is_not_submitted_is_described(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    fields = ("--partition", "p", "--processors", "4", "--requested", "3600", "--user", "ada")
    assert "the last 9 jobs took 10 min" in _run(capsys, *fields)[1]
    assert asked[0][2]["requested_time"] == 3600.0
    assert json.loads(_run(capsys, *fields, "--json")[1]) == MORE


def test_of_arguments_and_script_the_daemon_gets_numbers_only(
    asked: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(b"#!/bin/sh\n#SBATCH -n 8\nN=700 # of ann\xff\n")
    fields = ("--partition", "p", "--processors", "4", "--requested", "3600", "--user", "ada")
    for more in ((), ("--arguments", "case.in -n 400"), ("--arguments", "case.in"), ("--script", str(script))):
        assert _run(capsys, *fields, *more)[0] == 0
    known = {"partition", "processors", "requested_time", "name", "user", "cluster"}
    assert [{name: value for name, value in each[2].items() if name not in known} for each in asked] == [
        {}, {"numbers": "-n=400"}, {}, {"numbers": "script:N==700"},
    ]  # fmt: skip
    assert "none.sh: cannot be read: No such file" in refusal(
        _run(capsys, *fields, "--script", str(tmp_path / "none.sh"))
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("7", "--partition", "p"), "expected either the job or these options"),
        (("7", "--user", "ada"), "a job and --user are given, expected either the job or"),
        (("--processors", "4"), "expected all of"),
        (("--name", "solve"), "expected all of"),
        (("--arguments", "-n 4"), "expected all of"),
        (("7", "--script", "run.sh"), "a job and --script are given, expected either the job or"),
    ],
)
def test_half_a_question_is_refused(
    words: tuple[str, ...], message: str, asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, said = _run(capsys, *words)
    assert (status, message in said, asked) == (2, True, [])
