"""Running a command on this host: measured, passed through, signalled, and never harmed by the monitors."""

from __future__ import annotations

import ctypes
import math
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from functools import partial
from operator import call
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from metasched.records import InputError, Settings
from metasched.schedulers import host_monitors, local
from monitors.sampling import Average
from monitors.sensors.cpu import ProbedCpu


def run(*command: str, **others: object) -> local.Finished:
    options = {"application": "cg", "problem_size": 1400, "processors": 1, "interval": 0.05} | others
    return local.run(command, **options)  # type: ignore[arg-type]


def python(script: str) -> tuple[str, str, str]:
    return sys.executable, "-c", script


def test_a_run_is_measured_and_recorded() -> None:
    before = time.time()
    finished = run(*python("import time; time.sleep(0.3)"), cluster="c8", phase="train")
    done = finished.record.run
    assert (done.application, done.cluster, done.problem_size, done.processors) == ("cg", "c8", 1400, 1)
    assert done.phase == "train"
    assert 0.3 < done.execution_time <= time.time() - before
    assert before <= (done.start_time or 0) <= time.time()
    assert done.nodes == (local.host_name(),)
    assert finished.record.exit_status == 0
    assert finished.record.learnable
    assert finished.warnings == ()


@pytest.mark.parametrize(("full", "name"), [("n1.cluster.org", "n1"), ("n1", "n1"), ("", "localhost")])
def test_the_host_is_named_without_its_domain(full: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: full)
    assert local.host_name() == name


def test_arguments_reach_the_command_as_they_are(tmp_path: Path) -> None:
    target = tmp_path / "said"
    said = "$(id) ; `ls` 'a b' *"
    run(*python("import sys; open(sys.argv[1], 'w').write(sys.argv[2])"), str(target), said)
    assert target.read_text() == said


@pytest.mark.parametrize(("end", "status"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)])
def test_a_run_that_fails_is_not_learned_from(end: str, status: int) -> None:
    record = run(*python(f"import os, sys, time; time.sleep(0.1); {end}")).record
    assert record.exit_status == status
    assert not record.learnable


def test_what_a_run_is_too_short_to_measure_is_recorded_as_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProbedCpu, "read", lambda _: math.nan)
    finished = run("true")
    assert finished.warnings == ("the run was too short to measure available CPU",)
    assert math.isnan(finished.record.run.min_avg_avail_cpu)
    assert not math.isnan(finished.record.run.min_avg_avail_bw)


def test_the_least_of_several_links_counts_and_none_where_one_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {"eth0": 900.0, "eth1": 300.0, "eth2": math.nan}

    class Link:
        def __init__(self, name: str, speed: float | None) -> None:
            self.read = lambda: speed or speeds[name]

    monkeypatch.setattr(host_monitors, "CorrectedLink", Link)
    assert run("true", interfaces=["eth0", "eth1"]).record.run.min_avg_avail_bw == 300.0
    assert run("true", interfaces=["eth0", "eth1"], speeds={"eth0": 100.0}).record.run.min_avg_avail_bw == 100.0
    assert math.isnan(run("true", interfaces=["eth0", "eth2"]).record.run.min_avg_avail_bw)


def test_a_sensor_that_fails_does_not_harm_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: ProbedCpu) -> None:
        raise PermissionError("counters are hidden")

    monkeypatch.setattr(ProbedCpu, "read", fail)
    finished = run(*python("import time; time.sleep(0.1)"))
    assert finished.record.exit_status == 0
    assert finished.record.learnable
    assert math.isnan(finished.record.run.min_avg_avail_cpu)
    assert finished.record.run.min_avg_avail_bw > 1
    assert finished.warnings == ("the sensor of available CPU failed (PermissionError: counters are hidden)",)


def test_sensors_that_cannot_be_had_do_not_harm_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no counters in this container")

    monkeypatch.setattr(psutil, "cpu_times", fail)
    monkeypatch.setattr(psutil, "net_if_stats", fail)
    finished = run(*python("import sys; sys.exit(0)"))
    assert finished.record.exit_status == 0
    assert finished.record.learnable
    assert [warning.partition(" cannot be used (no counters")[0] for warning in finished.warnings] == [
        "the sensor of available CPU",
        "the sensor of available bandwidth",
    ]


