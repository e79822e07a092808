"""What administrators answer for stands in the system's log: who, and what, in one line."""

from __future__ import annotations

import getpass
import syslog
from pathlib import Path

import pytest
from command_line import status_of
from fastapi.testclient import TestClient

from metasched.audit import audit
from metasched.service.app import make_app
from tests.service.daemons import headers_for, running


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lambda _, line: lines.append(line))
    return lines


def test_tokens_modes_and_forgotten_runs_are_noted_with_who_did_it(tmp_path: Path, logged: list[str]) -> None:
    database, user = str(tmp_path / "metasched.db"), f"user {getpass.getuser()}"
    for words in (("add", "n1", "--role", "agent", "--node", "n1"), ("revoke", "n1"), ("revoke", "n1")):
        status_of("token", *words, "--database", database)
    with running(tmp_path) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon, "boss", "admin"))
        assert client.put("/v1/mode", json={"mode": "advise"}).status_code == 200
        assert client.put("/v1/mode", json={"mode": "none"}).status_code == 422
        assert client.post("/v1/runs/forget", json={"user": "nobody"}).status_code == 200
    status_of("runs", "forget", "--user", "nobody", "--db", database)
    assert logged == [
        f"{user}: token n1 created, role agent, node n1",
        f"{user}: token n1 revoked",
        "client boss: mode advise",
        "client boss: 0 runs forgotten",
        f"{user}: 0 runs forgotten",
    ]


def test_enrolled_agents_and_forgotten_past_jobs_are_noted_too(tmp_path: Path, logged: list[str]) -> None:
    database, user = str(tmp_path / "metasched.db"), f"user {getpass.getuser()}"
    status_of("token", "enrol", "n[1-3]", "--folder", tmp_path / "tokens", "--database", database)
    with running(tmp_path) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon, "boss", "admin"))
        assert client.post("/v1/history/forget", json={"user": "nobody"}).status_code == 200
    status_of("history", "forget", "--user", "nobody", "--database", database)
    assert logged == [
        f"{user}: tokens of 3 agents created: n[1-3]",
        "client boss: 0 past jobs of a user forgotten",
        f"{user}: 0 past jobs of a user forgotten",
    ]


def test_no_name_forges_a_line(logged: list[str]) -> None:
    audit("token x\nclient boss: mode act", "a\x1b[2J")
    assert logged == ["a?[2J: token x?client boss: mode act"]
