"""What the synthetic signature has measured, and the time of the application that follows (Eq. 6)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import Sample
from metasched.signature.synthetic.collective_times import MEASURED, Collective, collective_named, times_by_size
from metasched.signature.synthetic.message_kinds import MessageKind, kinds_of
from metasched.signature.times.clocked_runs import composed
from metasched.signature.times.timed import Engine, Timed
from metasched.signature.traces.exchanges import Exchanges

#: Most rows of a result.
MOST_ROWS = 1_000_000
BROKEN = "is of another form than metasched signature run writes"


@dataclass(frozen=True)
class Result:
    """What was measured for one number of processes.

    Parameters
    ----------
    application : digest of the application that was run.
    processes, cores, per_node : of the application; of the synthetic signature; of the application on each node.
    instruction_time : seconds of an instruction.
    messages : seconds of a message of each kind.
    collectives : seconds of each operation on some numbers of processes.
    """

    application: str
    processes: int
    cores: int
    per_node: int
    instruction_time: float
    messages: Mapping[MessageKind, float]
    collectives: Mapping[Collective, Mapping[int, float]]
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as a document, which :meth:`of` reads."""
        return {
            "application": self.application,
            "processes": self.processes,
            "cores": self.cores,
            "processes_per_node": self.per_node,
            "instruction_time": self.instruction_time,
            "messages": [[*kind, seconds] for kind, seconds in self.messages.items()],
            "collectives": [
                [*each, processes, seconds]
                for each, some in self.collectives.items()
                for processes, seconds in some.items()
            ],
            **self.figures,
        }

    @classmethod
    def of(cls, document: Any) -> Result:
        """The result of a document.

        Raises
        ------
        InputError : when something in it is of another form than ``metasched signature run`` writes.
        """
        try:
            rows, grown = document["messages"], document["collectives"]
            if len(rows) > MOST_ROWS or len(grown) > MOST_ROWS:
                raise ValueError
            messages = {
                MessageKind(_whole(p), _whole(at), _seconds(size), bool(local)): _seconds(seconds)
                for p, at, size, local, seconds in rows
            }
            collectives: dict[Collective, dict[int, float]] = {}
            for name, size, processes, seconds in grown:
                if name not in MEASURED:
                    raise ValueError
                collectives.setdefault(Collective(name, _seconds(size)), {})[_whole(processes, 2)] = _seconds(seconds)
            counts = [_whole(document[key], 1) for key in ("processes", "cores", "processes_per_node")]
            time = _seconds(document["instruction_time"])
            return cls(str(document["application"]), counts[0], counts[1], counts[2], time, messages, collectives)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(BROKEN) from None


def _whole(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 2**31:
        raise ValueError
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1e15:
        raise ValueError
    return float(value)


def digest(application: Application) -> str:
    """What distinguishes applications: a digest of the whole document."""
    return hashlib.sha256(json.dumps(application.as_dict(), sort_keys=True).encode()).hexdigest()[:16]


class MeasuredCosts:
    """Costs of a sample's actions by what was measured."""

    def __init__(self, result: Result, sample: Sample) -> None:
        self.result, self.sample, self.count = result, sample, result.processes
        self.rounds = math.ceil(math.log2(max(self.count, 2)))
        self.times: dict[int, dict[str, tuple[Floats, Floats]]] = {}

    @property
    def stretch(self) -> float:
        """Computation takes as long as points say."""
        return 1.0

    def work(self) -> Floats:
        """Seconds of one instruction in each process."""
        return np.full(self.count, self.result.instruction_time)

    def messages(self, found: Exchanges) -> tuple[Floats, Floats]:
        """Seconds of each message. They were measured among those of their phase, so links are not counted again."""
        kinds, kind = kinds_of(self.sample, found, self.result.per_node)
        seconds = np.array([self._seconds(each) for each in kinds])
        return seconds[kind] if kinds else found.size, np.zeros(found.size.size)

    def _seconds(self, kind: MessageKind) -> float:
        known = self.result.messages
        if kind in known:
            return known[kind]
        # What no range held is taken to be as others of its size.
        near = [each for each in known if each.local == kind.local] or [*known]
        if not near:
            raise InputError("no message was measured, expected a result of metasched signature run")
        sizes = sorted({each.size for each in near})
        medians = [float(np.median([known[each] for each in near if each.size == size])) for size in sizes]
        return float(np.interp(kind.size, sizes, medians))

    def branch(self, name: str, size: float) -> float:
        """Seconds of one message in a tree: a broadcast of two processes, or a reduction of all by its rounds."""
        each = Collective(name, size)
        return self._time(each, 2) if name == "bcast" else self._time(each) / self.rounds

    def shared(self, size: float) -> float:
        """What a second message of the same sender adds, or if it was not measured what its bytes add."""
        alone = self._time(Collective("bcast", size), 2)
        adds = alone - self._time(Collective("bcast", 0.0), 2)
        if any(each.name == "bcast" and 3 in times for each, times in self.result.collectives.items()):
            adds = min(adds, self._time(Collective("bcast", size), 3) - alone)
        return max(adds, 0.0)

    def together(self, name: str, size: float) -> float:
        """Seconds of another collective operation of all processes."""
        return self._time(collective_named(name, size, self.count))

    def among(self, name: str, size: float, count: int) -> float:
        """Seconds of a collective operation of some processes, by its rounds where only one message was measured."""
        each = collective_named(name, size, count)
        if each.name == "bcast":
            return math.ceil(math.log2(count)) * self._time(each, 2) if count > 1 else 0.0
        return self._time(each, count)

    def _time(self, each: Collective, count: int | None = None) -> float:
        count = count or self.count
        if count not in self.times:
            self.times[count] = times_by_size(self.result.collectives, count)
        times = self.times[count]
        if each.name not in times:
            raise InputError(f"{each.name} was not measured, expected a result of metasched signature run")
        sizes, seconds = times[each.name]
        return float(np.interp(each.size, sizes, seconds))


def timed(application: Application, result: Result) -> Timed:
    """The time of the application, phase by phase."""
    (whole,) = composed(application, result.processes, lambda sample: [MeasuredCosts(result, sample)])
    return Timed(whole.phases, warnings=whole.warnings)


def by_synthetic(application: Application, results: Mapping[str, Result]) -> Engine:
    """An engine that answers for the numbers of processes that the synthetic signature was run for.

    Raises
    ------
    InputError : when a result is of another application, or two are of one number of processes.
    """
    own = digest(application)
    known: dict[int, Result] = {}
    for where, each in results.items():
        if each.application != own:
            raise InputError("was measured for another application, expected the one that is predicted", where=where)
        if each.processes in known:
            raise InputError(f"is a second result for {each.processes} processes, expected one", where=where)
        known[each.processes] = each

    def engine(count: int) -> Timed:
        if count not in known:
            listed = ", ".join(map(str, sorted(known)))
            raise InputError(f"the synthetic signature was run for {listed} processes, not for {count}")
        return timed(application, known[count])

    return engine