@pytest.mark.parametrize(("command", "status"), [("nonesuch-command", 127), ("/", 126), (__file__, 126), ("a\0b", 126)])
def test_a_command_that_cannot_be_started_is_said_so(command: str, status: int) -> None:
    with pytest.raises(local.CommandError) as caught:
        run(command, "-x")
    assert caught.value.status == status
    assert command in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("problem_size", 0, "problem_size is 0"),
        ("processors", 0, "processors is 0"),
        ("application", "", "application is empty"),
        ("phase", "later", "phase is 'later'"),
        ("interval", 0, "interval is 0, expected a number of seconds from 0.01 to 86400"),
        ("interval", float("nan"), "interval is nan"),
        ("interval", 1e300, r"interval is 1e\+300"),
        ("interfaces", ["bogus0"], "no network interface bogus0"),
    ],
)
def test_a_wrong_request_starts_nothing(tmp_path: Path, option: str, value: object, message: str) -> None:
    target = tmp_path / "started"
    with pytest.raises(InputError, match=message):
        run("touch", str(target), **{option: value})
    assert not target.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_job_and_our_own_handlers_come_back(tmp_path: Path, number: int) -> None:
    before = signal.getsignal(number)
    ready = tmp_path / "ready"
    script = f"""
import pathlib, signal, sys, time
signal.signal({int(number)}, lambda *_: sys.exit(42))
pathlib.Path({str(ready)!r}).touch()
time.sleep(60)
"""

    def interrupt() -> None:
        while not ready.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    assert run(*python(script)).record.exit_status == 42
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("module", "name"), [(os, "waitid"), (select, "select")], ids=["waitid", "select"])
def test_a_signal_just_before_the_wait_reaches_the_job_before_it_has_ended(
    module: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes from C and is followed by the wait in C: no handler can run between the two."""
    libc, blocking, ready = ctypes.CDLL(None), getattr(module, name), tmp_path / "ready"
    sent: list[object] = []

    def wait(*words: object) -> object:
        if sent:
            return blocking(*words)
        while not ready.exists():
            time.sleep(0.01)
        sent.append(words)
        calls = partial(libc.kill, os.getpid(), int(signal.SIGUSR1)), partial(blocking, *words)
        return deque(map(call, calls), maxlen=1).pop()

    monkeypatch.setattr(module, name, wait)
    script = f"""
import pathlib, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(42))
pathlib.Path({str(ready)!r}).touch()
time.sleep(20)
"""
    assert run(*python(script)).record.exit_status == 42
    assert sent


def test_an_ignored_signal_stays_ignored_for_the_job() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        script = "import signal, sys; sys.exit(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
        assert run(*python(script)).record.exit_status == 1
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("clock", "asked", "stored"),
    [(2100.0, None, 2100.0), (2100.0, 1800.0, 1800.0), (None, None, None), (1e9, None, None)],
)
def test_the_clock_of_a_run_is_the_one_asked_for_or_else_the_fixed_one_of_the_host(
    clock: float | None, asked: float | None, stored: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "fixed_clock", lambda: clock)
    finished = run(*python("pass"), settings=Settings(frequency=asked))
    assert finished.record.run.settings.frequency == stored
    document = finished.record.as_dict()
    assert document.get("frequency") == stored
    assert ("frequency" in document) == (stored is not None)


class Meter:
    """A meter that reads 100 W of the node."""

    covers = "node"

    def read(self) -> float:
        return 100.0


@pytest.mark.parametrize(
    ("count", "processors", "expected"),
    [
        (8, 2, 10.0 * 20.0 * 2 / 8 + 10.0 * 60.0 * 6.0 / 12.0),
        (8, 32, 10.0 * 20.0 + 10.0 * 60.0 * 6.0 / 12.0),  # no run has more processors than the host
        (None, 2, 10.0 * 20.0 + 10.0 * 60.0 * 6.0 / 12.0),
    ],
)
def test_a_run_is_given_its_part_of_what_the_host_drew(
    count: int | None, processors: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, busy = iter([1.0, 7.0]), iter([100.0, 112.0])
    monkeypatch.setattr(host_monitors, "seconds_of_children", lambda: next(own))
    monkeypatch.setattr(host_monitors, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(host_monitors, "find_meter", Meter)
    monitors = host_monitors.HostMonitors(processors, None, {})
    monkeypatch.setattr(psutil, "cpu_count", lambda: count)
    found = monitors.found({"power": Average(80.0, 20, "")}, 10.0, processors, 20.0)
    assert (float(found.cells["energy"]), found.warnings) == (pytest.approx(expected), ())


def test_without_what_the_host_was_busy_with_the_energy_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> float:
        raise OSError("hidden")

    monkeypatch.setattr(host_monitors, "busy_seconds", fail)
    monkeypatch.setattr(host_monitors, "find_meter", Meter)
    found = host_monitors.HostMonitors(2, None, {}).found({"power": Average(80.0, 20, "")}, 10.0, 2, 20.0)
    unknown = "the energy of the run is unknown: the kernel does not report how busy it was"
    assert (found.cells, found.warnings) == ({"monitors": unknown}, (unknown,))


@pytest.mark.parametrize(("watts", "covers"), [(100.0, "node"), (0.0, None)])
def test_the_energy_of_a_run_is_recorded_where_a_meter_tells_some(
    watts: float, covers: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Meter, "read", lambda _: watts)
    monkeypatch.setattr(host_monitors, "find_meter", Meter)
    extra = run(*python("sum(range(10**6))")).record.run.extra
    assert (extra.get("energy_covers"), float(extra.get("energy", "0")) > 0.0) == (covers, covers is not None)
