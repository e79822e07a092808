"""``metasched signature predict`` and ``plot`` from the command line: answers, and one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metasched.cli.app import main
from tests.pages import ROOT

SIGNATURES = [str(ROOT / f"examples/signature/box-{n}.json") for n in (16, 32, 64)]
MACHINE = str(ROOT / "benchmarks/signature/machine.toml")


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("signature") / "box.json"
    with pytest.raises(SystemExit):
        main(["signature", "fit", *SIGNATURES, "-o", str(path)])
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["signature", *words])
    told = capsys.readouterr()
    return int(end.value.code or 0), told.out, told.err


def test_predictions_hold_what_is_promised(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("predict", application, "--processes", "128,256", "--hardware", MACHINE, "--json")
    status, out, _ = answer(capsys, *words)
    found = json.loads(out)["predictions"]
    assert status == 0
    assert [each["processes"] for each in found] == [128, 256]
    first = found[0]
    assert {*first} >= {"processes", "execution_time", "interval", "engine", "phases"}
    assert {*first["phases"][0]} == {"phase", "weight", "time", "computation", "communication"}
    assert first["interval"]["low"] < first["execution_time"] < first["interval"]["high"]


def test_a_picture_and_its_curves_are_made(
    application: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "box.png"
    words = ("plot", application, "--processes", "128,256", "--hardware", MACHINE, "-o", str(picture), "--json")
    status, out, _ = answer(capsys, *words)
    curves = json.loads(out)
    assert status == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert curves["processes"] == [16, 32, 64, 128, 256]
    assert curves["speedup"][0] == pytest.approx(16, rel=0.02)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--processes", "12x", "--hardware", MACHINE), "--processes is 12x, expected whole numbers above 0"),
        (("--processes", "000000001" + 12 * "9", "--hardware", MACHINE), "expected whole numbers above 0"),
        (("--processes", "128"), "give either --hardware or --platform"),
        (("--processes", "128", "--hardware", MACHINE, "--relevant"), "belong to --platform"),
        (("--processes", "128", "--hardware", "nothing"), "there is no hardware 'nothing'"),
        (("--processes", "128", "--hardware", "xeon-e5-1620"), "give --network"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    application: str, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = answer(capsys, "predict", application, *words)
    assert status == 2
    assert told in err.replace("\n", " ")
    assert "Traceback" not in err
