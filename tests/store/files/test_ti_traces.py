"""Time-independent traces of SimGrid: what is read and written, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.records import InputError
from metasched.store.files import ti_traces
from metasched.store.files.ti_traces import LARGEST, LONGEST, read_ti_trace, write_ti_trace

WHOLE = "0 init\n0 compute 1e6\n0 finalize\n1 init\n1 finalize\n"


def actions(path: Path) -> list[list[str]]:
    trace = read_ti_trace(path)
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


EVERY = [["init", "compute 1e+06", "finalize"], ["init", "finalize"]]


@pytest.mark.parametrize(
    "text", [WHOLE, WHOLE.replace("\n", "\n\n"), f"\n \n{WHOLE}", WHOLE.rstrip("\n"), f"{WHOLE} \n"]
)
def test_blank_lines_and_a_missing_end_of_line_change_nothing(tmp_path: Path, text: str) -> None:
    assert actions(written(tmp_path / "t", text)) == EVERY


def test_a_list_of_files_is_read_from_beside_it_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "t.ti_files").mkdir(parents=True)
    written(folder / "a.txt", "0 init\n0 compute 1e6\n0 finalize\n")
    written(folder / "t.ti_files" / "b.txt", "1 init\n1 finalize\n")
    written(tmp_path / "outside.txt", "1 init\n1 finalize\n")
    assert actions(written(folder / "t.ti", "a.txt\n\n/elsewhere/b.txt\n")) == EVERY
    for name in ("../outside.txt", str(tmp_path / "outside.txt"), "t.ti", "none.txt", "t.ti_files"):
        with pytest.raises(InputError) as refused:
            read_ti_trace(written(folder / "t.ti", f"a.txt\n{name}\n"))
        assert str(refused.value) == f"{folder}/t.ti, row 2: {name[:80]!r} is no file beside the trace"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "{path}: holds no action, expected a time-independent trace of SimGrid"),
        (" \n\n", "{path}: holds no action, expected a time-independent trace of SimGrid"),
        ("0 init\nx init\n", "{path}, row 2: rank is 'x', expected a number from 0 to 65535"),
        ("0 init\n01 init\n", "{path}, row 2: rank is '01', expected a number from 0 to 65535"),
        ("0 init\n65536 init\n", "{path}, row 2: rank is '65536', expected a number from 0 to 65535"),
        ("0 init\n0\n", "{path}, row 2: action is '', expected a name and numbers"),
        ("0 init\n0 9 init\n", "{path}, row 2: action is '9 init', expected a name and numbers"),
        (f"0 init\n0 {'a' * 41}\n", f"{{path}}, row 2: action is '{'a' * 40}', expected a name and numbers"),
        ("0 init\n0 compute much\n", "{path}, row 2: 'much' is no number of at most 1e+18"),
        ("0 init\n0 compute nan\n", "{path}, row 2: 'nan' is no number of at most 1e+18"),
        ("0 init\n0 compute 1.1e18\n", "{path}, row 2: '1.1e18' is no number of at most 1e+18"),
        (f"0 init\n0 compute {2 * 10**18}\n", f"{{path}}, row 2: '{2 * 10**18}' is no number of at most 1e+18"),
        (f"0 init\n0 compute 1{'0' * 5000}\n", f"{{path}}, row 2: '1{'0' * 39}' is no number of at most 1e+18"),
        ("0 init\n2 init\n", "{path}: process 1 of 2 or more is missing"),
        ("0 init\n0 finalize\n1 init\n", "{path}: process 1 is cut short: it ends with init, not finalize"),
        ("0 send 1 0 8 -1\n", "{path}: 'send 1 0 8 -1' names rank 1, expected one of 1 processes"),
        ("0 compute -1\n", "{path}: 'compute -1' has an amount below 0, expected none or more"),
        ("0 ïnit\n", "{path}: is not plain text, expected a time-independent trace of SimGrid"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_row(tmp_path: Path, text: str, line: str) -> None:
    path = written(tmp_path / "t", text)
    with pytest.raises(InputError) as refused:
        read_ti_trace(path)
    assert str(refused.value) == line.format(path=path)


@pytest.mark.parametrize("number", ["-0", "1", "1.5", "1e18", "1e-3", str(int(LARGEST)), "000000000000000000000001"])
def test_numbers_stay_what_they_are(tmp_path: Path, number: str) -> None:
    trace = read_ti_trace(written(tmp_path / "t", f"0 recv 0 {number} 8\n".replace("recv 0", "noted")))
    assert trace.table.numbers[0][0] == float(number)


def test_limits_are_reached_and_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "0 init\n"
    monkeypatch.setattr(ti_traces, "MOST_EVENTS", 3)
    assert len(actions(written(tmp_path / "t", name * 3))[0]) == 3
    with pytest.raises(InputError, match=r": holds more than 3 actions$"):
        read_ti_trace(written(tmp_path / "t", name * 4))
    monkeypatch.setattr(ti_traces, "MOST_PROCESSES", 2)
    written(tmp_path / "a", "0 init\n")
    written(tmp_path / "b", "1 init\n")
    assert len(actions(written(tmp_path / "t", "a\nb\n"))) == 2
    with pytest.raises(InputError, match=r": lists more than 2 files$"):
        read_ti_trace(written(tmp_path / "t", "a\nb\n\n"))
    longest = "0 compute " + "1" * (LONGEST - 8)
    with pytest.raises(InputError, match=r"row 1: '1{40}' is no number"):
        read_ti_trace(written(tmp_path / "t", f"{longest}\n"))
    with pytest.raises(InputError, match=f"row 1: has {LONGEST + 1} bytes, expected at most {LONGEST}$"):
        read_ti_trace(written(tmp_path / "t", f"{longest}1\n"))
    with pytest.raises(InputError, match=f": has a line of more than {LONGEST} bytes$"):
        read_ti_trace(written(tmp_path / "t", "0 " + "1" * (LONGEST - 1)))


def test_what_is_written_is_read_again_and_replaces_an_earlier_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.ti"
    write_ti_trace(path, [["init", "compute 7"], [], ["init"]])
    write_ti_trace(path, EVERY)
    assert actions(path) == EVERY
    assert path.read_text() == "t.ti_files/0_rank-1.txt\nt.ti_files/0_rank-2.txt\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t.ti", "t.ti_files"]
    assert (tmp_path / "t.ti_files").stat().st_mode & 0o777 == 0o755
    write_ti_trace(path, [[]])
    assert (tmp_path / "t.ti_files" / "0_rank-1.txt").read_text() == ""


def test_nothing_of_others_is_written_over(tmp_path: Path) -> None:
    path, folder = tmp_path / "t.ti", tmp_path / "t.ti_files"
    folder.mkdir()
    own = written(folder / "0_rank-1.txt", "")
    others = [written(folder / name, "mine") for name in ("notes.txt", "0_rank-1.txt.bak", "x0_rank-1.txt")]
    for other in others:
        for each in others:
            each.unlink(missing_ok=True)
        written(other, "mine")
        with pytest.raises(InputError) as refused:
            write_ti_trace(path, EVERY)
        assert str(refused.value) == f"{path}: t.ti_files exists and holds files that are not of a trace"
        assert (other.read_text(), own.exists(), path.exists()) == ("mine", True, False)
        other.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"is a directory, expected a file$"):
        write_ti_trace(path, EVERY)
    with pytest.raises(InputError, match=r"none/t\.ti: cannot be written: no such file or directory$"):
        write_ti_trace(tmp_path / "none" / "t.ti", EVERY)


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> list[str]:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_ti_trace(tmp_path / "t.ti", (failing() for _ in range(2)))
    assert list(tmp_path.iterdir()) == []
