"""Accounting logs in three formats: what they say, and what is wrong with them."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.replay.made_log import as_csv, made_log
from metasched.history.job_log import JobLog, job_key
from metasched.history.log_formats import LONGEST_ROW, UNNUMBERED, read_log
from metasched.records import InputError
from metasched.store.files.job_logs import read_job_log

SWF = """; MaxNodes: 8
; MaxProcs: 16
1 0 10 60 4 -1 -1 4 300 -1 1 7 1 -1 2 -1 -1 -1
2 5 0 0 4 -1 -1 4 300 -1 1 7 1 -1 2 -1 -1 -1
3 6 0 -1 4 -1 -1 4 300 -1 5 7 1 -1 2 -1 -1 -1
4 7 3 400 -1 -1 -1 8 300 -1 0 8 1 -1 2 -1 -1 -1
5 9 3 20 -1 -1 -1 8 300 -1 3 8 1 -1 2 -1 -1 -1
6 4 3 20 2 -1 -1 2 -1 -1 1 -1
7 4 3
8 x 3 20 2 -1 -1 2 -1 -1 1 -1
9 11 1 20 0 -1 -1 0 60 -1 1 3
""".splitlines()

SACCT = """JobIDRaw|Submit|Eligible|Start|End|ElapsedRaw|AllocCPUS|TimelimitRaw|User|JobName|State
10|2025-01-01T00:00:00|2025-01-01T00:00:00|2025-01-01T00:01:00|2025-01-01T01:01:00|3600|4|120|ada|a|b|COMPLETED
10.batch|2025-01-01T00:00:00||2025-01-01T00:01:00|2025-01-01T01:01:00|3600|4|||batch|COMPLETED
11|2025-01-01T00:00:00|Unknown|Unknown|2025-01-01T01:01:00|0|4|120|ada|x|CANCELLED by 1000
12|1735689600|1735689660|1735689720|Unknown|60|1|UNLIMITED|$(reboot)|../x|RUNNING
13|1735689600|1735689660|1735689720|1735689780|60|1|UNLIMITED|$(reboot)|../x|CANCELLED by 5
13|1735689600|1735689660|1735689720|1735689780|60|1|UNLIMITED|$(reboot)|../x|CANCELLED by 5
14|1735689600|1735689660|17
""".splitlines()


def test_swf_is_read_and_what_is_wrong_with_it_is_counted() -> None:
    log = read_log(SWF)
    assert log.submit_time.tolist() == [0.0, 4.0, 5.0, 7.0]
    assert log.run_time.tolist() == [60.0, 20.0, 0.0, 400.0]
    assert log.processors.tolist() == [4, 2, 4, 8]
    assert log.wait.tolist() == [10.0, 3.0, 0.0, 3.0]
    assert log.capacity == 16
    assert log.labels["user"].tolist() == [0, -1, 0, 1]
    assert dict(log.wrong) == {
        "torn or unreadable": 2, "never ran": 1, "listed in part, as a whole elsewhere": 1,
        "without processors": 1, "submitted before the job above (clock went back; sorted)": 1,
        "with a run time of 0 (kept)": 1, "with a request below the run time (kept)": 1, "without a request (kept)": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "run", "limit", "state"),
    [
        (0, 300, 300, "TIMEOUT"), (5, 310, 300, "TIMEOUT"), (0, 298, 300, "TIMEOUT"), (0, 200, 300, "FAILED"),
        (5, 200, 300, "CANCELLED"), (0, 300, -1, "FAILED"), (1, 300, 300, "COMPLETED"), (-1, 300, 300, ""),
    ],
)  # fmt: skip
def test_what_swf_calls_failed_or_cancelled_at_its_limit_was_ended_by_it(
    status: int, run: int, limit: int, state: str
) -> None:
    """The format has no word for it."""
    assert read_log([f"1 0 0 {run} 4 -1 -1 4 {limit} -1 {status} 7"]).named("state") == [state]


def test_times_of_swf_count_from_the_start_that_its_header_states() -> None:
    assert read_log(["; UnixStartTime: 1735689600", *SWF]).submit_time.tolist() == [
        1735689600.0 + each for each in (0.0, 4.0, 5.0, 7.0)
    ]
    assert read_log(["; UnixStartTime: -1", *SWF]).submit_time[0] == 0.0


def test_what_sacct_prints_is_read_whatever_people_call_their_jobs() -> None:
    log = read_log(SACCT)
    assert log.run_time.tolist() == [3600.0, 60.0]
    assert log.wait.tolist() == [60.0, 60.0]
    np.testing.assert_array_equal(log.requested_time, [7200.0, np.nan])
    assert dict(log.wrong) == {
        "with a separator in the name (mended)": 1, "never ran": 1, "not ended yet": 1, "listed twice": 1,
        "torn or unreadable": 1, "without a request (kept)": 1,
    }  # fmt: skip


def test_dates_are_those_of_this_hosts_zone_so_that_the_same_jobs_have_the_same_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Summer time ends at 1:00 UTC, when it is 3:00 and becomes 2:00."""
    head, midnight = "JobIDRaw|Submit|Start|End|AllocCPUS", 1_761_436_800  # UTC
    seconds = [f"{n}|{midnight - 7200}|{midnight - 1800}|{midnight + 5400}|4" for n in (7, 8)]
    dates = [f"{n}|2025-10-26T00:00:00|2025-10-26T01:30:00|2025-10-26T02:30:00|4" for n in (7, 8)]
    dates[0] = dates[0].replace("2025-10-26T02:30:00", "2025-10-26T02:30:00+01:00")  # else the first such moment
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        told, dated = (read_log([head, *rows]) for rows in (seconds, dates))
    time.tzset()
    assert told.keys.tolist() == dated.keys.tolist()
    assert told.submit_time.tolist() == dated.submit_time.tolist()
    assert (told.run_time.tolist(), dated.run_time.tolist()) == ([7200.0, 7200.0], [7200.0, 3600.0])


