"""The recorder's surroundings: what the launched program finds in its environment, and which ends are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metasched.records import InputError
from metasched.tracing import recording
from metasched.tracing.recording import HEADERS, SOURCE, VALGRIND, Instructions, record, recorder
from tests.tracing.programs import calls, compiler, script

SHOW = 'printf "%s|" "$METASCHED_INSTRUCTIONS" "$LD_PRELOAD" "$VALGRIND_OPTS" >"$METASCHED_TRACE/rank-0"'


@pytest.fixture
def cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.delenv("VALGRIND_OPTS", raising=False)
    return compiler(tmp_path)


def launcher(tmp_path: Path, *lines: str) -> str:
    return script(tmp_path / "launch", *lines)


def test_the_recorder_is_a_library_of_its_source_and_headers(cc: str) -> None:
    assert all(each.is_file() for each in HEADERS)
    made = recorder(cc, ["-DX"])
    assert made.suffix == ".so"
    assert made.read_text(encoding="utf-8").splitlines()[:5] == ["-shared", "-fPIC", "-O2", "-DX", str(SOURCE)]


@pytest.mark.parametrize("how", [Instructions.auto, Instructions.perf, Instructions.time])
def test_the_program_finds_the_recorder_the_folder_and_the_way_of_counting(how: str, cc: str, tmp_path: Path) -> None:
    to = tmp_path / "a" / "trace"
    assert record([launcher(tmp_path, SHOW, "exit 7")], to, cc, Instructions(how)) == 7
    own = str(recorder(cc))
    assert (to / "rank-0").read_text(encoding="utf-8") == f"{how}|{own}||"


def test_what_a_recording_that_is_given_up_had_recorded_is_removed(
    cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object, **options: Any) -> None:
        Path(options["env"]["METASCHED_TRACE"], "rank-0").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "launched", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record([launcher(tmp_path)], tmp_path / "trace", cc)
    assert not (tmp_path / "trace").exists()


def test_instructions_are_counted_as_they_can_be_if_nothing_else_is_asked_for(cc: str, tmp_path: Path) -> None:
    record([launcher(tmp_path, SHOW)], tmp_path / "trace", cc)
    assert (tmp_path / "trace" / "rank-0").read_text(encoding="utf-8").startswith("auto|")


def test_other_libraries_and_options_of_valgrind_stay(cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALGRIND_OPTS", "--quiet")
    words = ["env", "LD_PRELOAD=", launcher(tmp_path, SHOW.replace("$LD_PRELOAD", "$1"))]
    record(words, tmp_path / "trace", cc, Instructions.valgrind, ["-DX"])
    found = (tmp_path / "trace" / "rank-0").read_text(encoding="utf-8")
    assert found == f"valgrind||{' '.join(['--quiet', *VALGRIND])}|"
    assert recorder(cc, ["-DX", "-DWITH_VALGRIND"]).read_text(encoding="utf-8").splitlines()[3:5] == [
        "-DX", "-DWITH_VALGRIND",
    ]  # fmt: skip
    assert calls(tmp_path) == 1


def test_an_earlier_preloaded_library_comes_after_the_recorder(
    cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "")
    record([launcher(tmp_path, SHOW)], tmp_path / "one", cc)
    assert (tmp_path / "one" / "rank-0").read_text(encoding="utf-8") == f"auto|{recorder(cc)}||"
    monkeypatch.setenv("LD_PRELOAD", "/none.so")
    record([launcher(tmp_path, SHOW)], tmp_path / "two", cc)
    assert (tmp_path / "two" / "rank-0").read_text(encoding="utf-8") == f"auto|{recorder(cc)} /none.so||"


def test_what_processes_left_half_done_is_removed(cc: str, tmp_path: Path) -> None:
    left = "touch rank-0 rank-1 .rank-2.part .valgrind-17"
    record([launcher(tmp_path, f'cd "$METASCHED_TRACE" && {left}')], tmp_path / "trace", cc)
    assert sorted(each.name for each in (tmp_path / "trace").iterdir()) == ["rank-0", "rank-1"]


def test_a_folder_that_is_empty_is_taken_and_one_with_files_or_a_file_is_refused(cc: str, tmp_path: Path) -> None:
    words, full, file = [launcher(tmp_path, SHOW)], tmp_path / "full", tmp_path / "file"
    (tmp_path / "empty").mkdir()
    assert record(words, tmp_path / "empty", cc) == 0
    full.mkdir()
    (full / "mine").touch()
    file.touch()
    for each in (full, file):
        with pytest.raises(InputError) as refusal:
            record(words, each, cc)
        assert str(refusal.value) == f"{each}: is there and not an empty folder"
    assert [each.name for each in full.iterdir()] == ["mine"]


def test_a_launcher_that_is_missing_is_told_before_anything_is_made(cc: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        record(["no-mpirun"], tmp_path / "trace", cc)
    assert str(refusal.value) == "no-mpirun is not installed, expected the command that starts MPI programs"
    assert not (tmp_path / "trace").exists()


def test_a_process_that_could_not_be_recorded_gives_its_reason_and_nothing_stays(cc: str, tmp_path: Path) -> None:
    said = 'cd "$METASCHED_TRACE" && touch rank-0 && echo "no counter " >refused'
    with pytest.raises(InputError) as refusal:
        record([launcher(tmp_path, said)], tmp_path / "trace", cc)
    assert str(refusal.value) == "no counter"
    assert not (tmp_path / "trace").exists()


def test_a_program_that_starts_no_mpi_is_told_with_its_status(cc: str, tmp_path: Path) -> None:
    own = launcher(tmp_path, "exit 5")
    with pytest.raises(InputError) as refusal:
        record([own], tmp_path / "trace", cc)
    assert str(refusal.value) == (
        f"no process was recorded, and {own} ended with status 5, expected a launcher that works and a program that "
        f"calls MPI_Init, built with the MPI of {cc}"
    )
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["my cache", "a:b"])
def test_a_cache_that_no_library_can_be_preloaded_from_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    with pytest.raises(InputError, match=r"holds a blank or a colon, expected a folder .*: set XDG_CACHE_HOME"):
        record(["mpirun", "./app"], tmp_path / "trace")
    assert not any(tmp_path.iterdir())
