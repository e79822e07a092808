"""Campaign files: what is written reads back, and each thing wrong with a file is named by row and column."""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.records import InputError, Run
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.loads import Loads, read_loads
from metasched.store.files.runs import read_runs, write_runs
from metasched.store.files.whole_files import write_text_atomically

HEADER = (
    "application,cluster,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,"
    "execution_time,start_time,nodes,phase"
)
COLUMNS = HEADER.split(",")
GOOD = "cg,c8,1400,4,0.8,93.5,12.25,100,n0 n1,train"
LOADS = "time,node,available_cpu,available_bandwidth\n"

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(
    lambda text: text == text.strip() and text.splitlines() == [text]
)
positive = st.floats(1e-300, 1e300)
runs_strategy = st.builds(
    Run,
    application=names,
    cluster=names,
    problem_size=positive,
    processors=st.integers(1, 10**6),
    min_avg_avail_cpu=st.just(math.nan) | st.floats(1e-9, 1.0),
    min_avg_avail_bw=st.just(math.nan) | positive,
    execution_time=positive,
    start_time=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    nodes=st.lists(st.from_regex(r"[a-z0-9-]{1,12}", fullmatch=True)).map(tuple),
    phase=st.sampled_from([None, "train", "predict"]),
    extra=st.dictionaries(st.sampled_from(["job", "flops", "a,b", 'quo"te']), names).map(MappingProxyType),
)