def test_no_line_of_a_submission_makes_cells_of_a_row_whose_separator_it_holds() -> None:
    rows = ["JobIDRaw|User|Submit|Start|ElapsedRaw|AllocCPUS|SubmitLine|JobName", "1|ada|1|2|60|4|sbatch x -n 400|x",
            "2|ada|1|2|60|4|sbatch x -n 400 | tee|x", "3|ada|1|2|60|4|sbatch x|x|y"]  # fmt: skip
    log = read_log(rows)
    assert (log.named("numbers"), log.named("name")) == (["-n=400"], ["x"])
    assert log.wrong["torn or unreadable"] == 2


def test_arguments_make_no_other_job_of_one_without_a_number() -> None:
    head, row = "submit_time,run_time,processors", "0,60,4"
    told = read_log([f"{head},arguments", f"{row},-n 400", f'{row},"-n 500, x"', f"{row},"])
    assert told.keys.tolist() == read_log([head, row, row, row]).keys.tolist()
    assert told.named("numbers") == ["-n=400", "-n=500", ""]


def test_no_name_makes_rows_where_the_separator_was_not_foreseen() -> None:
    mark = "|48213|"
    names = ["JobIDRaw", "User", "JobName", "Submit", "Start", "ElapsedRaw", "AllocCPUS", "State"]

    def row(job: int, name: str, *more: str) -> str:
        return mark.join([f"{job}", "ada", name, "100", "160", f"{job}", "4", "COMPLETED", *more])

    forged = "9|eve|x|100|160|60|4|COMPLETED"
    lines = [
        mark.join(names), row(1, f"a\n{forged}\n\nb|c"), "", "torn", row(2, "x"), row(3, "y")[:30], row(4, "z"),
        row(5, "w", "more"), row(6, "\u2028v")[:-30],
    ]  # fmt: skip
    log = read_log(line + "\n" for line in "\n".join(lines).split("\n"))
    assert log.run_time.tolist() == [1.0, 2.0, 4.0]
    assert set(log.named("user")) == {"ada"}
    assert log.named("name") == [f"a {forged} b|c", "x", "z"]
    assert dict(log.wrong) == {"torn or unreadable": 4, "without a request (kept)": 3}
    long = [row(7, "u" * (LONGEST_ROW + 1))[: LONGEST_ROW + 20], row(8, "t")]
    assert read_log([mark.join(names), *long]).run_time.tolist() == [8.0]


HEADS = {
    "csv": "job,submit_time,run_time,processors,state,wait",
    "sacct": "JobIDRaw|Submit|ElapsedRaw|AllocCPUS|State|Start",
}


