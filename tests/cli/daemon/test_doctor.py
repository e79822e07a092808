"""Which checks ``metasched doctor`` makes of a configuration, with what, and what it shows of their findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from metasched.doctor.findings import Finding

CONFIGURATION = """
[listen]
socket = "/run/d.sock"
[energy]
set_frequency = true
[[slurm]]
name = "s1"
configuration = "/etc/s1.conf"
[[slurm]]
name = "s2"
[[grid_engine]]
name = "g"
root = "/opt/sge"
cell = "one"
[[pbs]]
name = "p"
server = "pbs-host"
[[oar]]
name = "o"
property = "cluster"
[[htcondor]]
name = "h"
pool = "collector"
[[flux]]
name = "f"
uri = "local:///run/flux"
"""
#: Each check, and what it is called with: the settings aside, which most of those of the daemon itself get.
CHECKS = ("daemon.check_database", "daemon.check_daemon", "daemon.check_socket", "secret_files.check_secret_files",
          "daemon.check_names", "daemon.check_agents", "slurm.check_slurm",
          "grid_engine.check_grid_engine", "pbs.check_pbs", "oar.check_oar",
          "htcondor.check_htcondor", "flux.check_flux")  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Any]]]:
    """The checks that are made, in order, with the names, numbers and paths that each is given; all find it well."""
    made: list[tuple[str, list[Any]]] = []

    def checking(name: str) -> Callable[..., Iterator[Finding]]:
        def check(*given: Any, **named: Any) -> Iterator[Finding]:
            values = [each for each in (*given, *named.values()) if isinstance(each, str | bool | list | Path | None)]
            made.append((name, values))
            yield Finding(name, "well", "")

        return check

    for name in CHECKS:
        monkeypatch.setattr(f"metasched.doctor.{name}", checking(name.rpartition(".")[2]))
    nodes = [
        {"scheduler": "b", "nodes": [{"node": "n2"}, {"node": "n1"}]}, {"scheduler": "b", "nodes": [{"node": "n2"}]}
    ]  # fmt: skip
    monkeypatch.setattr("metasched.cli.daemon.doctor.ask_configured", lambda listen, method, path: nodes)
    return made


def test_each_scheduler_of_the_configuration_is_checked_with_its_own_settings(
    asked: list[tuple[str, list[Any]]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "metasched.toml"
    file.write_text(CONFIGURATION)
    status, out, _ = call(capsys, "doctor", "--config", str(file), "--json")
    names = [name for name, _ in asked]
    assert (status, [each["check"] for each in json.loads(out)]) == (0, names)
    socket = "/run/d.sock"
    assert dict(asked)["check_agents"] == [["n1", "n2"]]
    of_schedulers = asked[names.index("check_slurm") :]
    assert [(name, values[:4]) for name, values in of_schedulers if name != "check_pbs"] == [
        ("check_slurm", ["s1", "/etc/s1.conf", socket, True]),
        ("check_slurm", ["s2", "", socket, True]),
        ("check_grid_engine", ["g", "/opt/sge", "one", socket]),
        ("check_oar", ["o", "cluster", socket]),
        ("check_htcondor", ["h", "collector"]),
        ("check_flux", ["f", "local:///run/flux", socket]),
    ]
    assert dict(asked)["check_pbs"][:3] == ["p", "pbs-host", socket]


def test_a_daemon_that_does_not_answer_leaves_no_nodes_to_look_for(
    asked: list[tuple[str, list[Any]]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def silent(*_: object) -> None:
        raise RuntimeError("silent")

    monkeypatch.setattr("metasched.cli.daemon.doctor.ask_configured", silent)
    file = tmp_path / "metasched.toml"
    file.write_text("")
    assert call(capsys, "doctor", "--config", str(file))[0] == 0
    assert [name for name, _ in asked] == [name.rpartition(".")[2] for name in CHECKS[:6]]
    assert dict(asked)["check_agents"] == [[]]


@pytest.mark.parametrize(
    ("states", "quiet", "status", "shown", "last"),
    [
        (["well", "well"], False, 0, ["one well", "two well"], "0 wrong, 0 to watch"),
        (["well", "watch"], True, 0, ["two watch how remedy"], "0 wrong, 1 to watch"),
        (["wrong", "well"], True, 1, ["one WRONG how remedy"], "1 wrong, 0 to watch"),
        (["wrong", "wrong"], False, 1, ["one WRONG how remedy", "two WRONG how remedy"], "2 wrong, 0 to watch"),
        (["well", "well"], True, 0, [], "0 wrong, 0 to watch"),
    ],
)
def test_what_needs_attention_is_shown_counted_and_decides_the_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    states: list[Any], quiet: bool, status: int, shown: list[str], last: str,
) -> None:  # fmt: skip
    found = [
        Finding(name, state, "" if state == "well" else "how", "" if state == "well" else "remedy")
        for name, state in zip(("one", "two"), states, strict=True)
    ]
    monkeypatch.setattr("metasched.cli.daemon.doctor._findings", lambda settings: iter(found))
    left, out, _ = call(capsys, "doctor", *["--quiet"] * quiet)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert (left, [line for line in lines if line.startswith(("one ", "two "))], lines[-1]) == (status, shown, last)
