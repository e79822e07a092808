"""Samples sensors while a job runs, and computes the averages that the performance model needs.

Sensors are read at a fixed interval, in a thread beside the job. A sensor that fails costs its samples and nothing
more: the others go on, the job goes on, and the fault is reported at the end.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from monitors.schedule import Schedule


class Sensor(Protocol):
    """A source of readings: the available share of a processor or a link since the last reading."""

    def read(self) -> float:
        """The mean since the last reading; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Average:
    """The average of a sensor over a run.

    Parameters
    ----------
    mean : its readings averaged over the run, each by the time it covers; NaN when there was none.
    samples : how many readings it comes from.
    fault : the last thing that went wrong, in one line; empty when nothing did.
    """

    mean: float
    samples: int
    fault: str


class Sampler:
    """Reads sensors every ``interval`` seconds from :meth:`start` to :meth:`stop`.

    Every reading counts by the time it covers, so the average over a run is right for a run of any length: one last,
    shorter reading is taken when it stops.

    >>> from monitors.sensors.network.corrected import CorrectedLink
    >>> with Sampler({"link": CorrectedLink("lo")}, interval=0.01) as sampler:
    ...     time.sleep(0.05)
    >>> sampler.averages["link"].mean > 0
    True
    """

    def __init__(self, sensors: Mapping[str, Sensor], interval: float) -> None:
        self._sensors = sensors
        self._interval = interval
        self._accounts = {name: _Account() for name in sensors}
        self._schedule = Schedule()
        self._reading = threading.Lock()

    def start(self) -> None:
        """Begin; a job that cannot be sampled regularly is at least sampled at its end."""
        self._last = time.monotonic()
        # If no more threads can be started.
        with suppress(RuntimeError):
            self._schedule.every(self._interval, self._sample)

    def stop(self) -> None:
        """Take the last reading and end."""
        self._schedule.stop()
        self._sample()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def averages(self) -> dict[str, Average]:
        """The averages so far, by the sensor's name."""
        return {name: account.average() for name, account in self._accounts.items()}

    def _sample(self) -> None:
        with self._reading:
            now = time.monotonic()
            elapsed, self._last = now - self._last, now
            for name, sensor in self._sensors.items():
                try:
                    self._accounts[name].add(sensor.read(), elapsed)
                except Exception as error:
                    self._accounts[name].fault = f"{type(error).__name__}: {error}"


class _Account:
    """Sum of one sensor's readings, weighted by the time that each covers."""

    def __init__(self) -> None:
        self.total = self.weight = 0.0
        self.samples = 0
        self.fault = ""

    def add(self, value: float, elapsed: float) -> None:
        if math.isfinite(value):
            self.total += value * elapsed
            self.weight += elapsed
            self.samples += 1

    def average(self) -> Average:
        return Average(self.total / self.weight if self.weight > 0 else math.nan, self.samples, self.fault)
