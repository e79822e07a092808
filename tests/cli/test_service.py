"""The verbs token, status and serve, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metasched.cli import main


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([*argv])
    output = capsys.readouterr()
    return int(left.value.code or 0), output.out, output.err


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ("--database", str(tmp_path / "m.db"))
    status, out, _ = run(capsys, "token", "add", "n1", "--role", "agent", "--node", "n1", "--json", *database)
    assert status == 0
    secret = json.loads(out)["token"]
    status, out, _ = run(capsys, "token", "list", "--json", *database)
    assert [(each["name"], each["role"], each["node"]) for each in json.loads(out)] == [("n1", "agent", "n1")]
    assert secret not in out
    assert run(capsys, "token", "revoke", "n1", *database)[0] == 0
    status, _, err = run(capsys, "token", "revoke", "n1", *database)
    assert (status, "no token n1" in err) == (2, True)


@pytest.mark.parametrize("wrong", [("--role", "king"), ("--role", "agent"), ("--role", "reader", "--node", "n1")])
def test_a_token_that_makes_no_sense_is_refused(
    wrong: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "token", "add", "x", *wrong, "--database", str(tmp_path / "m.db"))
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_status_without_a_daemon_fails_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "metasched.toml"
    configuration.write_text('[listen]\nsocket = "nobody"\n')
    status, out, err = run(capsys, "status", "--config", str(configuration))
    assert (status, out, err.count("\n")) == (1, "", 1)


def test_serve_refuses_a_configuration_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "serve", "--config", str(tmp_path / "missing.toml"))
    assert (status, "missing.toml" in err) == (2, True)
