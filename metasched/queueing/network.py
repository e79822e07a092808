"""A closed queueing network and its parts, all immutable: stations, job classes, and the network of both.

A network checks itself when it is made and hands the solvers nothing but arrays. Axes keep one order everywhere:
(network, station, class) and, where all populations are asked for, population last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError, check_count

#: Largest number of servers of a station, and of rates given for it; a longer list says nothing that a delay does not.
MOST_SERVERS = 10_000
#: Largest population of one class.
MOST_JOBS = 10_000_000
#: Largest time, number of visits or rate; a century is three thousand million seconds.
LARGEST = 1e12


def _within(name: str, value: float, least: float = 0.0) -> None:
    if not least <= value <= LARGEST:
        raise InputError(f"{name} is {value}, expected a number from {least:g} to {LARGEST:g}")


@dataclass(frozen=True, slots=True)
class JobClass:
    """A class of statistically equal jobs that circulate forever.

    Parameters
    ----------
    name : the class's name, unique in its network.
    population : how many jobs of the class circulate.
    think_time : seconds that a job spends outside all stations in each cycle.

    Examples
    --------
    >>> JobClass("batch", population=4).think_time
    0.0
    """

    name: str
    population: int
    think_time: float = 0.0

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("name of a class is empty, expected a name")
        check_count(f"population of class {self.name}", self.population, 0, MOST_JOBS)
        _within(f"think_time of class {self.name}", self.think_time)


@dataclass(frozen=True, slots=True)
class Station:
    """A station: one or several servers with a queue, or a delay (infinitely many servers).

    The stations are those of product-form networks: processor sharing, or first come first served where all classes
    have the same service time.

    Parameters
    ----------
    name : the station's name, unique in its network.
    service : seconds of service that one visit asks for, one number a class.
    visits : visits in each cycle, one number a class.
    kind : ``"queue"`` or ``"delay"``.
    servers : equal servers behind the one queue.
    rates : for a load-dependent station, the speed relative to ``service`` with 1, 2, ... jobs there; the last one
        holds for all larger numbers. Empty for stations whose speed follows from ``servers``.

    Examples
    --------
    >>> Station("cpu", service=(0.5,), visits=(3.0,), servers=2).rates_up_to(4)
    array([1., 2., 2., 2.])
    """

    name: str
    service: tuple[float, ...]
    visits: tuple[float, ...]
    kind: Literal["queue", "delay"] = "queue"
    servers: int = 1
    rates: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("name of a station is empty, expected a name")
        at = f"of station {self.name}"
        if self.kind not in ("queue", "delay"):
            raise InputError(f"kind {at} is {self.kind!r}, expected queue or delay")
        check_count(f"servers {at}", self.servers, 1, MOST_SERVERS)
        if len(self.rates) > MOST_SERVERS:
            raise InputError(f"rates {at} has {len(self.rates)} numbers, expected at most {MOST_SERVERS}")
        if self.rates and (self.kind == "delay" or self.servers != 1):
            raise InputError(f"rates {at} is given together with servers or a delay, expected one of them")
        if len(self.service) != len(self.visits):
            raise InputError(f"visits {at} has {len(self.visits)} numbers, expected {len(self.service)}")
        for value in self.service:
            _within(f"service {at}", value)
        for value in self.visits:
            _within(f"visits {at}", value)
        for value in self.rates:
            _within(f"a rate {at}", value, least=1 / LARGEST)

    @property
    def listed_rates(self) -> tuple[float, ...]:
        """Speed with 1, 2, ... jobs there, up to the number from which it is constant; not defined for a delay."""
        return self.rates or tuple(float(servers) for servers in range(1, self.servers + 1))

    @property
    def is_fixed(self) -> bool:
        """Whether the speed does not depend on how many jobs are there."""
        return self.kind == "queue" and len(set(self.listed_rates)) == 1

    def rates_up_to(self, jobs: int) -> Floats:
        """Speed with 1, 2, ... ``jobs`` jobs there, an array of shape (jobs,)."""
        if self.kind == "delay":
            return np.arange(1.0, jobs + 1)
        listed = np.asarray(self.listed_rates[:jobs], dtype=float)
        return np.concatenate([listed, np.full(jobs - listed.size, self.listed_rates[-1])])


@dataclass(frozen=True, slots=True)
class Network:
    """A closed queueing network: stations, and the classes of jobs that circulate among them.

    >>> cpu = Station("cpu", service=(0.5,), visits=(2.0,))
    >>> disk = Station("disk", service=(0.1,), visits=(3.0,))
    >>> Network("machine", (cpu, disk), (JobClass("batch", population=4),)).demands
    array([[1. ],
           [0.3]])
    """

    name: str
    stations: tuple[Station, ...]
    classes: tuple[JobClass, ...]

    def __post_init__(self) -> None:
        at = f"of network {self.name}" if self.name else "of the network"
        if not self.stations:
            raise InputError(f"stations {at} is empty, expected at least one station")
        if not self.classes:
            raise InputError(f"classes {at} is empty, expected at least one class")
        for what, names in (
            ("station", [station.name for station in self.stations]),
            ("class", [job_class.name for job_class in self.classes]),
        ):
            twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
            if twice:
                raise InputError(f"{what} {min(twice)} {at} is given twice, expected names that differ")
        for station in self.stations:
            if len(station.service) != len(self.classes):
                raise InputError(
                    f"service of station {station.name} has {len(station.service)} numbers, "
                    f"expected one for each of {len(self.classes)} classes"
                )
        idle = self.think_time + self.demands.sum(axis=0)
        for job_class, cycle in zip(self.classes, idle, strict=True):
            if job_class.population and cycle == 0:
                raise InputError(f"class {job_class.name} {at} has no demand, expected a demand or a think time")

    @property
    def demands(self) -> Floats:
        """Seconds of service in each cycle at speed 1 (service times visits), shape (stations, classes)."""
        service: Floats = np.array([station.service for station in self.stations], dtype=float)
        return service * self.visits

    @property
    def visits(self) -> Floats:
        """Visits in each cycle, shape (stations, classes)."""
        return np.array([station.visits for station in self.stations], dtype=float)

    @property
    def population(self) -> Ints:
        """Jobs of each class, shape (classes,)."""
        return np.array([job_class.population for job_class in self.classes], dtype=np.int64)

    @property
    def think_time(self) -> Floats:
        """Seconds outside all stations in each cycle, shape (classes,)."""
        return np.array([job_class.think_time for job_class in self.classes], dtype=float)

    @property
    def peak_rates(self) -> Floats:
        """Largest speed of each station, infinite for a delay, shape (stations,)."""
        return np.array(
            [math.inf if station.kind == "delay" else max(station.listed_rates) for station in self.stations]
        )
