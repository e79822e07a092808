"""What ``metasched status`` and ``mode`` show of an answer of the daemon, line by line."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from command_line import call

from metasched.cli import output

#: An answer of a daemon that has nothing to tell.
QUIET: dict[str, Any] = {
    "mode": "shadow", "set_by": None, "set_at": None, "configured": "shadow",
    "version": "1.2", "up": 90.0, "database": "/m.db", "faults": {}, "leads": True,
    "sources": {}, "partitions": 2, "load_sources": [], "nodes_with_loads": 7,
    "models": 3, "runs_to_learn": 0, "learning_failures": 0, "learned": [],
    "quality": {
        "jobs": 0, "failed": 0, "ppe_mean": None, "followed": 0, "same_partition": 0, "elsewhere": 0, "faster": 0,
        "time_taken": 0.0, "time_as_advised": 0.0, "metered": 0, "energy_taken": 0.0, "energy_as_advised": 0.0,
        "killed_by_limit": 0,
    },
    "verdict": {"mode": None, "why": "too early to tell"},
    "next_step": {"line": "wait", "command": None},
    "by_application": [], "more_applications": 0,
}  # fmt: skip
PART: dict[str, Any] = {
    "application": "cg", "cluster": "east", "judged": 4, "ppe_mean_there": None, "held": None, "followed": 1, "jobs": 5,
    "saved": None, "saved_low": None, "saved_high": None, "verdict": {"mode": None},
}  # fmt: skip


def shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], verb: str = "status"
) -> list[str]:
    """The lines that are printed of the quiet answer with other values, nested ones by ``outer.inner``."""
    answer = deepcopy(QUIET)
    for name, value in changes.items():
        outer, _, inner = name.rpartition(".")
        (answer[outer] if outer else answer)[inner] = value
    monkeypatch.setattr("metasched.cli.daemon.status.ask_daemon", lambda *_: answer)
    monkeypatch.setattr(output.out, "width", 240)
    status, out, _ = call(capsys, verb, "--config", "/c.toml")
    assert status == 0
    return [" ".join(line.split()) for line in out.splitlines()]


def test_a_daemon_that_has_nothing_to_tell_is_shown_in_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(capsys, monkeypatch, {}) == [
        "mode shadow: advice is recorded, users see none of it, no job is changed; as configured",
        "version 1.2, up for 90.0 s, database /m.db",
        "partitions 2; last updated: never",
        "nodes 7 report loads",
        "models 3; 0 runs still to learn, 0 failures",
        "jobs 0 with advice have finished; 0 failed or were killed",
        "verdict too early to tell",
        "next wait",
    ]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"set_by": "ada", "set_at": 1767225600.0, "configured": "act"},
         ['mode shadow: advice is recorded, users see none of it, no job is changed; set by ada 2026-01-01 00:00 UTC, '
          'the configuration says "act"']),
        ({"faults": {"clock": "[red]went back"}}, ["clock [red]went back"]),
        ({"leads": False},
         ["follows another daemon leads: this one only answers reads, and takes over when the other ends"]),
        ({"sources": {"described": 3.4, "slurm": 12.0}},
         ["partitions 2; last updated: the configuration 3 s ago, slurm 12 s ago"]),
        ({"load_sources": [{"name": "p", "nodes": 1, "age": None, "failures": 2, "fault": "refused"},
                           {"name": "q", "nodes": 5, "age": 4.0, "failures": 1, "fault": ""}]},
         ["source p: 1 node, never answered, 2 failures; refused",
          "source q: 5 nodes, answered 4 s ago, 1 failure"]),
        ({"runs_to_learn": 1, "learning_failures": 2}, ["models 3; 1 run still to learn, 2 failures"]),
        ({"learned": [{"application": "cg", "platform": "east", "unmeasured": 2, "runs": 9, "notices": ["ada", "bob"]},
                      {"application": "lu", "platform": "east", "unmeasured": 0, "runs": 9, "notices": []}]},
         ["unmeasured the loads of 2 of 9 runs learned of cg on east", "notice cg on east: ada",
          "notice cg on east: bob"]),
        ({"quality.jobs": 8, "quality.failed": 1, "quality.followed": 6, "quality.same_partition": 7},
         ["jobs 8 with advice have finished; 1 failed or were killed",
          "agreement 6 ran on the nodes advised; 7 in the partition advised"]),
        ({"quality.jobs": 1, "quality.ppe_mean": 4.26},
         ["jobs 1 with advice have finished; 0 failed or were killed",
          "agreement 0 ran on the nodes advised, the advice off by 4.3 % on average; 0 in the partition advised"]),
        ({"quality.elsewhere": 2, "quality.faster": 1, "quality.time_taken": 500.0, "quality.time_as_advised": 460.0},
         ["elsewhere 2 ran elsewhere, 1 of them slower than predicted where advised: of 500 s 40.0 s would have been "
          "saved"]),
        ({"quality.elsewhere": 2, "quality.time_taken": 400.0, "quality.time_as_advised": 460.0},
         ["elsewhere 2 ran elsewhere, 0 of them slower than predicted where advised: of 400 s 60.0 s would have been "
          "lost"]),
        ({"quality.elsewhere": 1, "quality.time_taken": 40.0, "quality.time_as_advised": 40.0},
         ["elsewhere 1 ran elsewhere, 0 of them slower than predicted where advised: of 40.0 s 0 s would have been "
          "saved"]),
        ({"quality.metered": 3, "quality.energy_taken": 9000.0, "quality.energy_as_advised": 8750.0},
         ["energy of 9000 J that 3 of these took, 250 J would have been saved where advised"]),
        ({"quality.metered": 3, "quality.energy_taken": 9000.0, "quality.energy_as_advised": 9001.0},
         ["energy of 9000 J that 3 of these took, 1 J would have been lost where advised"]),
        ({"quality.metered": 1, "quality.energy_taken": 9.0, "quality.energy_as_advised": 9.0},
         ["energy of 9 J that 1 of these took, 0 J would have been saved where advised"]),
        ({"quality.killed_by_limit": 1}, ["limits 1 would exceed the suggested time limit"]),
        ({"verdict.mode": "act", "next_step.command": "metasched mode act"},
         ["METASCHED_TOKEN=... metasched mode act (an admin's token), or",
          'mode = "act" in /c.toml, and systemctl restart metasched']),
    ],
)  # fmt: skip
def test_what_a_daemon_has_to_tell_has_its_own_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], more: list[str]
) -> None:
    usual = shown(capsys, monkeypatch, {})
    assert [line for line in shown(capsys, monkeypatch, changes) if line not in usual] == more


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "cg east 4 – – 1 of 5 – too early"),
        ({"ppe_mean_there": 7.25, "held": 0.875, "verdict": {"mode": "advise"}}, "cg east 4 7.2 % 88% 1 of 5 – advise"),
        ({"saved": 0.0}, "cg east 4 – – 1 of 5 0% too early"),
        ({"saved": 0.2, "saved_low": 0.0, "saved_high": 0.31}, "cg east 4 – – 1 of 5 20% (0% to 31%) too early"),
    ],
)
def test_each_application_has_a_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], line: str
) -> None:
    found = shown(capsys, monkeypatch, {"by_application": [PART | changes]})
    assert [each for each in found if each.startswith("cg")] == [line]
    assert not [each for each in found if each.startswith("and ")]
    assert shown(capsys, monkeypatch, {"by_application": [PART], "more_applications": 6})[-1] == "and 6 more"


@pytest.mark.parametrize(
    ("mode", "meaning"), [("advise", "users see the advice, no job is changed"), ("act", "jobs are placed")]
)
def test_a_mode_is_shown_with_what_it_means(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mode: str, meaning: str
) -> None:
    assert shown(capsys, monkeypatch, {"mode": mode}, "mode") == [f"{mode}: {meaning}; as configured"]
