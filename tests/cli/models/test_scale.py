from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal
from matplotlib.figure import Figure

from metasched.store.files.mpip import read_mpip

PROFILES = """processes,sends,message_size,waiting_time,execution_time,mean_distance,exchanges,dimensions
2,100,100000,0.02,8.12,1,50,1
4,100,100000,0.02,4.12,1,50,1
8,100,100000,0.02,2.12,1,50,1
"""
HARDWARE = """
word_time = 8e-9
startup_time = 1e-4
[[server]]
name = "fast"
cores = 8
count = 2
[[server]]
name = "slow"
cores = 4
speed = 0.5
"""


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    return call(capsys, "scale", *argv)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    profiles, hardware = tmp_path / "profiles.csv", tmp_path / "hardware.toml"
    profiles.write_text(PROFILES)
    hardware.write_text(HARDWARE)
    return profiles, hardware


def mpip(processes: int) -> str:
    """A report as mpiP 3.5 writes it: 50 exchanges with both neighbours and 10 reductions of 8 bytes."""
    rule = "-" * 75
    seconds = 16.0 / processes + 0.12
    times = "\n".join(f"{rank:4} {seconds:10.3g} {0.02:10.3g} {2.0 / seconds:8.2f}" for rank in range(processes))
    calls = [("Isend", 1, 100, "1e+05"), ("Allreduce", 3, 10, "8")]
    sent = "\n".join(
        f"{name:<17} {site:4} {rank:4} {count:7} {size} {size} {size} 1e+07"
        for name, site, count, size in calls
        for rank in range(processes)
    )
    waits = "\n".join(
        f"{name:<17} {site:4} {rank:4} {count:7} 0.5 0.2 0.1 0.1 50.00"
        for name, site, count in (("Isend", 1, 100), ("Waitall", 2, 50), ("Allreduce", 3, 10))
        for rank in range(processes)
    )
    return f"""@ mpiP
@ Command : ./ring
@ Version                  : 3.5.0
@ MPI Task Assignment      : 0 node0

{rule}
@--- MPI Time (seconds) ---------------------------------------------------
{rule}
Task    AppTime    MPITime     MPI%
{times}
   *          9       0.08     1.00
{rule}
@--- Callsite Time statistics (all, milliseconds): {3 * processes} ---------------------
{rule}
Name              Site Rank  Count      Max     Mean      Min   App%   MPI%
{waits}
{rule}
@--- Callsite Message Sent statistics (all, sent bytes) -------------------
{rule}
Name              Site Rank   Count       Max      Mean       Min       Sum
{sent}
Isend                1    *     400 1e+05 1e+05 1e+05 4e+07
{rule}
@--- End of Report --------------------------------------------------------
{rule}
"""


