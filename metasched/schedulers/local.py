"""Runs a command on this host at once, under the monitors, and records its time and loads.

The job comes first. Its input and output are its own, signals reach it, its exit status is passed on, and nothing that
goes wrong with the monitors keeps it from running to its end.
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import IO, TypeVar

import psutil

from metasched.energy_share import Occupant, share_of_run
from metasched.records import DEFAULT_SETTINGS, FASTEST, SLOWEST, InputError, Run, Settings
from metasched.store.database.run_records import RecordedRun
from metasched.store.files.whole_files import refusal
from monitors.sampling import Average, Sampler, Sensor
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.network.corrected import LOOPBACK, CorrectedLink
from monitors.sensors.power.found import find_meter, fixed_clock
from monitors.sensors.processor_time import busy_seconds, seconds_of_children

#: Signals that are forwarded to the job; the first are those that a terminal sends to all its processes anyway.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


#: Names of the sensors, in messages too, and seconds allowed between two readings.
_CPU, _BANDWIDTH, _POWER = "available CPU", "available bandwidth", "power"
_SHORTEST, _LONGEST = 0.01, 86_400.0

AnySensor = TypeVar("AnySensor", ProbedCpu, CorrectedLink)


class CommandError(Exception):
    """The command could not be started; ``status`` is what a shell would leave with, 127 (not found) or 126."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that has ended: its record, and warnings of the monitors."""

    record: RecordedRun
    warnings: tuple[str, ...]


def host_name() -> str:
    """The name of this host without its domain, which is also the name of the cluster that it forms alone."""
    return socket.gethostname().partition(".")[0] or "localhost"


def run(
    command: Sequence[str],
    *,
    application: str,
    problem_size: float,
    processors: int,
    cluster: str | None = None,
    phase: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
    interfaces: Sequence[str] | None = None,
    speeds: Mapping[str, float] | None = None,
    interval: float = 0.5,
    idle_watts: float = 0.0,
    stdout: int | IO[str] | None = None,
) -> Finished:
    """Run a command under the monitors and wait for its end.

    Parameters
    ----------
    command : the program and its arguments; no shell reads them.
    application, problem_size, processors, cluster, phase, settings : what the run is to be recorded as; ``cluster`` is
        by default the name of this host.
    interfaces, speeds : links that the job uses, by default the loopback interface, over which processes on one host
        communicate; and their speeds (Mbit/s) where they are known better than the kernel knows them.
    interval : seconds between two readings of the monitors.
    idle_watts : what this host draws doing nothing, of which the run is given a part by its processors; where 0, all
        that its meter counts is shared by processor time.
    stdout : where the command's standard output goes; by default to ours.

    Raises
    ------
    InputError
        When the run could not be recorded as what it is said to be; the command is then not started.
    CommandError
        When the command cannot be started.
    """
    if not command:
        raise InputError("the command is missing, expected it after --")
    if not _SHORTEST <= interval <= _LONGEST:
        raise InputError(f"interval is {interval:g}, expected a number of seconds from {_SHORTEST:g} to {_LONGEST:g}")
    if not 0.0 <= idle_watts < math.inf:
        raise InputError(f"idle_watts is {idle_watts:g}, expected a finite number of watts of at least 0")
    cluster = cluster or host_name()
    # An invalid request is refused before the job has run for a day.
    Run(application, cluster, problem_size, processors, 1.0, 1.0, 1.0, phase=phase, extra=settings.cells)
    if not application:
        raise InputError("application is empty, expected a name")

    warnings: list[str] = []
    cpu = _made(lambda: ProbedCpu(processors, probing=False), _CPU, warnings)
    sensors: dict[str, Sensor] = {} if cpu is None else {_CPU: cpu}
    for name in interfaces or (LOOPBACK,):
        link = _made(lambda name=name: CorrectedLink(name, (speeds or {}).get(name)), _BANDWIDTH, warnings)  # type: ignore[misc]
        if link is not None:
            sensors[f"{_BANDWIDTH} of {name}" if interfaces else _BANDWIDTH] = link
        elif interfaces:
            raise InputError(warnings[-1])
    meter, clock = find_meter(), fixed_clock()
    if meter is not None:
        sensors[_POWER] = meter
    if settings.frequency is None and clock is not None and SLOWEST <= clock <= FASTEST:
        settings = replace(settings, frequency=clock)
    with _forwarding() as (adopt, wait):
        used = _Used() if meter is not None else None
        start_time, begin = time.time(), time.perf_counter()
        child = _start(command, stdout)
        adopt(child.pid)
        if cpu is not None:
            cpu.follow(child.pid)
        with Sampler(sensors, interval) as sampler:
            wait(child.pid)
            execution_time = time.perf_counter() - begin
        status = child.wait()

    averages = sampler.averages
    cpus, links = (
        [_mean(name, average, warnings) for name, average in averages.items() if name.startswith(kind)]
        for kind in (_CPU, _BANDWIDTH)
    )
    metered: dict[str, str] = {}
    if meter is not None and used is not None and (watts := _mean(_POWER, averages[_POWER], warnings)) > 0.0:
        joules = used.share(watts, execution_time, processors * settings.threads, idle_watts, meter.covers, warnings)
        if joules > 0.0:
            metered = {"energy": repr(joules), "energy_covers": meter.covers}
    measured = Run(
        application=application,
        cluster=cluster,
        problem_size=problem_size,
        processors=processors,
        min_avg_avail_cpu=_least(cpus),
        min_avg_avail_bw=_least(links),
        execution_time=execution_time,
        start_time=start_time,
        nodes=(host_name(),),
        phase=phase,
        extra=MappingProxyType(
            settings.cells
            | metered
            | {"user": str(os.getuid())}
            | ({"monitors": "; ".join(warnings)} if warnings else {})
        ),
    )
    exit_status = status if status >= 0 else 128 - status
    return Finished(RecordedRun(measured, exit_status, exit_status == 0), tuple(warnings))


