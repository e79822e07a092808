"""Solutions: throughput, response and residence times, utilization and queue lengths, checked when they are made.

Whatever method an answer comes from, it must keep the laws that hold for every closed network. One that breaks a law
by more than 1e-6 is refused; no number of it is ever returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.queueing.network import Network

#: Largest relative violation of a law that an answer may show.
TOLERANCE = 1e-6


class PrecisionError(ArithmeticError):
    """A network that could not be solved within the tolerance; the message says which law the numbers break."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Throughputs that the exact answer lies between.

    Parameters
    ----------
    lower, upper : arrays of shape (classes,), cycles a second.
    kind : name of the bounds.
    """

    lower: Floats
    upper: Floats
    kind: str


@dataclass(frozen=True, slots=True)
class Solution:
    """Steady state of one network.

    Parameters
    ----------
    network : what was solved.
    method : name of the method that gave the numbers.
    throughput : array of shape (classes,), cycles a second.
    queue_length : array of shape (stations, classes), mean jobs in service or waiting.
    bounds : beside an approximate answer, what the exact one lies between; None beside an exact answer.
    error_estimate : beside an approximate answer, estimated relative error of each throughput, shape (classes,).

    Raises
    ------
    PrecisionError : when the numbers break a law of closed networks by more than :data:`TOLERANCE`.
    """

    network: Network
    method: str
    throughput: Floats
    queue_length: Floats
    bounds: Bounds | None = None
    error_estimate: Floats | None = None

    def __post_init__(self) -> None:
        self._check()

    @property
    def residence_time(self) -> Floats:
        """Seconds at each station in each cycle, over all visits, shape (stations, classes)."""
        return _ratio(self.queue_length, self.throughput)

    @property
    def response_time(self) -> Floats:
        """Seconds of each visit to a station, waiting and service, shape (stations, classes)."""
        return _ratio(self.residence_time, self.network.visits)

    @property
    def cycle_time(self) -> Floats:
        """Seconds at all stations together in each cycle, without the think time, shape (classes,)."""
        return np.asarray(self.residence_time.sum(axis=0))

    @property
    def utilization(self) -> Floats:
        """Share of each station's full speed that each class uses, shape (stations, classes); 0 for a delay."""
        demands: Floats = self.network.demands / self.network.peak_rates[:, None]
        return self.throughput * demands

    def as_dict(self) -> dict[str, Any]:
        """The answer as a JSON document, with the fields of ``expected`` in a network file and the method's name."""
        classes = [job_class.name for job_class in self.network.classes]
        stations = [station.name for station in self.network.stations]
        document: dict[str, Any] = {
            "name": self.network.name,
            "method": self.method,
            "exact": self.bounds is None,
            "throughput": _by_class(classes, self.throughput),
            "cycle_time": _by_class(classes, self.cycle_time),
        }
        for field in ("queue_length", "residence_time", "response_time", "utilization"):
            rows = getattr(self, field)
            document[field] = {name: _by_class(classes, row) for name, row in zip(stations, rows, strict=True)}
        if self.bounds is not None:
            document["throughput_bounds"] = {
                "kind": self.bounds.kind,
                "lower": _by_class(classes, self.bounds.lower),
                "upper": _by_class(classes, self.bounds.upper),
            }
        if self.error_estimate is not None:
            document["error_estimate"] = _by_class(classes, self.error_estimate)
        return document

    def _check(self) -> None:
        network, population = self.network, self.network.population
        if not (np.all(np.isfinite(self.throughput)) and np.all(np.isfinite(self.queue_length))):
            self._refuse("numbers that are not finite")
        if np.any(self.throughput < 0) or np.any(self.queue_length < 0):
            self._refuse("a negative throughput or queue length")
        # Every job is at a station or thinking (Little's law applied to the think time).
        found = self.queue_length.sum(axis=0) + self.throughput * network.think_time
        if np.any(np.abs(found - population) > TOLERANCE * population):
            self._refuse(f"populations {found.tolist()} where {population.tolist()} was given")
        if np.any(self.utilization.sum(axis=1) > 1 + TOLERANCE):
            self._refuse(f"a utilization of {self.utilization.sum(axis=1).max()}")
        # No job can be served faster than at a station's full speed (Little's law applied to the servers).
        if np.any(self.queue_length < self.utilization * (1 - TOLERANCE)):
            self._refuse("a queue shorter than what is in service")

    def _refuse(self, reason: str) -> None:
        name = self.network.name or "the network"
        raise PrecisionError(f"{name} could not be solved within {TOLERANCE:g}: {self.method} gave {reason}")


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    denominator = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _by_class(names: Sequence[str], values: Floats) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
