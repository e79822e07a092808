"""Replays on a simulated platform: a stand-in for smpirun, and the real one where SimGrid is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.signature.applications import APPLICATIONS
from benchmarks.signature.machine import write_machine
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.fitting import fit
from metasched.signature.times.prediction import predictions
from metasched.tracing.smpi import by_replay

REAL = pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed")


@pytest.fixture(scope="module")
def application() -> Application:
    cannon = next(each for each in APPLICATIONS if each.name == "cannon")
    return fit([cannon.trace(n) for n in (4, 9, 16)]).application


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str, status: int = 0) -> tuple[Path, Path]:
    program = folder / "smpirun"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{lines}END\nexit {status}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return write_machine(folder, 64)


def test_a_simulator_that_is_missing_is_told(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, hosts = write_machine(tmp_path, 4)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="smpirun of SimGrid is not installed"):
        by_replay(application, platform, hosts, False)


def test_fewer_hosts_than_processes_are_refused(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, hosts = stand_in(tmp_path, monkeypatch, "")
    with pytest.raises(InputError, match="names 64 hosts, 100 processes need 100"):
        by_replay(application, platform, hosts, False)(100)


def test_what_the_simulator_says_of_a_failure_is_told(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, hosts = stand_in(tmp_path, monkeypatch, "CRITICAL: no host h5\n", 1)
    with pytest.raises(InputError, match="smpirun failed: CRITICAL: no host h5"):
        by_replay(application, platform, hosts, False)(25)


def test_a_simulator_that_ends_early_is_not_believed(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, hosts = stand_in(tmp_path, monkeypatch, "0 compute 5 0.25\n")
    with pytest.raises(InputError, match="ended before the trace did"):
        by_replay(application, platform, hosts, False)(25)


@REAL
@pytest.mark.parametrize("relevant", [False, True])
def test_replayed_phases_come_to_the_replayed_time(application: Application, tmp_path: Path, relevant: bool) -> None:
    platform, hosts = write_machine(tmp_path, 36)
    (found,) = predictions(by_replay(application, platform, hosts, relevant), "replay", [36], {}, False)
    computing = sum(each.weight * each.computation for each in found.phases)
    assert computing == pytest.approx(6 * 2e8 / 36 / 1e9, rel=1e-3)
    assert found.execution_time > computing
