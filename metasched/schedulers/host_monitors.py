"""The monitors of this host during a run: :class:`HostMonitors`, and what they found.

A monitor that cannot be used or fails costs its figure and a warning, nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import psutil

from metasched.energy_share import Occupant, share_of_run
from metasched.records import InputError
from monitors.sampling import Average, Sensor
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.network.corrected import LOOPBACK, CorrectedLink
from monitors.sensors.power.found import find_meter
from monitors.sensors.processor_time import busy_seconds, seconds_of_children

#: Names of the sensors, in messages too.
_CPU, _BANDWIDTH, _POWER = "available CPU", "available bandwidth", "power"

AnySensor = TypeVar("AnySensor", ProbedCpu, CorrectedLink)


@dataclass(frozen=True, slots=True)
class Found:
    """What the monitors found of a run.

    Parameters
    ----------
    available_cpu, available_bandwidth : minima of the averages over the run (Sanjay & Vadhiyar 2008, section 3), a
        share of a processor and Mbit/s; NaN where one was not measured.
    cells : what else a record of the run is given: its energy and what that covers, and the faults of monitors.
    warnings : the faults, one line each.
    """

    available_cpu: float
    available_bandwidth: float
    cells: dict[str, str]
    warnings: tuple[str, ...]


class HostMonitors:
    """Sensors of the processors, the links and the power of this host; made before the run begins.

    Parameters
    ----------
    processors : how many the run takes.
    interfaces : links that it uses; by default the loopback interface.
    speeds : speeds of links (Mbit/s) where they are known better than the kernel knows them.

    Raises
    ------
    InputError : when a link that was named cannot be measured.
    """

    def __init__(self, processors: int, interfaces: Sequence[str] | None, speeds: Mapping[str, float]) -> None:
        self._warnings: list[str] = []
        self._cpu = self._made(lambda: ProbedCpu(processors, probing=False), _CPU)
        self.sensors: dict[str, Sensor] = {} if self._cpu is None else {_CPU: self._cpu}
        for name in interfaces or (LOOPBACK,):
            link = self._made(lambda name=name: CorrectedLink(name, speeds.get(name)), _BANDWIDTH)  # type: ignore[misc]
            if link is not None:
                self.sensors[f"{_BANDWIDTH} of {name}" if interfaces else _BANDWIDTH] = link
            elif interfaces:
                raise InputError(self._warnings[-1])
        self._meter = find_meter()
        if self._meter is not None:
            self.sensors[_POWER] = self._meter
            self._own, self._busy = seconds_of_children(), _busy()

    def follow(self, process: int) -> None:
        """Do not count the run's own processes as load of the host."""
        if self._cpu is not None:
            self._cpu.follow(process)

    def found(
        self, averages: Mapping[str, Average], execution_time: float, processors: int, idle_watts: float
    ) -> Found:
        """What they found, once the run has ended.

        Parameters
        ----------
        averages : of the sensors over the run, by name.
        execution_time : of the run (s).
        processors : how many it took, threads counted.
        idle_watts : what the host draws doing nothing.
        """
        cpus, links, watts = (
            [self._mean(name, average) for name, average in averages.items() if name.startswith(kind)]
            for kind in (_CPU, _BANDWIDTH, _POWER)
        )
        cells: dict[str, str] = {}
        if self._meter is not None and watts[0] > 0.0:
            joules = self._share(watts[0], execution_time, processors, idle_watts, self._meter.covers)
            if joules > 0.0:
                cells = {"energy": repr(joules), "energy_covers": self._meter.covers}
        if self._warnings:
            cells["monitors"] = "; ".join(self._warnings)
        return Found(_least(cpus), _least(links), cells, tuple(self._warnings))

    def _share(self, watts: float, seconds: float, processors: int, idle_watts: float, covers: str) -> float:
        """The joules of the run, of what the host drew (W) meanwhile; NaN if unknown."""
        own, busy = seconds_of_children() - self._own, _busy() - self._busy
        if math.isnan(busy):
            self._warnings.append("the energy of the run is unknown: the kernel does not report how busy it was")
            return math.nan
        count = psutil.cpu_count() or processors
        run = Occupant(0.0, seconds, min(processors, count), own)
        return share_of_run(watts * seconds, seconds, run, busy, count, idle_watts, covers)

    def _made(self, make: Callable[[], AnySensor], name: str) -> AnySensor | None:
        """A sensor, or a warning where there is none."""
        try:
            return make()
        except Exception as error:
            self._warnings.append(f"the sensor of {name} cannot be used ({' '.join(str(error).split())})")
            return None

    def _mean(self, name: str, average: Average) -> float:
        """A sensor's average over the run, NaN and a warning where it was not measured."""
        if average.fault:
            self._warnings.append(f"the sensor of {name} failed ({' '.join(average.fault.split())})")
        elif math.isnan(average.mean):
            self._warnings.append(f"the run was too short to measure {name}")
        return average.mean


def _least(means: Sequence[float]) -> float:
    return min(means) if means and all(map(math.isfinite, means)) else math.nan


def _busy() -> float:
    """Processor seconds that this host has been busy; NaN where the kernel does not tell."""
    try:
        return busy_seconds()
    except OSError:
        return math.nan