def write(folder: Path, text: str, name: str = "runs.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@given(runs=st.lists(runs_strategy, min_size=1, max_size=8, unique_by=lambda run: run.execution_time))
def test_runs_written_read_back_the_same(tmp_path_factory: pytest.TempPathFactory, runs: list[Run]) -> None:
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    write_runs(path, runs)
    back = read_runs(path)
    # NaN equals nothing, not even itself, but is spelled alike.
    assert [repr(replace(run, extra={})) for run in back] == [repr(replace(run, extra={})) for run in runs]
    assert [dict(run.extra) for run in back] == [dict(run.extra) for run in runs]


def test_the_names_of_very_many_nodes_are_read_back(tmp_path: Path) -> None:
    run = Run("cg", "c8", 9.0, 4, 1.0, 9.0, 2.0, 5.0, tuple(f"node{number:05}" for number in range(20_000)))
    write_runs(tmp_path / "runs.csv", [run])
    assert read_runs(tmp_path / "runs.csv") == (run,)


def test_further_columns_are_kept_and_column_order_is_free(tmp_path: Path) -> None:
    path = write(tmp_path, f"job,{HEADER}\n77,{GOOD}\n\n78,{GOOD}\n")
    first, second = read_runs(path)
    assert first.extra["job"] == "77"
    assert second.nodes == ("n0", "n1")


def test_the_columns_of_jobs_as_they_are_are_kept_and_minima_may_be_unmeasured(tmp_path: Path) -> None:
    fields = {
        "processes_per_node": "4", "threads": "2", "parameter:steps": "100", "parameter:solver": "amg", "user": "ann",
        "energy": "5400.5", "energy_covers": "node", "frequency": "2400",
    }  # fmt: skip
    unmeasured = GOOD.replace("0.8,93.5", ",")
    path = write(tmp_path, f"{HEADER},{','.join(fields)}\n{unmeasured},{','.join(fields.values())}\n{GOOD},,,,,,,,\n")
    run, plain = read_runs(path)
    assert dict(run.extra) == fields
    assert dict(plain.extra) == {}
    assert math.isnan(run.min_avg_avail_cpu)
    assert math.isnan(run.min_avg_avail_bw)
    assert (run.request.available_cpu, run.request.available_bandwidth) == (1.0, 1000.0)
    assert (plain.request.available_cpu, plain.request.available_bandwidth) == (0.8, 93.5)


def test_a_word_among_the_numbers_of_a_parameter_is_refused_by_its_row(tmp_path: Path) -> None:
    values = ["100", "many", "200", "jacobi", "amg", "7"]  # a number among words is a word
    rows = [f"{GOOD},{steps},{solver}" for steps, solver in zip(values[:3], values[3:], strict=True)]
    text = "\n".join([f"{HEADER},parameter:steps,parameter:solver", *rows, ""])
    with pytest.raises(InputError, match=r"row 3: parameter:steps is 'many', expected a number, as in other rows"):
        read_runs(write(tmp_path, text))
    assert len(read_runs(write(tmp_path, text.replace("many", "300")))) == 3


def test_optional_columns_may_be_missing_and_spreadsheet_habits_are_understood(tmp_path: Path) -> None:
    header = ",".join(HEADER.split(",")[:7])
    path = write(tmp_path, f"\ufeff{header}\r\ncg,c8,1.4e3, 4.0 ,0.8,93.5,12.25\r\n")
    assert read_runs(path) == (Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25),)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("problem_size", "abc", "problem_size is 'abc', expected a number"),
        ("problem_size", "0", "problem_size is 0.0"),
        ("problem_size", "1_000", "problem_size is '1_000'"),
        ("processors", "-2", "processors is -2"),
        ("processors", "2.5", "processors is 2.5, expected a whole number"),
        ("processors", "inf", "processors is inf, expected a whole number"),
        ("min_avg_avail_cpu", "0", "min_avg_avail_cpu is 0.0, expected a fraction in (0, 1]"),
        ("min_avg_avail_cpu", "1.01", "min_avg_avail_cpu is 1.01"),
        ("min_avg_avail_bw", "0", "min_avg_avail_bw is 0.0"),
        ("min_avg_avail_bw", "nan", "min_avg_avail_bw is nan, expected a number, or an empty cell"),
        ("processes_per_node", "0", "processes_per_node is 0.0, expected a whole number of at least 1"),
        ("threads", "1.5", "threads is 1.5, expected a whole number of at least 1"),
        ("threads", "two", "threads is 'two', expected a number"),
        ("energy", "-3", "energy is -3.0, expected a finite number above 0"),
        ("energy", "0", "energy is 0.0, expected a finite number above 0"),
        ("energy", "5 kJ", "energy is '5 kJ', expected a number"),
        ("energy_covers", "node" * 20, "energy_covers is 'nodenode"),
        ("frequency", "inf", "frequency is inf, expected MHz from 10 to 100000"),
        ("frequency", "2.4", "frequency is 2.4, expected MHz from 10 to 100000"),
        ("frequency", "2400000000", "frequency is 2.4e+09, expected MHz from 10 to 100000"),
        ("execution_time", "nan", "execution_time is nan"),
        ("execution_time", "0", "execution_time is 0.0"),
        ("start_time", "inf", "start_time is inf"),
        ("phase", "test", "phase is 'test', expected train or predict"),
        ("application", "", "application is empty"),
    ],
)
def test_a_bad_cell_is_named_by_row_and_column(tmp_path: Path, column: str, cell: str, message: str) -> None:
    cells = dict(zip(COLUMNS, GOOD.split(","), strict=True)) | {column: cell}
    good = GOOD + "," * (len(cells) - len(COLUMNS))
    path = write(tmp_path, f"{','.join(cells)}\n{good}\n{','.join(cells.values())}\n")
    with pytest.raises(InputError) as caught:
        read_runs(path)
    assert f"{path}, row 3: {message}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEADER + "\n", "holds a header and no runs"),
        (
            HEADER.replace("execution_time,", "") + "\n",
            "phase; expected problem_size, processors, execution_time",
        ),
        (HEADER + ",phase\n", "row 1: column phase is given twice"),
        (f"{HEADER}\n{GOOD}\n{GOOD}\n", "row 3: is the same run as row 2"),
        (f"{HEADER}\n{GOOD},more\n", "row 2: has 11 cells, expected 10"),
        (f"{HEADER}\n{GOOD}\ncg,c8\n", "row 3: has 2 cells, expected 10"),
        (f'{HEADER}\n"{GOOD}\n', "row 2: is not CSV"),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_runs(write(tmp_path, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("header", "row"), [("", ""), (",min_avg_avail_cpu,min_avg_avail_bw", ",1,1000"), (",start_time", ",")]
)
def test_equal_rows_on_idle_nodes_without_a_start_are_repetitions(tmp_path: Path, header: str, row: str) -> None:
    text = f"problem_size,processors,execution_time{header}\n1400,4,12{row}\n1400,4,12{row}\n"
    assert len(read_runs(write(tmp_path, text))) == 2


@pytest.mark.parametrize(
    ("column", "expected"),
    [("Threads", "threads"), ("Parameter:nX", "parameter:nX"), ("USER", "user"), ("Energy_Covers", "energy_covers")],
)
def test_a_column_in_capitals_that_would_be_passed_over_is_refused(tmp_path: Path, column: str, expected: str) -> None:
    path = write(tmp_path, f"{HEADER},{column}\n{GOOD},2\n")
    with pytest.raises(InputError) as caught:
        read_runs(path)
    assert str(caught.value) == f"{path}, row 1: column {column} is unknown, expected {expected}"
    both = write(tmp_path, f"{HEADER},{column},{expected}\n{GOOD},x,2\n")
    assert read_runs(both)[0].extra == {column: "x", expected: "2"}


def test_equal_rows_on_loaded_nodes_are_one_run(tmp_path: Path) -> None:
    row = "1400,4,12,0.8,93.5"
    text = f"problem_size,processors,execution_time,min_avg_avail_cpu,min_avg_avail_bw\n{row}\n{row}\n"
    with pytest.raises(InputError, match="row 3: is the same run as row 2"):
        read_runs(write(tmp_path, text))


def test_bytes_that_are_not_utf8_are_named_by_row(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(f"{HEADER}\n".encode() + b"caf\xe9,c8,1,1,1,1,1,1,n0,train\n")
    with pytest.raises(InputError, match="row 2: byte 0xe9 is not UTF-8"):
        read_runs(path)


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_runs(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a directory"):
        read_runs(tmp_path)
    with pytest.raises(InputError, match=r"holds no runs\.csv"):
        read_campaign(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = write(tmp_path, "old", "model.json")
    with pytest.raises(UnicodeEncodeError):
        write_text_atomically(path, "half \udc80")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="no such file or directory"):
        write_text_atomically(tmp_path / "nowhere" / "model.json", "new")


def test_rewriting_keeps_permissions_and_follows_links(tmp_path: Path) -> None:
    path, link = write(tmp_path, "old", "model.json"), tmp_path / "link.json"
    path.chmod(0o640)
    link.symlink_to(path)
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_loads_come_sorted_by_node_and_time(tmp_path: Path) -> None:
    text = LOADS + "10,b,0.5,90\n0,b,0.25,80\n5,a,1,70\n"
    loads = read_loads(write(tmp_path, text, "loads.csv"))
    assert loads.nodes == ("a", "b")
    np.testing.assert_array_equal(loads.time, [5, 0, 10])
    np.testing.assert_array_equal(loads.of("b").available_cpu, [0.25, 0.5])
    with pytest.raises(InputError, match="no loads of node c"):
        loads.of("c")


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.floats(0, 1), st.floats(0, 1e6)),
        min_size=1,
        unique_by=lambda sample: sample[:2],
    )
)
def test_sorting_loads_is_sorting_the_samples(samples: list[tuple[str, int, float, float]]) -> None:
    loads = Loads.sort(*zip(*samples, strict=True))
    nodes = np.repeat(loads.nodes, np.diff(loads.offsets))
    columns = (nodes, loads.time, loads.available_cpu, loads.available_bandwidth)
    assert [tuple(sample) for sample in zip(*columns, strict=True)] == sorted(samples)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,n0,1,90", "row 3: time is 'x', expected a number"),
        ("nan,n0,1,90", "row 3: time is nan"),
        ("10,,1,90", "row 3: node is empty"),
        ("10,n0,1.2,90", "row 3: available_cpu is 1.2"),
        ("10,n0,nan,90", "row 3: available_cpu is nan"),
        ("10,n0,1,-1", "row 3: available_bandwidth is -1.0"),
        ("0,n0,1,80", "row 3: has the node and the time of row 2"),
        ("10,n0,1", "row 3: has 3 cells, expected 4"),
    ],
)
def test_a_bad_sample_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_loads(write(tmp_path, f"{LOADS}0,n0,1,90\n{row}\n", "loads.csv"))
    assert message in str(caught.value)


def test_a_campaign_takes_its_loads_packed_or_not_or_goes_without(tmp_path: Path) -> None:
    write(tmp_path, f"{HEADER}\n{GOOD}\n")
    assert read_campaign(tmp_path).loads is None
    assert len(read_campaign(tmp_path / "runs.csv").runs) == 1
    (tmp_path / "loads.csv.gz").write_bytes(gzip.compress((LOADS + "0,n0,1,90\n").encode()))
    loads = read_campaign(tmp_path).loads
    assert loads is not None
    assert len(loads) == 1


@pytest.mark.parametrize("data", [b"plain", gzip.compress(LOADS.encode() * 9)[:-9]], ids=["plain", "cut short"])
def test_a_damaged_gzip_file_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "loads.csv.gz").write_bytes(data)
    with pytest.raises(InputError, match="is not a whole gzip file"):
        read_loads(tmp_path / "loads.csv.gz")


def test_the_header_written_is_the_contract(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.csv", [Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25)])
    assert (tmp_path / "runs.csv").read_text() == (
        "phase,application,cluster,start_time,nodes,problem_size,processors,min_avg_avail_cpu,min_avg_avail_bw,"
        "execution_time\n,cg,c8,,,1400,4,0.8,93.5,12.25\n"
    )
