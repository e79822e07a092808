"""Recorded instructions on their way from the trace to signatures, rules and predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import status_of

from metasched.store.files.recorded_traces import HEADER

#: Instructions of all processes together in one of ten turns, and how many take a nanosecond.
WORK, RATE = 6.4e8, 4.0

ENTRY = """
name = "made"
kind = "cluster"
title = "made"
source = "made"
notes = []
[values]
latency = { value = 1e-5, unit = "s" }
bandwidth = { value = 1e9, unit = "B/s" }
speed = { value = 1e9, unit = "flop/s" }
"""


def recorded(count: int, way: str) -> str:
    """A run of ten turns that share the work; of processor time alone, or with instructions."""
    folder = Path(f"{way}-{count}")
    folder.mkdir()
    instructions = round(WORK / count)
    nanoseconds = round(instructions / RATE)
    for rank in range(count):
        totals = [f"{turns * nanoseconds}" + (f" {turns * instructions}" if way != "time" else "") for turns in (1, 9)]
        lines = [HEADER, f"process {rank} {count}", f"instructions {way}", f"duration {1e-8 * nanoseconds + 0.001}"]
        lines += [f"a {each}" for each in ("init", "barrier", "allreduce 8 0 -1", "finalize")]
        lines += [f"t 0 1 1 {totals[0]}", f"t 2 1 9 {totals[1]}", "b 1 2", "p 0 0x10 3", "end", ""]
        (folder / f"rank-{rank}").write_text("\n".join(lines), encoding="ascii")
    return str(folder)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def extracted(count: int, way: str, *options: str) -> dict[str, Any]:
    """The signature of a run, which is then in COUNT.json."""
    assert status_of("signature", "extract", recorded(count, way), "-o", f"{count}.json", "--json", *options) == 0
    signature: dict[str, Any] = json.loads(Path(f"{count}.json").read_text(encoding="utf-8"))
    return signature


def test_a_signature_tells_instructions_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    signature = extracted(4, "perf")
    assert json.loads(capsys.readouterr().out)["instructions"] == "perf"
    turn = max(signature["phases"], key=lambda each: each["share"])
    assert turn["instructions"] * turn["weight"] == pytest.approx(10 * WORK / 4)
    # The time is that which was measured, not what the assumed machine would take, and one of twenty calls.
    assert turn["time"] * turn["weight"] == pytest.approx(10 * WORK / 4 / RATE * 1e-9 + 20 * 5e-5, rel=1e-3)
    assert max(signature["point"]["instructions"]) == pytest.approx(WORK / 4)
    assert signature["execution_time"] == pytest.approx(1e-8 * WORK / 4 / RATE + 0.001)


def test_rules_of_counted_runs_know_how_long_an_instruction_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for count in (4, 8, 16):
        extracted(count, "perf")
    Path("made.toml").write_text(ENTRY, encoding="utf-8")
    capsys.readouterr()
    assert status_of("signature", "fit", "4.json", "8.json", "16.json", "-o", "app.json", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    # Eqs. (2) and (3): all instructions of the phase, whatever the number of processes.
    for rows in told["instructions"].values():
        assert max(row["total"] for row in rows) == pytest.approx(10 * WORK)
    assert status_of("signature", "expand", "app.json", "--processes", "32", "-o", "32.ti", "--json") == 0
    row = max(json.loads(capsys.readouterr().out)["instructions"], key=lambda each: float(each["total"]))
    assert row["instructions"] * row["weight"] == pytest.approx(10 * WORK / 32, rel=0.01)
    assert status_of("signature", "predict", "app.json", "--processes", "32", "--hardware", "made.toml", "--json") == 0
    (prediction,) = json.loads(capsys.readouterr().out)["predictions"]
    computed = sum(each["weight"] * each["computation"] for each in prediction["phases"])
    assert computed == pytest.approx(10 * WORK / 32 / RATE * 1e-9, rel=0.02)


def test_a_run_under_valgrind_takes_its_times_from_another_one() -> None:
    without = extracted(8, "valgrind")
    assert without["instructions"] == "valgrind"
    assert not {"point", "execution_time"} & set(without)
    signature = extracted(4, "valgrind", "--timed", recorded(4, "time"))
    assert max(signature["point"]["instructions"]) == pytest.approx(WORK / 4)
    assert max(signature["point"]["seconds"]) == pytest.approx(WORK / 4 / RATE * 1e-9, rel=0.01)
    assert signature["execution_time"] == pytest.approx(1e-8 * WORK / 4 / RATE + 0.001)


def test_times_under_valgrind_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    slow, other = recorded(4, "valgrind"), recorded(4, "time")
    for words in (["extract", other, "--timed", slow, "-o", "4.json"], ["mark", slow, "campaign"]):
        assert status_of("signature", *words) == 2
        assert "was recorded under valgrind, expected a run with its own times" in capsys.readouterr().err


def test_instructions_and_processor_time_have_no_rules_together(capsys: pytest.CaptureFixture[str]) -> None:
    for count, way in ((4, "perf"), (8, "time"), (16, "perf")):
        extracted(count, way)
    assert status_of("signature", "fit", "4.json", "8.json", "16.json", "-o", "app.json") == 2
    expected = "8.json: holds processor time, and 4.json instructions: expected signatures of one kind"
    assert expected in capsys.readouterr().err
    assert not Path("app.json").exists()


def test_what_one_process_did_is_told_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.ti").write_text("0 init\n0 compute 1e9\n0 finalize\n", encoding="utf-8")
    assert status_of("signature", "extract", "one.ti", "-o", "one.json") == 0
    assert "1 process, 3 events, 1 s on the assumed machine" in capsys.readouterr().out