@pytest.mark.parametrize("form", HEADS)
@pytest.mark.parametrize(
    ("state", "run", "why"),
    [
        ("CANCELLED by 5", 0, "never ran"), ("CANCELLED", 3, ""), ("FAILED", 0, "with a run time of 0 (kept)"),
        ("RUNNING", 3, "not ended yet"), ("pending", 0, "not ended yet"),
        *((each, 3, "listed in part, as a whole elsewhere") for each in ("REQUEUED", "RESIZING", "REVOKED")),
    ],
)  # fmt: skip
def test_a_state_means_the_same_in_every_format(form: str, state: str, run: int, why: str) -> None:
    mark = "," if form == "csv" else "|"
    rows = [("1", 10, run, 1, state, 10), ("2", 11, 5, 1, "COMPLETED", 11)]
    log = read_log([HEADS[form], *(mark.join(map(str, row)) for row in rows)])
    assert log.wrong.get(why, 0) == (1 if why else 0)
    assert len(log) == (2 if "kept" in why or not why else 1)


@pytest.mark.parametrize("wait", ["inf", "1e300", "nan", "-3", "9" * 400])
def test_a_wait_that_cannot_be_is_not_known(wait: str) -> None:
    rows = ["job,submit_time,run_time,processors,wait", f"1,7,5,1,{wait}", "2,8,5,1,30"]
    np.testing.assert_array_equal(read_log(rows).wait, [np.nan, 30.0])
    swf = [f"1 7 {wait} 5 1 -1 -1 4 300 -1 1 7", "2 8 30 5 1 -1 -1 4 300 -1 1 7"]
    np.testing.assert_array_equal(read_log(swf).wait, [np.nan, 30.0])


def test_a_job_is_known_by_its_start_also_where_the_clock_was_set_back_before_it() -> None:
    rows = ["JobIDRaw|Submit|Eligible|Start|ElapsedRaw|AllocCPUS", "7|5000|5000|2000|60|4", "8|1000|5000|2000|60|4"]
    log = read_log([*rows, "9|1000|1000|" + "9" * 400 + "|60|4"])
    np.testing.assert_array_equal(log.submit_time, [1000.0, 2000.0, 2000.0])
    np.testing.assert_array_equal(log.wait, [np.nan, 0.0, 0.0])
    assert log.keys.tolist()[1:] == [job_key("7", 2000.0), job_key("8", 2000.0)]


def test_run_times_are_read_in_seconds_and_as_spans() -> None:
    columns, cells = "JobIDRaw|Submit|Start|{}|AllocCPUS", "7|1000|2000|{}|4"
    for name, cell in (("ElapsedRaw", "93780"), ("Elapsed", "1-02:03:00")):
        assert read_log([columns.format(name), cells.format(cell)]).run_time.tolist() == [93780.0]


def test_quotes_that_never_end_tear_one_line_only() -> None:
    log = read_log(["submit_time,run_time,processors,name", '0,5,1,"', '1,6,1,"a,b"', "2,7,1,\x00'; rm -rf"])
    assert log.run_time.tolist() == [6.0, 7.0]
    assert dict(log.wrong) == {"torn or unreadable": 1, "without a request (kept)": 2}


