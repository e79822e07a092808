"""The nouns of the house, all immutable: a run, a load, a resource set, a request, a prediction, a placement.

Every record checks itself when it is made, so that whatever holds a record holds a sound one. A record that cannot be
made raises :class:`InputError`, one line that names the field, the value, and what was expected. Times are seconds,
bandwidths Mbit/s, available CPU is the fraction of one processor that a new process would get.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


class InputError(ValueError):
    """Input that a user can mend: the message is one line saying what, where, and what was expected.

    Parameters
    ----------
    message : what was expected, for example ``"execution_time is -1.0, expected a number above 0"``.
    where : file, row, column or option it was found in; put in front of the message.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)


#: In place of a minimum that was not measured: a free processor, and a free link of 1 Gbit/s (Mbit/s).
IDLE_CPU, IDLE_BANDWIDTH = 1.0, 1000.0


def _finite_above(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise InputError(f"{name} is {value}, expected a finite number above 0")


def _fraction(name: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        raise InputError(f"{name} is {value}, expected a fraction in (0, 1]")


def check_count(name: str, value: float, least: int = 1, most: int | None = None) -> None:
    """Refuse, by InputError, what is not a whole number between two ends; not a number and infinity included.

    Parameters
    ----------
    name : of the value, for the message.
    value : to be checked.
    least, most : ends, both allowed; None for no upper end.

    Examples
    --------
    >>> check_count("servers", 2.5)
    Traceback (most recent call last):
    metasched.records.InputError: servers is 2.5, expected a whole number of at least 1
    """
    if isinstance(value, bool) or value != value // 1 or value < least or (most is not None and value > most):
        ends = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} is {value}, expected a whole number {ends}")


#: Columns that tell how a run was laid out, and what parameters by name begin with.
LAYOUT_COLUMNS, PARAMETER = ("processes_per_node", "threads"), "parameter:"
#: Columns of settings that have a name of their own.
SETTING_COLUMNS = (*LAYOUT_COLUMNS, "frequency")
#: Clocks (MHz) that processors may have: outside, the unit is another.
SLOWEST, FASTEST = 10.0, 100_000.0
#: Parameters that a run without them has all the same: it ran on no GPUs, and had no other generic resources.
WITHOUT: Mapping[str, str] = MappingProxyType({"gpu": "none", "gres": "none"})
_NAME = re.compile(r"[^\s=,]{1,64}")
#: Parameters of one run, and characters of a word, at most.
MOST_PARAMETERS, LONGEST_WORD = 32, 64


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is laid out on its nodes, and what its application is asked besides the problem size.

    Parameters
    ----------
    processes_per_node : most processes that share a node; None where not known.
    threads : of each process; each process then takes as many processors.
    parameters : pairs of a name and a number or a word, sorted by name.
    frequency : clock of the processors (MHz); None where not known.

    Examples
    --------
    >>> settings = Settings.of_cells({"threads": "2", "parameter:steps": "100", "parameter:solver": "amg", "user": "a"})
    >>> settings.parameters
    (('solver', 'amg'), ('steps', 100.0))
    >>> settings.cells
    {'threads': '2', 'parameter:solver': 'amg', 'parameter:steps': '100'}
    >>> Settings(threads=0)
    Traceback (most recent call last):
    metasched.records.InputError: threads is 0, expected a whole number of at least 1
    """

    processes_per_node: int | None = None
    threads: int = 1
    parameters: tuple[tuple[str, float | str], ...] = ()
    frequency: float | None = None

    def __post_init__(self) -> None:
        if self.frequency is not None and not SLOWEST <= self.frequency <= FASTEST:
            raise InputError(f"frequency is {self.frequency:g}, expected MHz from {SLOWEST:g} to {FASTEST:g}")
        if self.processes_per_node is not None:
            check_count("processes_per_node", self.processes_per_node)
        check_count("threads", self.threads)
        if len(self.parameters) > MOST_PARAMETERS:
            raise InputError(f"there are {len(self.parameters)} parameters, expected at most {MOST_PARAMETERS}")
        for name, value in self.parameters:
            if not _NAME.fullmatch(name):
                raise InputError(
                    f"a parameter is called {name[:80]!r}, expected at most 64 characters, no space, = or ,"
                )
            sound = (
                0 < len(value) <= LONGEST_WORD and value.isprintable()
                if isinstance(value, str)
                else math.isfinite(value)
            )
            if not sound:
                shown = repr(value[:80]) if isinstance(value, str) else value
                raise InputError(f"{PARAMETER}{name} is {shown}, expected a finite number or a word")

    @classmethod
    def of(
        cls,
        processes_per_node: int | None = None,
        threads: int | None = None,
        parameters: Mapping[str, float | str] = MappingProxyType({}),
        frequency: float | None = None,
    ) -> Settings:
        """Settings from what is known; parameters in any order, words that are numbers read as such.

        Parameters
        ----------
        processes_per_node : None for as many as there is room for.
        threads : of each process, 1 where None.
        parameters : of the application, by name.
        frequency : clock of the processors (MHz), None where it is not known.
        """
        if processes_per_node is None and threads in (None, 1) and not parameters and frequency is None:
            return DEFAULT_SETTINGS
        pairs = (
            (name, _value(value) if isinstance(value, str) else float(value)) for name, value in parameters.items()
        )
        return cls(processes_per_node, threads or 1, tuple(sorted(pairs)), frequency)

    @classmethod
    def of_cells(cls, cells: Mapping[str, str]) -> Settings:
        """The settings in the cells of a row by column; empty ones and other columns tell nothing."""
        if not any(name in SETTING_COLUMNS or name.startswith(PARAMETER) for name in cells):
            return DEFAULT_SETTINGS
        layout = {name: _whole(name, cells[name]) for name in LAYOUT_COLUMNS if cells.get(name)}
        named = {name[len(PARAMETER) :]: cell for name, cell in cells.items() if name.startswith(PARAMETER) and cell}
        return cls(
            layout.get("processes_per_node"),
            layout.get("threads", 1),
            tuple(sorted((name, _value(cell)) for name, cell in named.items())),
            _number("frequency", cells["frequency"]) if cells.get("frequency") else None,
        )

    @property
    def cells(self) -> dict[str, str]:
        """The cells that :meth:`of_cells` reads; none for what is not known."""
        layout = {} if self.processes_per_node is None else {"processes_per_node": str(self.processes_per_node)}
        if self.threads != 1:
            layout["threads"] = str(self.threads)
        if self.frequency is not None:
            layout["frequency"] = _cell(self.frequency)
        return layout | {f"{PARAMETER}{name}": _cell(value) for name, value in self.parameters}

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON contracts spell them; the frequency only where it is known."""
        return {
            "processes_per_node": self.processes_per_node,
            "threads": self.threads,
            "parameters": dict(self.parameters),
        } | ({} if self.frequency is None else {"frequency": self.frequency})

    @property
    def text(self) -> str:
        """The settings as messages name them, such as ``processes_per_node 4, steps 100``."""
        return ", ".join(f"{name.removeprefix(PARAMETER)} {cell}" for name, cell in self.cells.items())

    def check(self, processors: int) -> None:
        """Refuse, by InputError, more processes on a node than there are."""
        if self.processes_per_node is not None and self.processes_per_node > processors:
            raise InputError(
                f"processes_per_node is {self.processes_per_node}, expected at most its {processors} processors"
            )


DEFAULT_SETTINGS = Settings()


def _value(cell: str) -> float | str:
    """A number where a cell holds one, else the word."""
    try:
        return float(cell)
    except ValueError:
        return cell


def _number(name: str, cell: str) -> float:
    value = _value(cell)
    if isinstance(value, str):
        raise InputError(f"{name} is {value[:80]!r}, expected a number")
    return value


def _whole(name: str, cell: str) -> int:
    value = _number(name, cell)
    check_count(name, value)
    return int(value)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def has_words(values: Sequence[float | str]) -> bool:
    """Whether a parameter with such values has words, as at least half of them are; others are slips among numbers.

    Examples
    --------
    >>> has_words(["amg", "cg", 7.0]), has_words([100.0, 200.0, "many"])
    (True, False)
    """
    return 2 * sum(isinstance(value, str) for value in values) >= max(len(values), 1)


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
        _fraction("avg_avail_cpu", self.avg_avail_cpu)
        _finite_above("avg_avail_bw", self.avg_avail_bw)
        _finite_above("execution_time", self.execution_time)


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
    metasched.records.InputError: min_avg_avail_cpu is 1.8, expected a fraction in (0, 1]
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
    extra: Mapping[str, str] = field(default_factory=_nothing, compare=False)
    marks: tuple[PhaseMark, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _finite_above("problem_size", self.problem_size)
        check_count("processors", self.processors)
        if not math.isnan(self.min_avg_avail_cpu):
            _fraction("min_avg_avail_cpu", self.min_avg_avail_cpu)
        if not math.isnan(self.min_avg_avail_bw):
            _finite_above("min_avg_avail_bw", self.min_avg_avail_bw)
        _finite_above("execution_time", self.execution_time)
        if self.start_time is not None and not math.isfinite(self.start_time):
            raise InputError(f"start_time is {self.start_time}, expected a finite number of seconds")
        if self.phase not in (None, "train", "predict"):
            raise InputError(f"phase is {self.phase!r}, expected train or predict")
        if self.extra:
            Settings.of_cells(self.extra)
            if cell := self.extra.get("energy"):
                _finite_above("energy", _number("energy", cell))
            covers = self.extra.get("energy_covers", "")
            if len(covers) > LONGEST_WORD or not covers.isprintable():
                raise InputError(f"energy_covers is {covers[:80]!r}, expected a word such as node or package")

    @property
    def settings(self) -> Settings:
        """How it was laid out on its nodes, and its parameters.

        A limit of more processes a node than it had is one that it never met.
        """
        columns = Settings.of_cells(self.extra)
        if columns.processes_per_node is None or columns.processes_per_node <= self.processors:
            return columns
        return replace(columns, processes_per_node=self.processors)

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


@dataclass(frozen=True, slots=True)
class Load:
    """What one node had to spare at one moment.

    Parameters
    ----------
    time : the moment (s since 1970, or since the campaign began).
    node : its name.
    available_cpu : share of one processor.
    available_bandwidth : of its link (Mbit/s).

    Examples
    --------
    >>> Load(0.0, "n0", 0.75, 88.0).available_cpu
    0.75
    """

    time: float
    node: str
    available_cpu: float
    available_bandwidth: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.time):
            raise InputError(f"time is {self.time}, expected a finite number of seconds")
        if not self.node:
            raise InputError("node is empty, expected a name")
        if not 0.0 <= self.available_cpu <= 1.0:
            raise InputError(f"available_cpu is {self.available_cpu}, expected a fraction in [0, 1]")
        if not 0.0 <= self.available_bandwidth < math.inf:
            raise InputError(
                f"available_bandwidth is {self.available_bandwidth}, expected a number of Mbit/s of at least 0"
            )


#: A cluster by name, processes per node (None where they make no difference), threads of each process, and the clock of
#: the processors (MHz; None for their own).
Place = tuple[str, int | None, int, float | None]


@dataclass(frozen=True, slots=True)
class ResourceSet:
    """Nodes of one cluster that a job could take, and the two minima that its prediction needs.

    Parameters
    ----------
    cluster : name of the cluster.
    nodes : names of the nodes, in the order they would be filled.
    processors : P, how many processors the job takes on them.
    available_cpu : smallest available CPU over the processors taken.
    available_bandwidth : smallest available bandwidth over the links used (Mbit/s).
    processes_per_node : the most processes on one of its nodes that the prediction counts with; None where that makes
        no difference.
    threads : of each process.
    frequency : the clock that its processors shall have (MHz); None for their own.
    """

    cluster: str
    nodes: tuple[str, ...]
    processors: int
    available_cpu: float
    available_bandwidth: float
    processes_per_node: int | None = None
    threads: int = 1
    frequency: float | None = None

    @property
    def place(self) -> Place:
        """The cluster, and how processes are laid out on its nodes: what its model is asked by."""
        return self.cluster, self.processes_per_node, self.threads, self.frequency

    @property
    def layout(self) -> dict[str, float]:
        """The layout and the clock as JSON contracts spell them; nothing where they make no difference."""
        clock = {} if self.frequency is None else {"frequency": self.frequency}
        if self.processes_per_node is None:
            return clock if self.threads == 1 else {"threads": self.threads, **clock}
        per_node = min(self.processes_per_node, self.processors)
        return {"processes_per_node": per_node, "threads": self.threads, **clock}

    def same_place(self, nodes: Iterable[str], processors: int) -> bool:
        """Whether a job that had these nodes and as many processors ran here."""
        return set(self.nodes) == set(nodes) and self.processors == processors


@dataclass(frozen=True, slots=True)
class Interval:
    """A prediction interval: the outcome lies in [low, high] with probability ``level``."""

    low: float
    high: float
    level: float

    def holds(self, outcome: float) -> bool:
        """Whether an outcome lies in the interval."""
        return self.low <= outcome <= self.high

    def as_dict(self) -> dict[str, float]:
        """The interval as the JSON contract spells it."""
        return {"low": self.low, "high": self.high, "level": self.level}


@dataclass(frozen=True, slots=True)
class Request:
    """What a prediction is asked for: problem size, processors, the two minima to expect, and further settings.

    Parameters
    ----------
    problem_size, processors : N and P.
    available_cpu : least average share of a processor.
    available_bandwidth : least average of a link (Mbit/s).
    settings : layout on nodes, the application's parameters, clock.

    Examples
    --------
    >>> Request(1400, 4, 0.8, 93.5).processors
    4
    """

    problem_size: float
    processors: int
    available_cpu: float
    available_bandwidth: float
    settings: Settings = DEFAULT_SETTINGS

    def __post_init__(self) -> None:
        _finite_above("problem_size", self.problem_size)
        check_count("processors", self.processors)
        _fraction("available_cpu", self.available_cpu)
        _finite_above("available_bandwidth", self.available_bandwidth)
        self.settings.check(self.processors)

    def __str__(self) -> str:
        return (
            f"problem size {self.problem_size:g} on {self.processors} processors with CPU {self.available_cpu:g}"
            f" and {self.available_bandwidth:g} Mbit/s"
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted execution time with its interval, and where it came from.

    Parameters
    ----------
    execution_time : seconds.
    interval : prediction interval, seconds.
    model : the formula, or the name of the method, that gave the answer.
    warnings : what the user should know, for example a size far outside what was learned.

    Examples
    --------
    >>> Prediction(12.5, Interval(11.0, 14.0, 0.9), "robust").execution_time
    12.5
    >>> Prediction(math.inf, Interval(0.0, math.inf, 0.9), "robust")
    Traceback (most recent call last):
    metasched.records.InputError: the model predicts inf, expected a number above 0: it is asked too far from all runs
    """

    execution_time: float
    interval: Interval
    model: str
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (0.0 < self.execution_time < math.inf and self.interval.low < math.inf):
            said = f"the model predicts {self.execution_time:g}, expected a number above 0"
            raise InputError(f"{said}: it is asked too far from all runs")

    def as_dict(self) -> dict[str, Any]:
        """The prediction as the JSON contract spells it."""
        return {
            "execution_time": self.execution_time,
            "interval": self.interval.as_dict(),
            "model": self.model,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Placement:
    """A resource set with what is predicted for a job there.

    Parameters
    ----------
    resource_set : where the job would run.
    prediction : how long it would take there.
    queue_wait : expected wait before it starts, seconds.
    slowdown : factor by which contention with jobs already there stretches the run, at least 1.
    reason : one sentence that says why it stands where it stands in the ranking.
    energy : of the run (J); None if unknown.
    success : probability that none of its nodes fails meanwhile; None if unknown.
    power_limit : the most that is expected, and a cap for the job itself (W): its mean power is larger one time in ten;
        None if unknown.
    power_doubt : margin between the expected power and this limit (W).
    """

    resource_set: ResourceSet
    prediction: Prediction
    queue_wait: float = 0.0
    slowdown: float = 1.0
    reason: str = ""
    energy: float | None = None
    success: float | None = None
    power_limit: float | None = None
    power_doubt: float = field(default=0.0, compare=False)

    @property
    def power(self) -> float | None:
        """Mean power of the run (W); None where its energy is not known."""
        return None if self.energy is None else self.energy / (self.slowdown * self.prediction.execution_time)

    @property
    def power_middle(self) -> float | None:
        """Power expected with the median of the loads to come (W); None if unknown."""
        return None if self.power_limit is None else self.power_limit - self.power_doubt

    @property
    def completion(self) -> float:
        """Expected completion: queue wait plus execution time under contention (s)."""
        return self.queue_wait + self.slowdown * self.prediction.execution_time

    def as_dict(self) -> dict[str, Any]:
        """The placement as the JSON contract spells it; energy, power and success where they are known."""
        chosen = self.resource_set
        known = {name: getattr(self, name) for name in ("energy", "power", "power_limit", "success")}
        return {
            "cluster": chosen.cluster,
            "nodes": list(chosen.nodes),
            "processors": chosen.processors,
            **chosen.layout,
            "available_cpu": chosen.available_cpu,
            "available_bandwidth": chosen.available_bandwidth,
            **self.prediction.as_dict(),
            "queue_wait": self.queue_wait,
            "slowdown": self.slowdown,
            "completion": self.completion,
            "reason": self.reason,
        } | {name: value for name, value in known.items() if value is not None}
