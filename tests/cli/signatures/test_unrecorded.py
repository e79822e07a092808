"""What traces lack, told by each verb that makes something of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import status_of

from metasched.records import Run
from metasched.store.files.runs import write_runs
from tests.cli.signatures.test_counted import ENTRY, recorded

LOST = "calls: 6 of MPI_Put, 2 of MPI_Allreduce by other threads"


def called(*words: str) -> int:
    return status_of("signature", *words)


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures of runs on 4, 8 and 16 processes; of the second one two processes made calls that it lacks."""
    monkeypatch.chdir(tmp_path)
    for count in (4, 8, 16):
        folder = Path(recorded(count, "perf"))
        for rank in range(2 if count == 8 else 0):
            text = (folder / f"rank-{rank}").read_text(encoding="ascii")
            lost = "unrecorded 3 MPI_Put\nunrecorded 1 MPI_Allreduce by other threads\nend\n"
            (folder / f"rank-{rank}").write_text(text.replace("end\n", lost), encoding="ascii")
        assert called("extract", str(folder), "-o", f"{count}.json") == 0


def test_extract_tells_them_and_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert called("extract", "perf-8", "-o", "8.json", "--json") == 0
    told = capsys.readouterr()
    assert f"warning: the trace lacks {LOST}\n" in told.err
    assert json.loads(told.out)["unrecorded"] == {"MPI_Put": 6, "MPI_Allreduce by other threads": 2}
    assert called("extract", "perf-4", "-o", "4.json", "--json") == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["unrecorded"], told.err) == ({}, "")


def test_fit_and_predict_tell_them_with_their_run(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert called("fit", "4.json", "8.json", "16.json", "-o", "app.json") == 0
    assert f"warning: the trace of 8 processes lacks {LOST}\n" in capsys.readouterr().err
    assert called("fit", "4.json", "8.json", "16.json", "-o", "app.json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["unrecorded"] == {
        "8": {"MPI_Put": 6, "MPI_Allreduce by other threads": 2}
    }
    Path("made.toml").write_text(ENTRY, encoding="utf-8")
    assert called("predict", "app.json", "--processes", "32", "--hardware", "made.toml", "--json") == 0
    assert f"the trace of 8 processes lacks {LOST}" in json.loads(capsys.readouterr().out)["warnings"]


def test_marks_are_made_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    Path("campaign").mkdir()
    write_runs("campaign/runs.csv", [Run("a", "c", 100.0, 8, 0.9, 95.0, 1.0)])
    capsys.readouterr()
    assert called("mark", "perf-8", "campaign") == 0
    assert f"warning: the trace lacks {LOST}\n" in capsys.readouterr().err


def test_another_problem_size_lacks_as_much_as_the_runs(capsys: pytest.CaptureFixture[str]) -> None:
    sized = []
    for size in (100, 200):
        sized.append(f"{size}.json")
        assert called("extract", "perf-8", "-o", sized[-1], "--problem-size", str(size)) == 0
    capsys.readouterr()
    assert called("resize", *sized, "--problem-size", "150", "-o", "150.json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [f"the trace of a run lacks {LOST}"]
    made = json.loads(Path("150.json").read_text(encoding="utf-8"))
    assert made["unrecorded"] == {"MPI_Put": 6, "MPI_Allreduce by other threads": 2}


@pytest.mark.parametrize("wrong", [[], {"MPI_Put": 0}, {"MPI_Put": "3"}, {"\x1b[2J": 1}, {"MPI_Put": 1e99}])
def test_numbers_of_another_form_are_refused(wrong: object, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(Path("8.json").read_text(encoding="utf-8"))
    Path("8.json").write_text(json.dumps(document | {"unrecorded": wrong}), encoding="utf-8")
    capsys.readouterr()
    assert called("fit", "4.json", "8.json", "16.json", "-o", "app.json") == 2
    assert "8.json: unrecorded is expected to hold numbers of calls by name" in capsys.readouterr().err
    assert not Path("app.json").exists()
