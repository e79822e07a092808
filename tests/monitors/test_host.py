"""The sensors of this host: laws of the two computations, and readings beside a load of known size."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitors.host import LOOPBACK_SPEED, CpuSensor, LinkSensor, attribute, available_cpu

seconds = arrays(float, 4, elements=st.floats(0, 10))


@given(located=seconds, elsewhere=st.floats(0, 10), busy=seconds)
def test_attribution_never_exceeds_what_was_busy_and_loses_nothing_that_fits(
    located: np.ndarray, elsewhere: float, busy: np.ndarray
) -> None:
    own = attribute(located, elsewhere, busy)
    assert np.all(own <= busy + 1e-12)
    assert np.all(own >= np.minimum(located, busy) - 1e-12)
    assert own.sum() == pytest.approx(min(located.sum() + elsewhere, busy.sum()))


@given(busy=seconds, idle=seconds, share=st.floats(0, 1), others=st.floats(0, 40))
def test_available_cpu_is_a_share_and_grows_with_the_jobs_own_part(
    busy: np.ndarray, idle: np.ndarray, share: float, others: float
) -> None:
    foreign = available_cpu(busy, idle, 0 * busy, others)
    own = available_cpu(busy, idle, share * busy, others)
    there = busy + idle > 0
    assert np.array_equal(np.isfinite(own), there)
    assert np.all((own[there] > 0) & (own[there] <= 1) & (own[there] >= foreign[there]))


def test_a_host_that_only_the_job_uses_is_wholly_available_to_it() -> None:
    busy = np.array([0.9, 0.4])
    np.testing.assert_array_equal(available_cpu(busy, 1 - busy, busy, others=0), [1.0, 1.0])


def test_a_new_process_shares_a_full_processor_fairly() -> None:
    full, none = np.ones(2), np.zeros(2)
    np.testing.assert_allclose(available_cpu(full, none, none, others=0.5), 1 / 2)
    np.testing.assert_allclose(available_cpu(full, none, none, others=3), 1 / 4)


@pytest.fixture
def one_processor() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("is_the_job", [False, True])
def test_a_spinner_is_load_unless_it_is_the_job(is_the_job: bool) -> None:
    sensor = CpuSensor()
    spinner = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    try:
        assert spinner.stdout is not None
        spinner.stdout.readline()
        if is_the_job:
            sensor.follow(spinner.pid)
        sensor.read()
        before, begin = psutil.Process(spinner.pid).cpu_times().user, time.monotonic()
        time.sleep(0.5)
        used, elapsed = psutil.Process(spinner.pid).cpu_times().user - before, time.monotonic() - begin
        (share,) = sensor.read()
    finally:
        spinner.kill()
        spinner.communicate()
    # Whatever else this machine does, the spinner's own part is known.
    if is_the_job:
        assert share >= used / elapsed - 0.1
    else:
        assert share <= max(1 - used / elapsed, 1 / 2) + 0.1


def test_children_of_the_job_that_have_ended_still_count_as_the_job() -> None:
    sensor = CpuSensor()
    script = (
        "import subprocess, sys\nfor _ in range(3): subprocess.run([sys.executable, '-c', 'sum(range(3_000_000))'])"
    )
    job = subprocess.Popen([sys.executable, "-c", script + "\nprint(flush=True); input()"], stdin=-1, stdout=-1)
    sensor.follow(job.pid)
    assert job.stdout is not None
    job.stdout.readline()
    times = psutil.Process(job.pid).cpu_times()
    own, _ = sensor._own_use(np.full(len(os.sched_getaffinity(0)), 1e6))
    job.communicate(b"\n")
    total = times.user + times.system + times.children_user + times.children_system
    assert times.children_user > 0
    assert own.sum() == pytest.approx(total, abs=0.05)


def test_a_job_that_is_gone_is_no_fault() -> None:
    sensor = CpuSensor()
    job = subprocess.Popen([sys.executable, "-c", ""])
    sensor.follow(job.pid)
    job.wait()
    time.sleep(0.05)
    assert np.all(sensor.read() <= 1)


def test_traffic_takes_from_what_the_loopback_link_has_to_spare() -> None:
    sensor = LinkSensor()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        sink = threading.Thread(target=lambda: [None for _ in iter(lambda: receiver.recv(1 << 16), b"")])
        sink.start()
        sensor.read()
        begin = time.monotonic()
        sender.sendall(bytes(20_000_000))
        sender.shutdown(socket.SHUT_WR)
        sink.join()
        receiver.close()
        (spare,) = sensor.read()
        rate = 160 / (time.monotonic() - begin)
    assert spare <= max(LOOPBACK_SPEED - 0.9 * rate, 0.01 * LOOPBACK_SPEED)


def test_a_configured_speed_is_taken() -> None:
    name = LinkSensor().interfaces[0]
    sensor = LinkSensor([name], {name: 1e9})
    time.sleep(0.01)
    assert 0.9e9 < sensor.read()[0] <= 1e9


def test_an_unknown_interface_is_named() -> None:
    with pytest.raises(ValueError, match="there is no network interface bogus0, expected one of"):
        LinkSensor(["bogus0"])
