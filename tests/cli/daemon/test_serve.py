"""The verbs token, status and serve, without a daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call, refusal

from metasched.store.database.store import Store


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ("--database", str(tmp_path / "m.db"))
    status, out, _ = call(capsys, "token", "add", "n1", "--role", "agent", "--node", "n1", "--json", *database)
    assert status == 0
    secret = json.loads(out)["token"]
    status, out, _ = call(capsys, "token", "list", "--json", *database)
    assert [(each["name"], each["role"], each["node"]) for each in json.loads(out)] == [("n1", "agent", "n1")]
    assert secret not in out
    assert call(capsys, "token", "revoke", "n1", *database)[0] == 0
    assert "no token n1" in refusal(call(capsys, "token", "revoke", "n1", *database))


@pytest.mark.parametrize(("out", "status"), [("/dev/full", 1), ("a pipe that nobody reads", 128 + signal.SIGPIPE)])
def test_there_is_no_token_whose_secret_could_not_be_shown(out: str, status: int, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = ["token", "add", "n1", "--role", "reader", "--database", str(tmp_path / "m.db")]
    with open(out, "w") if out == "/dev/full" else open(writer, "w") as shown:
        done = subprocess.run([sys.executable, "-m", "metasched", *words], stdout=shown, check=False)
    assert done.returncode == status
    with Store.open(tmp_path / "m.db") as store:
        assert store.tokens.all() == ()


def test_the_token_of_a_site_names_the_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ("--database", str(tmp_path / "m.db"))
    status, out, _ = call(capsys, "token", "add", "links", "--role", "site", "--site", "east", "--json", *database)
    assert (status, json.loads(out)["node"]) == (0, "east")
    assert "east" in call(capsys, "token", "list", *database)[1]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--role", "king"),
        ("--role", "agent"),
        ("--role", "reader", "--node", "n1"),
        ("--role", "site"),
        ("--role", "site", "--site", ""),
        ("--role", "site", "--node", "n1"),
        ("--role", "site", "--site", "east", "--user", "alice"),
        ("--role", "agent", "--node", "n1", "--site", "east"),
        ("--role", "reader", "--site", "east"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    wrong: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal(call(capsys, "token", "add", "x", *wrong, "--database", str(tmp_path / "m.db")))
    assert not [*tmp_path.iterdir()]


def test_status_without_a_daemon_fails_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "metasched.toml"
    configuration.write_text('[listen]\nsocket = "nobody"\n')
    status, out, err = call(capsys, "status", "--config", str(configuration))
    assert (status, out, err.count("\n")) == (1, "", 1)


def test_serve_refuses_a_configuration_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "missing.toml" in refusal(call(capsys, "serve", "--config", str(tmp_path / "missing.toml")))
