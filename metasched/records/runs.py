"""A finished run, and what its processes did in each phase."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from metasched.records.errors import InputError, check_above_zero, check_count, check_fraction
from metasched.records.predictions import Request
from metasched.records.settings import LONGEST_WORD, Settings, number_in

#: In place of a minimum that was not measured: a free processor, and a free link of 1 Gbit/s (Mbit/s).
IDLE_CPU, IDLE_BANDWIDTH = 1.0, 1000.0


@dataclass(frozen=True, slots=True)
class PhaseMark:
    """What one process did in one phase of a run: its own loads, and how long it worked before it had to wait.

    Parameters
    ----------
    phase : its name.
    process : its number, from 0.
    avg_avail_cpu, avg_avail_bw : averages over the phase: share of a processor, and Mbit/s.
    execution_time : until it had to wait (s).

    Examples
    --------
    >>> PhaseMark("2", 0, 0.5, 93.5, 7.25).execution_time
    7.25
    """

    phase: str
    process: int
    avg_avail_cpu: float
    avg_avail_bw: float
    execution_time: float

    def __post_init__(self) -> None:
        if not self.phase:
            raise InputError("phase is empty, expected a name")
        check_count("process", self.process, 0)
        check_fraction("avg_avail_cpu", self.avg_avail_cpu)
        check_above_zero("avg_avail_bw", self.avg_avail_bw)
        check_above_zero("execution_time", self.execution_time)


@dataclass(frozen=True, slots=True)
class Run:
    """One finished execution of an application: what it was asked, what it found, how long it took.

    Parameters
    ----------
    application, cluster : names.
    problem_size : N, above 0.
    processors : P, a whole number of at least 1.
    min_avg_avail_cpu : smallest over the processors of the available CPU averaged over the run, in (0, 1]; NaN where
        it was not measured.
    min_avg_avail_bw : smallest over the links of the available bandwidth averaged over the run (Mbit/s); the
        node's own link when P = 1; NaN where it was not measured.
    execution_time : seconds, above 0.
    start_time : seconds, or None where it was not recorded.
    nodes : names of the nodes it ran on, empty where not recorded.
    phase : ``"train"``, ``"predict"`` or None; the part of a campaign it belongs to.
    extra : further columns of the record, kept as they were: ``processes_per_node``, ``threads`` and
        ``parameter:NAME``, which make its settings, ``user``, ``energy`` (J), ``energy_covers``, ``frequency`` (MHz),
        and whatever else a file holds.
    marks : what each process did in each phase, for every process of every phase; empty where not recorded.

    Examples
    --------
    >>> Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25).execution_time
    12.25
    >>> Run("cg", "c8", 1400, 4, 1.8, 93.5, 12.25)
    Traceback (most recent call last):
    metasched.records.errors.InputError: min_avg_avail_cpu is 1.8, expected a fraction in (0, 1]
    >>> Run("cg", "c8", 1400, 4, math.nan, math.nan, 12.25).request.available_cpu
    1.0
    """

    application: str
    cluster: str
    problem_size: float
    processors: int
    min_avg_avail_cpu: float
    min_avg_avail_bw: float
    execution_time: float
    start_time: float | None = None
    nodes: tuple[str, ...] = ()
    phase: str | None = None
    extra: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    marks: tuple[PhaseMark, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_above_zero("problem_size", self.problem_size)
        check_count("processors", self.processors)
        if not math.isnan(self.min_avg_avail_cpu):
            check_fraction("min_avg_avail_cpu", self.min_avg_avail_cpu)
        if not math.isnan(self.min_avg_avail_bw):
            check_above_zero("min_avg_avail_bw", self.min_avg_avail_bw)
        check_above_zero("execution_time", self.execution_time)
        if self.start_time is not None and not math.isfinite(self.start_time):
            raise InputError(f"start_time is {self.start_time}, expected a finite number of seconds")
        if self.phase not in (None, "train", "predict"):
            raise InputError(f"phase is {self.phase!r}, expected train or predict")
        if " ".join(self.nodes).split() != list(self.nodes):
            raise InputError(f"nodes are {str(self.nodes)[:80]}, expected names without spaces")
        if self.extra:
            Settings.of_cells(self.extra)
            if cell := self.extra.get("energy"):
                check_above_zero("energy", number_in("energy", cell))
            covers = self.extra.get("energy_covers", "")
            if len(covers) > LONGEST_WORD or not covers.isprintable():
                raise InputError(f"energy_covers is {covers[:80]!r}, expected a word such as node or package")
            if not self.user.isprintable():
                raise InputError(f"user is {self.user[:80]!r}, expected a name")

    @property
    def settings(self) -> Settings:
        """How it was laid out on its nodes, and its parameters.

        A limit of more processes a node than it had is one that it never met.
        """
        return Settings.of_cells(self.extra).within(self.processors)

    @property
    def user(self) -> str:
        """Who ran it, empty where that was not recorded."""
        return self.extra.get("user", "")

    @property
    def energy(self) -> float | None:
        """What it took (J), of what :attr:`energy_covers` says; None where that was not measured."""
        cell = self.extra.get("energy")
        return float(cell) if cell else None

    @property
    def energy_covers(self) -> str:
        """What the meter saw, such as package, package+memory, node or GPU; empty where that was not recorded."""
        return self.extra.get("energy_covers", "")

    @property
    def measured(self) -> bool:
        """Whether both minima were measured; it can be learned without them, but shows nothing of how loads count."""
        return not math.isnan(self.min_avg_avail_cpu + self.min_avg_avail_bw)

    @property
    def request(self) -> Request:
        """What one asks to predict this run; a minimum that was not measured counts as that of idle nodes."""
        cpu, bandwidth = self.min_avg_avail_cpu, self.min_avg_avail_bw
        return Request(
            self.problem_size,
            self.processors,
            IDLE_CPU if math.isnan(cpu) else cpu,
            IDLE_BANDWIDTH if math.isnan(bandwidth) else bandwidth,
            self.settings,
        )
