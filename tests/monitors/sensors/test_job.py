"""Available CPU of a job that runs here: laws of the two computations, and readings beside a load of known size."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.cpu_views import followed_view
from monitors.sensors.job import JobUse, attributed
from monitors.sensors.spin import Spin

seconds = st.lists(st.floats(0, 10), min_size=4, max_size=4)


@given(located=seconds, elsewhere=st.floats(0, 10), busy=seconds)
def test_attribution_never_exceeds_what_was_busy_and_loses_nothing_that_fits(
    located: list[float], elsewhere: float, busy: list[float]
) -> None:
    own = attributed(located, elsewhere, busy)
    assert all(part <= whole + 1e-12 for part, whole in zip(own, busy, strict=True))
    seen = [min(part, whole) for part, whole in zip(located, busy, strict=True)]
    assert all(part >= least - 1e-12 for part, least in zip(own, seen, strict=True))
    assert sum(own) == pytest.approx(min(sum(located) + elsewhere, sum(busy)))


@given(busy=seconds, idle=seconds, share=st.floats(0, 1), others=st.floats(0, 40), k=st.integers(1, 6))
def test_what_a_job_gets_is_a_share_and_grows_with_its_own_part(
    busy: list[float], idle: list[float], share: float, others: float, k: int
) -> None:
    busy = [each + 0.01 for each in busy]
    foreign = followed_view(idle, busy, [0.0] * 4, others, k)
    own = followed_view(idle, busy, [share * each for each in busy], others, k)
    assert 0 < foreign <= own <= 1
    assert followed_view(idle, busy, [0.0] * 4, others, k + 1) <= foreign


def test_nothing_is_said_where_no_time_has_passed() -> None:
    assert followed_view([0.0, 1.0], [0.0, 1.0], [0.0, 0.0], 0.0) != followed_view([0.5, 1.0], [0.5, 1.0], [0, 0], 0.0)
    assert str(followed_view([0.0, 1.0], [0.0, 1.0], [0.0, 0.0], 0.0)) == "nan"


def test_a_host_that_only_the_job_uses_is_wholly_available_to_it() -> None:
    assert [followed_view([0.1, 0.6], [0.9, 0.4], [0.9, 0.4], 0.0, k) for k in (1, 2)] == [1.0, 1.0]


def test_a_job_shares_a_full_processor_fairly() -> None:
    full, none = [1.0, 1.0], [0.0, 0.0]
    assert followed_view(none, full, none, others=0.5) == pytest.approx(1 / 2)
    assert followed_view(none, full, none, others=3) == pytest.approx(1 / 4)


def test_the_last_of_the_processes_gets_the_processor_with_the_least() -> None:
    idle, busy = [1.0, 0.0, 0.6], [0.0, 1.0, 0.4]
    assert [followed_view(idle, busy, [0.0] * 3, 0.0, k) for k in (1, 2, 3, 8)] == pytest.approx([1.0, 0.6, 0.5, 0.5])


def test_nothing_is_probed_beside_a_job() -> None:
    probes = []
    sensor = ProbedCpu(probe=lambda: probes.append(0) or Spin(1.0, 1.0, 0.0))  # type: ignore[func-returns-value]
    sensor.follow(os.getpid())
    for _ in range(3):
        time.sleep(0.02)
        sensor.read()
    assert probes == []


@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("is_the_job", [False, True])
def test_a_spinner_is_load_unless_it_is_the_job(is_the_job: bool) -> None:
    sensor = ProbedCpu(probing=False)
    spinner = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    # Not this process: the spinner is its child, and with it part of the job.
    waiting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert spinner.stdout is not None
        spinner.stdout.readline()
        sensor.follow(spinner.pid if is_the_job else waiting.pid)
        sensor.read()
        before, begin = psutil.Process(spinner.pid).cpu_times().user, time.monotonic()
        time.sleep(0.5)
        used, elapsed = psutil.Process(spinner.pid).cpu_times().user - before, time.monotonic() - begin
        share = sensor.read()
    finally:
        for process in (spinner, waiting):
            process.kill()
            process.communicate()
    # Whatever else this machine does, the spinner's own part is known.
    if is_the_job:
        assert share >= used / elapsed - 0.1
    else:
        assert share <= max(1 - used / elapsed, 1 / 2) + 0.1


def test_children_of_the_job_that_have_ended_still_count_as_the_job_and_what_it_used_before_does_not() -> None:
    child = "subprocess.run([sys.executable, '-c', 'sum(range(3_000_000))'])"
    script = f"import subprocess, sys\nfor _ in range(2):\n    {child}\n    print(flush=True); input()"
    job = subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1)
    assert job.stdin is not None
    assert job.stdout is not None
    job.stdout.readline()
    before = psutil.Process(job.pid).cpu_times()
    use = JobUse(job.pid)
    assert sum(use.since_last([0, 1], [1e6, 1e6]).own) == pytest.approx(0.0, abs=0.05)
    job.stdin.write(b"\n")
    job.stdin.flush()
    job.stdout.readline()
    after = psutil.Process(job.pid).cpu_times()
    own = use.since_last([0, 1], [1e6, 1e6]).own
    job.communicate(b"\n")
    assert after.children_user > before.children_user > 0
    assert sum(own) == pytest.approx(sum(after[:4]) - sum(before[:4]), abs=0.05)


def test_what_children_of_the_children_of_a_job_use_counts_as_the_job() -> None:
    last = "print(flush=True); input(); sum(range(6_000_000)); print(flush=True); input()"
    middle = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {last!r}])"
    job = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {middle!r}])"],
        stdin=-1, stdout=-1,
    )  # fmt: skip
    assert job.stdin is not None
    assert job.stdout is not None
    job.stdout.readline()
    processors = range(psutil.cpu_count() or 1)
    use = JobUse(job.pid)
    job.stdin.write(b"\n")
    job.stdin.flush()
    job.stdout.readline()
    own = sum(use.since_last(processors, [1e6] * len(processors)).own)
    job.communicate(b"\n")
    assert own >= 0.03


def test_a_job_that_is_gone_is_no_fault() -> None:
    job = subprocess.Popen([sys.executable, "-c", ""])
    sensor = ProbedCpu()
    sensor.follow(job.pid)
    job.wait()
    time.sleep(0.05)
    assert 0 < sensor.read() <= 1