def test_scale_prints_times_and_the_knee_and_writes_the_picture(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "scale.png"
    options = ["--hardware", str(files[1]), "--processes", "1,8,16", "-o", str(picture), "--json"]
    status, out, _ = run(capsys, str(files[0]), *options)
    document = json.loads(out)
    assert status == 0
    assert document["distribution"] == [[1, 0, 0], [8, 0, 0], [8, 8, 0]]
    assert document["execution_time"][1] == pytest.approx(2.12, rel=0.02)
    assert document["speedup"] == pytest.approx([document["execution_time"][0] / t for t in document["execution_time"]])
    assert document["efficiency"] == pytest.approx(
        [s / n for s, n in zip(document["speedup"], (1, 8, 16), strict=True)]
    )
    assert document["pays_until"] in document["processes"]
    assert len(document["baseline"]["execution_time"]) == 3
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_table_and_the_picture_show_speedup_and_efficiency_as_they_are_defined(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr("metasched.cli.figures.save", lambda figure, path: drawn.append(figure))
    options = ["--hardware", str(files[1]), "--processes", "1,4,8"]
    picture = tmp_path / "scale.png"
    status, out, _ = run(capsys, str(files[0]), *options, "-o", str(picture))
    _, document, _ = run(capsys, str(files[0]), *options, "--json")
    seconds = np.array(json.loads(document)["execution_time"])
    speedup = seconds[0] / seconds
    expected = {"execution time (s)": seconds, "speedup": speedup, "efficiency": speedup / [1, 4, 8]}
    assert status == 0
    curves = {axes.get_ylabel(): axes.lines[0] for axes in drawn[0].axes}
    assert curves.keys() == expected.keys()
    assert [list(line.get_xdata()) for line in curves.values()] == [[1, 4, 8]] * 3
    for label, values in expected.items():
        assert curves[label].get_ydata() == pytest.approx(values)
    (row,) = [cells for line in out.splitlines() if (cells := line.replace("\u2502", " ").split())[:2] == ["4", "4"]]
    assert row[2:5] == [f"{seconds[1]:.4g}", f"{speedup[1]:.3g}", f"{speedup[1] / 4:.0%}"]


def test_any_distribution_can_be_asked_for(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    times = []
    for place in ("4,4,0", "4,0,4"):
        status, out, _ = run(capsys, str(files[0]), "--hardware", str(files[1]), "--distribution", place, "--json")
        assert status == 0
        times.append(json.loads(out)["execution_time"][0])
    assert times[1] > 1.5 * times[0]


def test_reports_of_mpip_say_what_a_table_would(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = []
    for processes in (2, 4, 8):
        reports.append(tmp_path / f"ring.{processes}.mpiP")
        reports[-1].write_text(mpip(processes))
    status, out, _ = run(capsys, *map(str, reports), "--hardware", str(files[1]), "--processes", "8", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["execution_time"][0] == pytest.approx(2.12, rel=0.02)
    # 100 to the neighbours, and log2 n for each of the 10 reductions
    assert document["sends"] == "14.43 ln n +100"


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("hello", "does not start with '@ mpiP'"),
        ("@ mpiP\n", "section 'MPI Time' is missing"),
        (mpip(2).replace("Isend", "Irecv").replace("1e+05", "0").replace(" 8 8 8", " 0 0 0"), "has no message"),
        (mpip(2).replace("8.12", "fast"), "'fast 0.02', expected numbers"),
        (mpip(2).replace("8.12", "0.01"), "waiting_time is 0.02"),
    ],
)
def test_a_bad_report_gets_one_clear_line(
    report: str, message: str, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.mpiP"
    path.write_text(report)
    assert message in refusal(run(capsys, str(path), "--hardware", str(files[1])))


@pytest.mark.parametrize(
    ("profiles", "hardware", "options", "message"),
    [
        (PROFILES.replace("sends", "calls"), HARDWARE, [], "column sends missing"),
        (PROFILES.replace("8.12", "-8"), HARDWARE, [], "row 2: execution_time is -8"),
        (PROFILES.replace("8.12", "long"), HARDWARE, [], "row 2: execution_time is 'long', expected a number"),
        (PROFILES.replace("2,100,", "2,1e-320,"), HARDWARE, [], "row 2: sends is 1e-320, expected a number from 1e-"),
        (PROFILES.replace("8.12", "1e308"), HARDWARE, [], "row 2: execution_time is 1e+308, expected a number from 1e"),
        (PROFILES, HARDWARE.replace("0.5", "1e-320"), [], "speed of server slow is 1e-320, expected a number from 1e-"),
        (PROFILES.rsplit("\n", 2)[0], HARDWARE, [], "2 profiles, expected at least 3"),
        (PROFILES, HARDWARE.replace("8e-9", "-1"), [], "word_time is -1, expected greater than or equal to 0"),
        (PROFILES, HARDWARE + "memory = 4", [], "server[1].memory is not a known key"),
        (PROFILES, "word_time = 1", [], "server is missing"),
        (PROFILES, "= 1", [], "is not valid TOML"),
        (PROFILES, HARDWARE, ["--processes", "0,2"], "--processes is 0,2, expected whole numbers from 1"),
        (PROFILES, HARDWARE, ["--processes", "two"], "--processes is two"),
        (PROFILES, HARDWARE, ["--distribution", "1,1"], "over 2 servers, expected one number for each of 3"),
        (PROFILES, HARDWARE, ["--processes", "200000"], "200000 processes, expected at most"),
    ],
)
def test_bad_input_gets_one_clear_line(
    profiles: str,
    hardware: str,
    options: list[str],
    message: str,
    files: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files[0].write_text(profiles)
    files[1].write_text(hardware)
    assert message in refusal(run(capsys, str(files[0]), "--hardware", str(files[1]), *options))


@pytest.mark.parametrize(("call", "messages"), [("Alltoall", 7.0), ("Allreduce", 3.0), ("Send", 1.0)])
def test_a_collective_call_counts_as_the_messages_that_its_algorithm_sends(
    tmp_path: Path, call: str, messages: float
) -> None:
    path = tmp_path / "ring.8.mpiP"
    path.write_text(mpip(8).replace("Allreduce", call.ljust(9)))
    assert read_mpip(path).profile.sends == pytest.approx(100.0 + 10.0 * messages)
