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
from metasched.signature.traces.actions import BYTE, NULL
from metasched.signature.traces.trace import trace_of
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


@pytest.mark.parametrize(
    ("lines", "status", "processes", "why"),
    [
        ("", 0, 100, "names 64 hosts, 100 processes need 100"),
        ("CRITICAL: no host h5\n", 1, 25, "smpirun failed: CRITICAL: no host h5"),
        ("0 compute 5 0.25\n", 0, 25, "ended before the trace did"),
    ],
)
def test_a_simulation_that_cannot_be_or_fails_or_ends_early_is_refused(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, status: int,
    processes: int, why: str,
) -> None:  # fmt: skip
    platform, hosts = stand_in(tmp_path, monkeypatch, lines, status)
    with pytest.raises(InputError, match=why):
        by_replay(application, platform, hosts, False)(processes)


def line(n: int, of: int = BYTE) -> dict[int, list[tuple[str, tuple[float, ...]]]]:
    """Processes in a line that exchange with both neighbours; the ends have MPI_PROC_NULL in place of one.

    All data are of one type.
    """
    found: dict[int, list[tuple[str, tuple[float, ...]]]] = {}
    for rank in range(n):
        before, after = rank - 1 if rank else NULL, rank + 1 if rank < n - 1 else NULL
        requests = [("irecv", (before, 1, 9, of)), ("isend", (after, 1, 9, of))]
        waits = [("wait", (before, rank, 1)), ("wait", (rank, after, 1))]
        blocking = [("send", (after, 2, 9, of)), ("recv", (before, 2, 9, of))]
        shifts = [("sendRecv", (8, before, 8, after, of, of)), ("sendRecv", (7, after, 7, before, of, of))]
        turn = [*requests, *waits, *blocking, ("compute", (1e6,)), *shifts, ("allgatherv", (5, *([5] * n), of, of))]
        found[rank] = [("init", ()), *(turn * 3), ("finalize", ())]
    return found


@pytest.mark.parametrize("of", [BYTE, -1])
def test_null_communications_and_types_that_no_replay_knows_are_left_out(
    of: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = fit([trace_of(line(n, of)) for n in (4, 6, 8)]).application
    platform, hosts = stand_in(tmp_path, monkeypatch, "")
    (tmp_path / "smpirun").write_text(
        f"""#!/bin/sh
while [ "$1" != -replay ]; do shift; done
cat $(cat "$2") >{tmp_path}/replayed
grep -v -e init -e finalize {tmp_path}/replayed | sed 's/$/ 0.5/' >&2
"""
    )
    found = by_replay(application, platform, hosts, False)(3)
    first, last = ([
        text.removeprefix(f"{rank} ")
        for text in (tmp_path / "replayed").read_text().splitlines()
        if text.startswith(f"{rank} ")
    ] for rank in (0, 2))  # fmt: skip
    assert first == ["init", *["isend 1 1 9 6", "wait 0 1 1", "send 1 2 9 6", "compute 1e+06",
                               "recv 1 0 8 6", "send 1 0 7 6", "allgatherv 5 5 5 5 6 6"] * 3, "finalize"]  # fmt: skip
    assert last == ["init", *["irecv 1 1 9 6", "wait 1 2 1", "recv 1 2 9 6", "compute 1e+06",
                              "send 1 0 8 6", "recv 1 0 7 6", "allgatherv 5 5 5 5 6 6"] * 3, "finalize"]  # fmt: skip
    assert sum(each.weight * each.time for each in found.phases) == pytest.approx(3 * 10 * 0.5)


@REAL
def test_types_of_a_programs_own_have_a_byte_in_replays(tmp_path: Path) -> None:
    def ring(n: int, type_: int) -> dict[int, list[tuple[str, tuple[float, ...]]]]:
        def turn(rank: int) -> tuple[str, tuple[float, ...]]:
            return "sendRecv", (10**7, (rank + 1) % n, 10**7, (rank - 1) % n, type_, type_)

        return {rank: [("init", ()), turn(rank), ("finalize", ())] for rank in range(n)}

    platform, hosts = write_machine(tmp_path, 12)
    own, bytes_ = (
        predictions(
            by_replay(fit([trace_of(ring(n, of)) for n in (4, 6, 8)]).application, platform, hosts, False),
            "replay", [12], {}, False,
        )[0].execution_time
        for of in (-1, BYTE)
    )  # fmt: skip
    assert own == pytest.approx(bytes_)


def test_operations_among_some_of_the_processes_are_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = fit([trace_of({rank: [("bcast_on", (n // 2, 8, 0, BYTE))] for rank in range(n)}) for n in (4, 6, 8)])
    platform, hosts = stand_in(tmp_path, monkeypatch, "CRITICAL: action bcast_on is unknown\n", 1)
    with pytest.raises(InputError, match=r"^bcast among some of the processes cannot be replayed, expected --hardware"):
        by_replay(rows.application, platform, hosts, False)(12)


@REAL
def test_a_line_with_null_communications_is_replayed(tmp_path: Path) -> None:
    application = fit([trace_of(line(n)) for n in (4, 6, 8)]).application
    platform, hosts = write_machine(tmp_path, 12)
    (found,) = predictions(by_replay(application, platform, hosts, False), "replay", [12], {}, False)
    assert found.execution_time > 3e-3


@REAL
@pytest.mark.parametrize("relevant", [False, True])
def test_replayed_phases_come_to_the_replayed_time(application: Application, tmp_path: Path, relevant: bool) -> None:
    platform, hosts = write_machine(tmp_path, 36)
    (found,) = predictions(by_replay(application, platform, hosts, relevant), "replay", [36], {}, False)
    computing = sum(each.weight * each.computation for each in found.phases)
    assert computing == pytest.approx(6 * 2e8 / 36 / 1e9, rel=1e-3)
    assert found.execution_time > computing
