"""Time limits by the daemon, and without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import call

from metasched.client import connection
from metasched.records import InputError

ASKED = ("--application", "cg", "--problem-size", 900, "--processors", 2)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (InputError("parameter 'q' is unknown", where="a.sock"), "metasched: a.sock: parameter 'q' is unknown\n"),
        (connection.DeniedError("no token", where="a.sock"), "serve creates one; a.sock: no token\n"),
    ],
)
def test_what_the_daemon_refuses_is_not_looked_up_without_it(
    refusal: InputError,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise refusal

    monkeypatch.setattr(connection, "ask_configured", refused)
    (tmp_path / "m.toml").write_text(f'database = "{tmp_path}/m.db"\n')
    status, out, err = call(capsys, "walltime", "--config", tmp_path / "m.toml", *ASKED)
    assert (status, out) == (2, "")
    assert err.endswith(expected)
