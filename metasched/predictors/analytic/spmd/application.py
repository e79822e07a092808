"""SPMD applications: phases of statistically equal cycles, each with the parameters of Table 1.

A cycle is a number of computation bursts (CPU, then communication) and one I/O burst. All times are seconds on one
processor and one disk; how they grow with processors and disks stands in
:mod:`metasched.predictors.analytic.spmd.bursts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from metasched.records import InputError, check_count, check_seconds

#: How I/O is done: all processors together (SIO), each group of processors through one I/O node (BUS-AIO), or each
#: cluster of groups through an I/O node of its own (CLU-AIO).
InputOutput = Literal["synchronous", "bus", "clustered"]
#: Distribution of a CPU burst over the processors that wait for each other.
Spread = Literal["exponential", "uniform"]

_TIMES = (
    "parallel_computation",
    "serial_computation",
    "communication_startup",
    "communication_transfer",
    "io_startup",
    "io_transfer",
)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of an application.

    Parameters
    ----------
    parallel_computation, serial_computation : S_par^CPU and S_ser^CPU, seconds of CPU in a computation burst.
    communication_startup : S_0^COM, seconds in a computation burst, at p = 1 in the scale of ``startup_exponent``.
    communication_transfer : S_R^COM, seconds to transfer what a burst sends, where g(p) = 1.
    io_startup, io_transfer : S_0^I/O and S_R^I/O, seconds in a cycle.
    contention : w, from 0 (every pair has a link of its own) to 1 (one bus).
    synchronization : c, how many processors wait for each other; None for all of them.
    computation_bursts : n^I/O, mean number of computation bursts between two I/O bursts, at least 1.
    cycles : N, how often the cycle is repeated.
    dimensions : r of the parallel data structure: g(p) = p^-(1 - 1/r); infinite for g(p) = 1/p.
    startup_exponent : growth of the number of messages with p; 0 where it does not grow.
    io : how I/O is done.
    spread : distribution that the synchronisation cost is taken from.

    Raises
    ------
    InputError : with the parameter, its value and what was expected.

    Examples
    --------
    >>> Phase(parallel_computation=9.0, io_transfer=1.0).reference_time
    10.0
    >>> Phase(parallel_computation=-1.0)
    Traceback (most recent call last):
    metasched.records.errors.InputError: parallel_computation is -1.0, expected a finite number of seconds of at least 0
    """

    parallel_computation: float
    serial_computation: float = 0.0
    communication_startup: float = 0.0
    communication_transfer: float = 0.0
    io_startup: float = 0.0
    io_transfer: float = 0.0
    contention: float = 0.0
    synchronization: int | None = 1
    computation_bursts: float = 1.0
    cycles: float = 1.0
    dimensions: float = math.inf
    startup_exponent: float = 0.0
    io: InputOutput = "synchronous"
    spread: Spread = "exponential"

    def __post_init__(self) -> None:
        for name in _TIMES:
            check_seconds(name, getattr(self, name))
        if self.parallel_computation + self.serial_computation == 0:
            raise InputError("parallel_computation and serial_computation are both 0, expected some computation")
        if not 0.0 <= self.contention <= 1.0:
            raise InputError(f"contention is {self.contention}, expected a number from 0 to 1")
        if self.synchronization is not None:
            check_count("synchronization", self.synchronization)
        if not 1 <= self.computation_bursts < math.inf:
            raise InputError(f"computation_bursts is {self.computation_bursts}, expected a number of at least 1")
        if not 0 < self.cycles < math.inf:
            raise InputError(f"cycles is {self.cycles}, expected a number above 0")
        if math.isnan(self.dimensions) or self.dimensions < 1:
            raise InputError(f"dimensions is {self.dimensions}, expected a number of at least 1")
        if not math.isfinite(self.startup_exponent):
            raise InputError(f"startup_exponent is {self.startup_exponent}, expected a finite number")
        for name, value, known in (("io", self.io, InputOutput), ("spread", self.spread, Spread)):
            if value not in get_args(known):
                raise InputError(f"{name} is {value!r}, expected one of {', '.join(get_args(known))}")

    @property
    def scale_exponent(self) -> float:
        """Exponent of the communication scale function, g(p) = p^-scale_exponent, (7)."""
        return 1.0 - 1.0 / self.dimensions

    @property
    def reference_time(self) -> float:
        """N T_1: seconds on one processor and one disk, (1)."""
        computation = (self.parallel_computation + self.serial_computation) * self.computation_bursts
        return self.cycles * (computation + self.io_startup + self.io_transfer)


@dataclass(frozen=True, slots=True)
class Application:
    """Phases that follow each other.

    >>> Application("twice", (Phase(9.0, io_transfer=1.0), Phase(5.0, cycles=2))).reference_time
    20.0
    """

    name: str
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not self.phases:
            raise InputError(f"application {self.name} has no phases, expected at least one")

    @property
    def reference_time(self) -> float:
        """Seconds of all phases on one processor and one disk."""
        return sum(phase.reference_time for phase in self.phases)