class _Used:
    """Processor time of the run and of all the host, from now on."""

    def __init__(self) -> None:
        self._own = seconds_of_children()
        self._busy = _busy()

    def share(
        self, watts: float, seconds: float, processors: int, idle_watts: float, covers: str, warnings: list[str]
    ) -> float:
        """The joules of the run, once it has ended, of what the host drew (W) meanwhile; NaN if unknown."""
        own, busy = seconds_of_children() - self._own, _busy() - self._busy
        if math.isnan(busy):
            warnings.append("the energy of the run is unknown: the kernel does not report how busy it was")
            return math.nan
        count = psutil.cpu_count() or processors
        run = Occupant(0.0, seconds, min(processors, count), own)
        return share_of_run(watts * seconds, seconds, run, busy, count, idle_watts, covers)


def _busy() -> float:
    try:
        return busy_seconds()
    except OSError:
        return math.nan


def _start(command: Sequence[str], stdout: int | IO[str] | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), stdout=stdout)  # noqa: S603
    except FileNotFoundError:
        raise CommandError(f"{command[0]}: command not found", 127) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{command[0]}: cannot be run: {refusal(error)}", 126) from None


def _made(make: Callable[[], AnySensor], name: str, warnings: list[str]) -> AnySensor | None:
    """A sensor, or a warning where there is none."""
    try:
        return make()
    except Exception as error:
        warnings.append(f"the sensor of {name} cannot be used ({' '.join(str(error).split())})")
        return None


def _mean(name: str, average: Average, warnings: list[str]) -> float:
    """A sensor's average over the run, NaN and a warning where it was not measured."""
    if average.fault:
        warnings.append(f"the sensor of {name} failed ({' '.join(average.fault.split())})")
    elif math.isnan(average.mean):
        warnings.append(f"the run was too short to measure {name}")
    return average.mean


def _least(means: Sequence[float]) -> float:
    """The minimum of the averages (paper 003, section 3); NaN where one or all of them were not measured."""
    return min(means) if means and all(map(math.isfinite, means)) else math.nan


@contextmanager
def _forwarding() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """While inside, hand signals on to the process that is adopted; those that come before are handed on then.

    Gives what adopts a process, and what waits until it has ended. A signal that comes when a wait is about to block
    would be handled only after it; so waiting is for a pipe, into which the signal itself writes.
    """
    child: list[int] = []
    early: list[int] = []
    reader, writer = os.pipe()

    def forward(number: int, _: object) -> None:
        if number == signal.SIGCHLD:
            return
        if not child:
            early.append(number)
        elif number not in _FROM_TERMINAL or not _in_foreground():
            os.kill(child[0], number)

    def adopt(pid: int) -> None:
        child.append(pid)
        for number in early:
            os.kill(pid, number)

    def wait(pid: int) -> None:
        # Leaves the ended process in place, so that its account can still be read and its number not be given away.
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            select.select([reader], [], [])
            os.read(reader, 512)

    os.set_blocking(writer, False)
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # A signal that is ignored (nohup) stays so, for us and for the job.
    previous = {
        number: signal.signal(number, forward)
        for number in (signal.SIGCHLD, *_FORWARDED)
        if number == signal.SIGCHLD or signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield adopt, wait
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(reader)
        os.close(writer)


def _in_foreground() -> bool:
    """Whether a terminal sends its signals to us and so, without our help, to the job too."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
