from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal

from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.surface import execution_time

APPLICATION = """
name = "demo"
[[phase]]
io = "bus"
parallel_computation = 8.0
communication_transfer = 0.5
contention = 0.4
dimensions = 2
"""


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    return call(capsys, "surface", *argv)


def test_surface_prints_times_and_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "demo.toml", tmp_path / "demo.png"
    file.write_text(APPLICATION)
    options = ["--processors", "1,4", "--disks", "1,2", "-o", str(picture), "--json"]
    status, out, _ = run(capsys, str(file), *options)
    document = json.loads(out)
    phase = Phase(8.0, communication_transfer=0.5, contention=0.4, dimensions=2, io="bus")
    assert status == 0
    assert document["execution_time"] == pytest.approx(
        execution_time(Application("demo", (phase,)), [[1], [4]], [1, 2])
    )
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_observations_give_parameters_with_their_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, observed = tmp_path / "demo.toml", tmp_path / "observed.csv"
    file.write_text(APPLICATION)
    truth = Phase(4.0, 0.2, communication_transfer=1.5, contention=0.7, io_transfer=1.0, dimensions=2, io="bus")
    p, d = (axis.ravel() for axis in np.meshgrid([1, 2, 4, 8, 16], [1, 2]))
    rows = zip(p, d, execution_time(Application("demo", (truth,)), p, d), strict=True)
    observed.write_text("processors,disks,execution_time\n" + "".join(f"{p},{d},{t}\n" for p, d, t in rows))
    status, out, _ = run(capsys, str(file), "--observed", str(observed), "--json")
    fit = json.loads(out)["fit"]
    assert status == 0
    assert fit["parameters"]["contention"] == pytest.approx(0.7, rel=0.01)
    assert fit["standard_error"]["contention"] < 0.01


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[phase]]\nparallel_computation = -1", "phase 1: parallel_computation is -1"),
        ("[[phase]]\nparallel_computation = 'x'", "phase 1: parallel_computation is 'x'"),
        ("[[phase]]\nserial_computation = 1.0", "phase 1: parallel_computation is missing"),
        ("[[phase]]\nparallel_computation = 1\nspeed = 2", "phase 1: has the key speed"),
        ("[[phase]]\nparallel_computation = 1\nio = 'raid'", "phase 1: io is 'raid'"),
        ("phase = 3", "no [[phase]]"),
        ("phase = [3]", "phase 1: is 3"),
        ("nome = 'x'", "has the key nome"),
        ("= 3", "is not valid TOML"),
    ],
)
def test_a_bad_application_gets_one_clear_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert message in refusal(run(capsys, str(file)))


@pytest.mark.parametrize("reference", ["0", "-1", "inf", "nan"])
def test_a_reference_time_is_above_zero(reference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(APPLICATION)
    assert f"--reference is {reference}, expected a number of seconds above 0" in refusal(
        run(capsys, str(file), "--reference", reference)
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("processors,time\n1,1\n", "column disks missing"),
        ("processors,disks\n1,1\n", "expected one of the columns"),
        ("processors,disks,execution_time,speedup\n1,1,1,1\n", "expected one of the columns"),
        ("processors,disks,speedup\n1,1,fast\n", "row 2: speedup is 'fast', expected a number"),
        ("processors,disks,speedup\n1,1,-1\n", "row 2: speedup is -1.0, expected a finite number above 0"),
        ("processors,disks,speedup\n1,0,1\n", "row 2: disks is 0.0, expected a finite number above 0"),
        ("processors,disks,speedup\n1,1,1\ninf,1,1\n", "row 3: processors is inf, expected a finite number"),
        ("processors,disks,speedup\n1,1,nan\n", "row 2: speedup is nan, expected a finite number"),
        ("processors,disks,speedup\n", "has no rows"),
        ("processors,disks,speedup\n1,1,1\n", "1 observations, expected at least 7"),
    ],
)
def test_a_bad_surface_gets_one_clear_line(
    rows: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, observed = tmp_path / "demo.toml", tmp_path / "observed.csv"
    file.write_text(APPLICATION)
    observed.write_text(rows)
    assert message in refusal(run(capsys, str(file), "--observed", str(observed)))
