"""The share of a job by the turns that the kernel gave its processes: laws of the view, and readings beside a load."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sensors import job as jobs
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.cpu_views import turns_view
from monitors.sensors.job import JobUse, Turn

some = st.lists(st.builds(Turn, st.floats(0, 1), st.floats(0, 5)), max_size=6)
counted = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count turns")


@given(turns=some, stolen=st.floats(0, 0.9), otherwise=st.floats(0.01, 1), k=st.integers(1, 6))
def test_the_share_is_one_and_falls_with_more_processes_and_with_what_the_host_takes(
    turns: list[Turn], stolen: float, otherwise: float, k: int
) -> None:
    share = turns_view(turns, 1.0, stolen, otherwise, processors=2, k=k)
    assert 0 < share <= 1
    assert turns_view(turns, 1.0, stolen, otherwise, processors=2, k=k + 1) <= share
    assert turns_view(turns, 1.0, 0.0, otherwise, processors=2, k=k) >= share


def test_a_job_that_wants_no_processor_is_judged_by_the_other_view() -> None:
    assert turns_view([], 1.0, 0.0, 0.4, processors=2) == 0.4
    assert turns_view([Turn(0.0, 0.0)], 1.0, 0.0, 0.4, processors=2) == pytest.approx(0.4)


def test_nothing_is_said_where_no_time_has_passed() -> None:
    assert math.isnan(turns_view([Turn(1.0, 1.0)], 1e-3, 0.0, math.nan, processors=2))


def test_processes_that_hardly_run_do_not_hide_the_slowest_that_does() -> None:
    starter, fast, slow = Turn(0.0, 0.0), Turn(0.9, 0.1), Turn(0.3, 0.7)
    assert turns_view([starter, fast, slow], 1.0, 0.0, 1.0, processors=4, k=2) == pytest.approx(0.31 / 1.01)


def test_what_the_host_takes_is_not_available() -> None:
    assert turns_view([Turn(0.8, 0.2)], 1.0, 0.5, 0.4, processors=1) == pytest.approx(0.4, abs=0.01)


def test_processes_of_a_job_that_wait_for_each_other_are_no_load() -> None:
    assert turns_view([Turn(0.5, 0.5)] * 4, 1.0, 0.0, 0.5, processors=2, k=4) == pytest.approx(1.0, abs=0.01)
    assert turns_view([Turn(0.25, 0.75)] * 4, 1.0, 0.0, 0.5, processors=2, k=4) == pytest.approx(0.5, abs=0.01)


def test_a_kernel_that_does_not_count_turns_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_turns", lambda _: {})
    assert JobUse(os.getpid()).since_last([0], [1.0]).turns == []


@counted
@pytest.mark.usefixtures("one_processor")
def test_a_job_of_low_priority_is_said_to_get_what_it_gets() -> None:
    """The even share of a busy processor is far more than a job gets beside one of a higher priority."""
    spin = "print(flush=True)\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) for _ in range(2)]
    job = subprocess.Popen(["nice", "-n", "10", sys.executable, "-c", spin], stdout=subprocess.PIPE)
    try:
        for process in (*others, job):
            assert process.stdout is not None
            process.stdout.readline()
        sensor = ProbedCpu(probing=False)
        sensor.follow(job.pid)
        before, begin = psutil.Process(job.pid).cpu_times().user, time.monotonic()
        time.sleep(1.0)
        share = sensor.read()
        used, elapsed = psutil.Process(job.pid).cpu_times().user - before, time.monotonic() - begin
    finally:
        for process in (*others, job):
            process.kill()
            process.communicate()
    assert share == pytest.approx(used / elapsed, abs=0.05)


@counted
def test_a_thread_that_has_ended_hides_none_of_those_listed_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.os, "listdir", lambda folder: ["0", str(os.getpid()), "x"])
    own = psutil.Process()
    assert [thread for _, thread in jobs._turns(own)] == [str(os.getpid())]
