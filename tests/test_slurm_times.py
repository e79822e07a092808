"""Spans of time as Slurm writes them, read in one way wherever they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.history.log_formats import read_log
from metasched.schedulers.slurm.queue import COLUMNS, queued_job
from metasched.slurm_times import span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400.0), ("30:00", 1800.0), ("2:00:00", 7200.0), ("1-12:00:00", 129_600.0), ("1-12", 129_600.0),
        ("1-12:30", 131_400.0), ("00:01.500", 1.5), ("UNLIMITED", None), ("INVALID", None), ("", None),
        ("1:2:3:4", None), ("-1", None), ("1e3", None), ("٣", None),
    ],
)  # fmt: skip
def test_a_span_is_read_as_slurm_reads_it(text: str, seconds: float | None) -> None:
    assert span(text) == seconds


@given(st.integers(0, 30), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_what_slurm_prints_comes_back(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"{days}-{hours:02}:{minutes:02}:{seconds:02}" if days else f"{hours:02}:{minutes:02}:{seconds:02}"
    assert span(text) == 86_400 * days + 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize("column", ["Timelimit", "TimelimitRaw"])
def test_a_bare_limit_is_minutes_in_accounting_as_in_the_queue(column: str) -> None:
    header = f"JobIDRaw|Submit|Start|ElapsedRaw|{column}|AllocCPUS"
    log = read_log([header, "1|2024-01-01T00:00:00|2024-01-01T00:00:00|90|90|4"])
    ahead = queued_job(dict.fromkeys(COLUMNS, "") | {"State": "PENDING", "NumCPUs": "4", "TimeLimit": "90"})
    assert (log.run_time.tolist(), log.requested_time.tolist()) == ([90.0], [5400.0])
    assert ahead is not None
    assert ahead.holds == log.requested_time[0]


@pytest.mark.parametrize(
    ("command", "executable"), [("/home/ada/solve.sh 4 /tmp/x", "solve.sh"), ("(null)", ""), ("./a.out", "a.out")]
)
def test_a_queued_job_is_known_by_its_script_without_folders_and_arguments(command: str, executable: str) -> None:
    row = dict.fromkeys(COLUMNS, "") | {"State": "PENDING", "NumCPUs": "4", "Command": command}
    job = queued_job(row)
    assert job is not None
    assert job.executable == executable
