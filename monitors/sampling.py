"""Sampling sensors while a job runs, and averaging what they say as the performance model wants it.

Sensors are read at a fixed interval by APScheduler in a thread of its own. A sensor that fails costs its samples and
nothing more: the others go on, the job goes on, and the fault is reported at the end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from apscheduler.schedulers.background import BackgroundScheduler
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Without it, and where the program has not set up logging, a late sample would be announced to the user.
logging.getLogger("apscheduler").addHandler(logging.NullHandler())


class Sensor(Protocol):
    """Whatever can say what a set of things, processors or links, had to spare since it was last asked."""

    def read(self) -> Floats:
        """Means since the last reading, array of shape (things,); NaN where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Average:
    """What a sensor said over a run.

    Parameters
    ----------
    mean : array of shape (things,), each averaged over the run; empty when there was no sample.
    samples : how many readings it comes from.
    fault : the last thing that went wrong, in one line; empty when nothing did.
    """

    mean: Floats
    samples: int
    fault: str

    def smallest(self, first: int | None = None) -> float | None:
        """The minimum of the averages, over the first few things or over all (paper 003, section 3); None without any.

        Examples
        --------
        >>> Average(np.array([0.9, 0.7, 0.2]), 3, "").smallest(first=2)
        0.7
        """
        values = self.mean[:first]
        return float(values.min()) if values.size and np.all(np.isfinite(values)) else None


class Sampler:
    """Reads sensors every ``interval`` seconds from :meth:`start` to :meth:`stop`.

    Every reading counts by the time it covers, so the average over a run is right for a run of any length: one last,
    shorter reading is taken when it stops.

    Parameters
    ----------
    sensors : by name.
    interval : seconds.

    Examples
    --------
    >>> from monitors.host import LinkSensor
    >>> with Sampler({"link": LinkSensor()}, interval=0.01) as sampler:
    ...     time.sleep(0.05)
    >>> sampler.averages["link"].smallest() > 0
    True
    """

    def __init__(self, sensors: Mapping[str, Sensor], interval: float = 0.5) -> None:
        self._sensors = sensors
        self._interval = interval
        self._accounts = {name: _Account() for name in sensors}
        self._scheduler = BackgroundScheduler(timezone=UTC)
        self._reading = threading.Lock()

    def start(self) -> None:
        """Begin; a job that cannot be sampled regularly is at least sampled at its end."""
        self._last = time.monotonic()
        self._scheduler.add_job(
            self._sample, "interval", seconds=self._interval, coalesce=True, max_instances=1, misfire_grace_time=None
        )
        # Where no more threads may be had.
        with suppress(RuntimeError):
            self._scheduler.start()

    def stop(self) -> None:
        """Take the last reading and end."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
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
        """By the sensor's name, what it said so far."""
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
    """Sums of one sensor's readings, weighted by the time that each covers."""

    def __init__(self) -> None:
        self.total: Floats | None = None
        self.weight: Floats | None = None
        self.samples = 0
        self.fault = ""

    def add(self, values: Floats, elapsed: float) -> None:
        if self.total is None or self.weight is None:
            self.total, self.weight = np.zeros_like(values), np.zeros_like(values)
        there = np.isfinite(values)
        self.total += np.where(there, values, 0.0) * elapsed
        self.weight += there * elapsed
        self.samples += bool(there.any())

    def average(self) -> Average:
        if self.total is None or self.weight is None:
            return Average(np.empty(0), 0, self.fault)
        mean = np.full_like(self.total, np.nan)
        np.divide(self.total, self.weight, out=mean, where=self.weight > 0)
        return Average(mean, self.samples, self.fault)