def test_line_breaks_in_quotes_belong_to_the_name_and_make_no_rows_of_others() -> None:
    rows = ["submit_time,run_time,processors,user,name", '0,5,1,ada,"a', "1,9999,1,eve,b", 'c"', '2,6,1,bob,5" pipe']
    torn = ['3,7,1,ada,"d', '4,8,1,ada,"e"', "5,9,1,ada,f"]
    log = read_log(row + "\r\n" for row in [*rows, *torn])
    assert log.run_time.tolist() == [5.0, 6.0, 8.0, 9.0]
    assert log.named("name") == ["a 1,9999,1,eve,b c", '5" pipe', "e", "f"]
    assert log.named("user") == ["ada", "bob", "ada", "ada"]
    assert log.wrong["torn or unreadable"] == 1
    long = ['6,5,1,ada,"g', *["7,5,1,ada,h"] * (LONGEST_ROW // 10), 'i"']
    assert set(read_log([*rows[:1], *long]).named("name")) == {"h"}


def test_cells_as_other_programs_write_them_are_understood() -> None:
    """R writes NA, SQL null, Python None, many programs blanks behind the separator; databases export dates."""
    head = "submit_time, run_time, processors, requested_time, user, wait"
    rows = ["0, 5, 1, NA, ada, null", "1970-01-01 00:00:07+00:00,6,1, 60 ,ada,None", "8,7,1,x,ada,", "x,7,1,5,ada,"]
    log = read_log([head, *rows])
    assert log.submit_time.tolist() == [0.0, 7.0]
    np.testing.assert_array_equal(log.requested_time, [np.nan, 60.0])
    np.testing.assert_array_equal(log.wait, [np.nan, np.nan])
    assert log.named("user") == ["ada", "ada"]
    assert log.wrong["torn or unreadable"] == 2


@pytest.mark.parametrize("none", ["UNLIMITED", "Partition_Limit", "infinite", "N/A"])
def test_limits_as_slurm_writes_them_lose_no_job_of_a_table(none: str) -> None:
    rows = ["0,00:01:30,1,1-02:00:00,00:10", f"1,90,1,{none},10", "2,90,1,93600,10"]
    log = read_log(["submit_time,run_time,processors,timelimit,wait", *rows])
    assert log.run_time.tolist() == [90.0] * 3
    np.testing.assert_array_equal(log.requested_time, [93600.0, np.nan, 93600.0])
    assert log.wait.tolist() == [10.0] * 3
    assert dict(log.wrong) == {"without a request (kept)": 1}


@pytest.mark.parametrize(
    ("cells", "named"),
    [
        ('0,"12,5",1', "such as '12,5' for a number"),
        ("31.12.2025 12:00,5,1", "such as '31.12.2025 12:00' for seconds or an ISO date"),
        ("0,1:2:3:4,1", "such as '1:2:3:4' for a number"),
    ],
)
def test_where_no_job_can_be_read_the_first_cell_that_cannot_is_named(cells: str, named: str) -> None:
    with pytest.raises(InputError, match=rf"^holds no job that ran \(2 torn or unreadable, {named}\), expected some$"):
        read_log(["submit_time,run_time,processors", cells, "x,5,1"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "is empty, expected SWF, CSV"),
        (["", "  "], "is empty, expected SWF, CSV"),
        (["hello"], "begins with 'hello'"),
        (["submit_time,run_time"], "column processors missing"),
        (["submit_time,run_time,processors,Runtime"], "column run_time is given twice"),
        (["submit_time,run_time,processors", "0,1"], r"holds no job that ran \(1 torn or unreadable\)"),
        (["JobIDRaw|Submit", "1|2"], "columns Start, AllocCPUS missing"),
        (["JobIDRaw|Submit|Start|NCPUS", "1|2"], "columns ElapsedRaw and End missing"),
        (["".join(f"{each}\0" for each in "submit_time,run_time")], "holds NUL bytes, expected text in UTF-8, not"),
    ],
)
def test_what_is_no_log_is_refused_by_one_line(lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_log(lines)


@given(
    st.lists(st.text(max_size=60), max_size=12), st.sampled_from([SWF[2], SACCT[0], "submit_time,run_time,processors"])
)
def test_no_line_ever_stops_the_reading(lines: list[str], first: str) -> None:
    good = {SWF[2]: SWF[2], SACCT[0]: SACCT[5]}.get(first, "1,2,3")
    log = read_log([first, *lines, good])
    assert len(log) >= 1
    assert np.isfinite(log.submit_time).all()


@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(allow_nan=True), st.floats(allow_nan=True))
def test_no_number_makes_a_job_that_cannot_be(submit: float, run: float, processors: float) -> None:
    log = read_log(["submit_time,run_time,processors", "0,1,1", f"{submit},{run},{processors}"])
    assert (log.run_time >= 0).all()
    assert (log.processors >= 1).all()
    assert (
        len(log) + sum(log.wrong.get(each, 0) for each in ("torn or unreadable", "never ran", "without processors"))
        == 2
    )


def test_a_packed_file_is_read_like_a_plain_one(tmp_path: Path) -> None:
    text = as_csv(made_log(200, seed=3)).encode()
    (tmp_path / "a.csv").write_bytes(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text))
    plain, packed = read_job_log(tmp_path / "a.csv"), read_job_log(tmp_path / "b.csv.gz")
    assert plain.run_time.tolist() == packed.run_time.tolist() == made_log(200, seed=3).run_time.tolist()
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(text)[:-40])
    with pytest.raises(InputError, match=r"c\.csv\.gz: is not a whole gzip file"):
        read_job_log(tmp_path / "c.csv.gz")
    with pytest.raises(InputError, match="missing"):
        read_job_log(tmp_path / "missing.csv")


