"""The synthetic signature under real launchers: OpenMPI, and SMPI on hosts of a simulated cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import call, status_of

from benchmarks.signature.machine import write_machine
from benchmarks.signature.truth import truth
from tests.pages import ROOT
from tests.system.real_mpi import MPIRUN, allow_root

pytestmark = pytest.mark.system
SIGNATURES = [str(ROOT / f"examples/signature/box-{n}.json") for n in (16, 32, 64)]
openmpi = pytest.mark.skipif(not shutil.which("mpicc") or not shutil.which("mpirun"), reason="MPI is not installed")
simulated = pytest.mark.skipif(not shutil.which("smpirun"), reason="SimGrid is not installed")


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_root(monkeypatch)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("signature") / "box.json"
    status_of("signature", "fit", *SIGNATURES, "-o", str(path))
    return str(path)


def ran(words: list[str], launcher: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    return call(capsys, "signature", "run", *words, "--", *launcher)


@simulated
def test_few_hosts_tell_the_time_on_many(application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    platform, hosts = write_machine(tmp_path, 16)
    launcher = ["smpirun", "-np", "16", "-platform", str(platform), "-hostfile", str(hosts)]
    launcher += ["--cfg=smpi/simulate-computation:no"]
    path = str(tmp_path / "result.json")
    words = [application, "--processes", "128", "--cores", "16", "-o", path, "--json"]
    status, out, err = ran(words, launcher, capsys)
    assert status == 0, err
    told = json.loads(out)
    assert told["execution_time"] == pytest.approx(truth()["box"][128], rel=0.05)
    assert told["core_seconds"] == pytest.approx(16 * told["synthetic_time"])
    assert told["cost"] == pytest.approx(told["core_seconds"] / (told["processes"] * told["execution_time"]))
    assert (told["hosts"], told["measured_kinds"]) == (16, told["kinds"])
    out = call(capsys, "signature", "predict", application, "--processes", "128", "--synthetic", path, "--json")[1]
    (found,) = json.loads(out)["predictions"]
    assert found["engine"] == "synthetic"
    assert found["execution_time"] == pytest.approx(told["execution_time"])


@openmpi
def test_it_runs_on_this_machine(application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [application, "--processes", "128", "--cores", "6", "-o", str(tmp_path / "result.json"), "--json"]
    status, out, err = ran(words, [*MPIRUN, "-np", "6"], capsys)
    assert status == 0, err
    told = json.loads(out)
    assert told["execution_time"] > 6e8 * 12 / 128 / 1e9
    assert [*tmp_path.iterdir()] == [tmp_path / "result.json"]


@openmpi
@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ([*MPIRUN, "-np", "4"], "the launcher started 4 processes, expected 6 (--cores)"),
        (["false"], "false ended with status 1"),
        (["no-such-launcher"], "no-such-launcher is not installed"),
    ],
)
def test_a_launcher_that_fails_is_told_in_a_line(
    application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], launcher: list[str], expected: str
) -> None:
    words = [application, "--processes", "128", "--cores", "6", "-o", str(tmp_path / "result.json")]
    status, _, err = ran(words, launcher, capsys)
    assert status == 2
    assert expected in err.replace("\n", " ")
    assert [*tmp_path.iterdir()] == []