def test_a_log_that_names_no_capacity_makes_one_likely() -> None:
    ones = np.ones(3)
    answer = JobLog(np.array([0.0, 1.0, 2.0]), 10 * ones, np.array([4, 4, 4]), 60 * ones, np.array([0.0, 0.0, 9.0]))
    assert answer.likely_capacity() == 8
    twenty = np.arange(20.0)
    few = np.where(twenty == 3.0, np.nan, 0.0)
    assert JobLog(twenty, 5.0 + 0 * twenty, np.full(20, 4), 60.0 + 0 * twenty, few).likely_capacity() == 20
    untold = JobLog(np.array([0.0, 1.0, 2.0]), 10 * ones, np.array([4, 4, 4]), 60 * ones)
    assert untold.likely_capacity() == 15


def test_jobs_larger_than_the_cluster_are_left_out_and_counted() -> None:
    log = made_log(300, seed=1)
    fitting = log.fitting(8)
    assert len(fitting) + fitting.wrong["larger than the cluster"] == 300
    assert int(fitting.processors.max()) == 8
    assert log.fitting(64) is log


def test_a_table_with_the_line_ends_of_old_macintoshes_is_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"submit_time,run_time,processors\r0,60,4\r5,30,8\r")
    with pytest.raises(InputError, match=r"log.csv: is not CSV"):
        read_job_log(path)


def test_names_alike_in_their_first_thousand_characters_are_one() -> None:
    rows = ["submit_time,run_time,processors,user"]
    rows += [f"{number},10,1,{name}" for number, name in enumerate([1000 * "a", 1001 * "a", 999 * "a"])]
    log = read_log(rows)
    assert log.named("user") == [1000 * "a", 1000 * "a", 999 * "a"]


CSV = "job,submit_time,wait,run_time,processors,requested_time"


@pytest.mark.parametrize(
    ("cells", "requested", "wait"),
    [
        ("1,0,5,0,1,100", 100.0, 5.0),
        ("1,1e11,5,1e9,10000000,1e9", 1e9, 5.0),
        ("1,-1e11,5,60,4,100", 100.0, 5.0),
        ("1,0,0,60,1,0", None, 0.0),
        ("1,0,-0.5,60,1,1.1e9", None, None),
    ],
)
def test_what_lies_at_a_limit_of_a_log_is_a_job(cells: str, requested: float | None, wait: float | None) -> None:
    log = read_log([CSV, cells])
    known = [None if np.isnan(each) else float(each) for each in (log.requested_time[0], log.wait[0])]
    assert (len(log), known) == (1, [requested, wait])


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("1,1.1e11,5,60,4,100", "torn or unreadable"),
        ("1,0,5,1.1e9,4,100", "torn or unreadable"),
        ("1,0,5,60,10000001,100", "torn or unreadable"),
        ("1,0,5,-0.5,4,100", "never ran"),
        ("1,0,5,60,0.5,100", "without processors"),
        ("1,0,5,60,1.5,100", "without processors"),
    ],
)
def test_what_lies_beyond_a_limit_of_a_log_is_counted(cells: str, why: str) -> None:
    with pytest.raises(InputError, match=rf"^holds no job that ran \(1 {why}\), expected some$"):
        read_log([CSV, cells])


@pytest.mark.parametrize("job", ["4711_3", "4711+1"])
def test_numbers_that_the_queue_does_not_know_are_counted_where_there_are_no_others(job: str) -> None:
    rest = ["Submit|Start|ElapsedRaw|AllocCPUS|State", "100|160|60|4|COMPLETED", "100|160|60|4|COMPLETED",
            "100|Unknown|0|0|CANCELLED by 1000"]  # fmt: skip
    numbers = [("JobID", "JobIDRaw"), (job, "4715"), ("4716", "4716"), ("4711_[5-9]", "4711")]
    both = read_log([f"{called}|{raw}|{cells}" for (called, raw), cells in zip(numbers, rest, strict=True)])
    called = read_log([f"{called}|{cells}" for (called, _), cells in zip(numbers, rest, strict=True)])
    assert both.keys.tolist() == [job_key("4715", 160.0), job_key("4716", 160.0)]
    assert (UNNUMBERED in both.wrong, called.wrong[UNNUMBERED], len(called)) == (False, 1, 2)
