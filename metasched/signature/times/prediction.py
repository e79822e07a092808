"""The time of a run on more processes: what an engine says of each phase, with an interval from rehearsal.

Eq. 6: the time is the sum over phases of the time of one execution, in the process that ends last, times the weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.signature.times.timed import Engine, PhaseTime, Timed

#: Level of intervals.
LEVEL = 0.90


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far an engine's times may be off at the level of intervals.

    Parameters
    ----------
    whole, messages : in the logarithm of the whole, and as a share of what messages take.
    grown, power : beyond the largest run it is at least ``grown`` times a power of the doublings, counted from 1 there.
    """

    whole: float
    messages: float
    grown: float = 1.0
    power: float = 1.0

    def of(self, timed: Timed, factor: float) -> float:
        """How far the logarithm of a time may be off: computation is known, communication by blocks less so."""
        return math.hypot(self.whole, self.messages * factor * timed.carrying / _time(timed, factor))

    def beyond(self, doublings: float) -> float:
        """How many times as far a time may be off, by how many doublings it is beyond the largest run."""
        return max(1.0, self.grown * math.pow(1.0 + doublings, self.power))


#: Calibrated on the programs of ``benchmarks/signature/design.py``, none of which is judged; but for replays, whose
#: truth is a replay there. Blocks are rehearsed on every traced run, and few misses are as large as the largest.
DOUBT = {"blocks": Doubt(0.004, 0.08, 0.37, 1.5), "replay": Doubt(0.004, 0.0), "synthetic": Doubt(0.004, 0.01)}
#: The same where no run is timed, so that the speed of computation is not known either.
UNKNOWN = {"blocks": Doubt(0.25, 0.66), "replay": Doubt(0.08, 0.0), "synthetic": Doubt(0.08, 0.66)}
#: By how much runs may correct what blocks say of messages.
CORRECTION = (0.5, 2.0)
#: A run that took so many times as long as predicted, or as short, ran on another machine than the engine describes.
STRANGE = 2.0
#: By how many times the seconds that statistics miss of what follows no rule grow with each doubling: twice, as the
#: messages that one process has with all others, and a quarter more, since one run tells how many they are. Chosen on
#: the design programs of ``benchmarks/signature/without_rule.py``.
GROWTH = 2.5


@dataclass(frozen=True)
class Prediction:
    """The predicted time for one number of processes.

    Parameters
    ----------
    processes : the number.
    execution_time, interval : how long it takes (s), and between what.
    engine : what computed it.
    phases : the time of each.
    energy : of all nodes (J); NaN where it is not known.
    success : probability that no node fails; NaN where it is not known.
    warnings : what a user should know, one clause each.
    """

    processes: int
    execution_time: float
    interval: tuple[float, float]
    engine: str
    phases: tuple[PhaseTime, ...]
    energy: float = math.nan
    success: float = math.nan
    warnings: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The prediction by name of each figure, times in s, as ``--json`` prints it."""
        low, high = self.interval
        document: dict[str, Any] = {
            "processes": self.processes,
            "execution_time": self.execution_time,
            "interval": {"low": low, "high": high, "level": LEVEL},
            "engine": self.engine,
            "phases": [asdict(each) for each in self.phases],
        }
        if math.isfinite(self.energy):
            document["energy"] = self.energy
        if math.isfinite(self.success):
            document["success"] = self.success
        return document


def predictions(
    engine: Engine, name: str, counts: Sequence[int], measured: Mapping[int, float], corrected: bool,
    ruled: bool = True, others: Sequence[Engine] = (),
) -> list[Prediction]:  # fmt: skip
    """Predict numbers of processes, after a rehearsal on those that were timed.

    Parameters
    ----------
    engine, name : what tells times, ``blocks``, ``replay`` or ``synthetic``.
    counts : what is asked for.
    measured : execution times of runs (s), by number of processes.
    corrected : whether runs correct what the engine says of messages.
    ruled : whether all calls follow rules. Else what was missed of the runs counts as growing with the processes.
    others : what tells the times by other rules that the runs allow as well; the interval holds all of them.
    """
    timed = {count: engine(count) for count in sorted({*measured, *counts})}
    learned = sorted(measured)
    factor, worse, most, missed = 1.0, 1.0, 0.0, 0.0
    doubt = DOUBT[name] if learned else UNKNOWN[name]
    warnings: tuple[str, ...] = ()
    if learned:
        factor = _factor([timed[n] for n in learned], [measured[n] for n in learned]) if corrected else 1.0
        # The rehearsal: the largest run, from the smaller ones alone.
        *some, last = learned
        before = _factor([timed[n] for n in some], [measured[n] for n in some]) if corrected and some else 1.0
        rehearsed = [(last, before), *((n, factor) for n in some)]
        misses = {n: _miss(timed[n], by, measured[n]) for n, by in rehearsed}
        worse = max(1.0, *(misses[n] / doubt.of(timed[n], by) for n, by in rehearsed))
        most, at = max((miss, n) for n, miss in misses.items())
        # Without the factor of messages, which makes up at the traced numbers for what statistics miss at all others.
        missed = 0.0 if ruled else measured[last] - timed[last].time
        if most > math.log(STRANGE):
            ratio = measured[at] / _time(timed[at], dict(rehearsed)[at])
            warnings = (
                f"the run on {number_of(at, 'process', 'processes')} took {ratio:.3g} times as long as predicted: was "
                "it on such hardware, with a processor for each process?",
            )
    else:
        warnings = ("no timed run was predicted to compare: the interval is that of the engine in general",)
    found = []
    for count in counts:
        of_count = timed[count]
        phases = tuple(
            PhaseTime(
                each.phase,
                each.weight,
                each.computation + each.communication + (factor - 1.0) * taken,
                each.computation,
                each.communication + (factor - 1.0) * taken,
            )
            for each, taken in of_count.of_messages
        )
        time = sum(each.weight * each.time for each in phases)
        beyond = max(math.log2(count / learned[-1]), 0.0) if learned else 0.0
        # Another machine is as much another one for more processes: its miss does not grow with them.
        strange = most + math.log(STRANGE) * (1.0 + beyond)
        own = doubt.of(of_count, factor) * doubt.beyond(beyond)
        # What took longer than statistics say takes still longer with more processes; chance may be to either side.
        longer, shorter = (
            math.exp(min(max(worse * own, own + math.log1p(abs(missed) * by / time)), strange))
            for by in (GROWTH**beyond if missed * way > 0 else 1.0 for way in (1.0, -1.0))
        )
        times = [time, *(_time(each, factor) for each in _possible(others, count))]
        found.append(
            Prediction(
                count,
                time,
                (min(times) / shorter, max(times) * longer),
                name,
                phases,
                of_count.energy,
                of_count.success,
                (*of_count.warnings, *warnings),
            )
        )
    return found


def _possible(engines: Sequence[Engine], count: int) -> Iterator[Timed]:
    """What those engines tell that have rules for so many processes."""
    for engine in engines:
        try:
            yield engine(count)
        except InputError:
            continue


def _time(timed: Timed, factor: float) -> float:
    return max(timed.time + (factor - 1.0) * timed.carrying, 1e-30)


def _miss(timed: Timed, factor: float, measured: float) -> float:
    return abs(math.log(_time(timed, factor) / measured))


def _factor(timed: Sequence[Timed], measured: Sequence[float]) -> float:
    """The factor of messages with the smallest relative errors; 1 if they take no time."""
    shares = np.array([each.carrying / m for each, m in zip(timed, measured, strict=True)])
    left = np.array([(m - each.time + each.carrying) / m for each, m in zip(timed, measured, strict=True)])
    # One more run, at 1, of an error of 0.5 %: what hardly communicates says nothing.
    doubt = 0.005**2
    factor = (float(shares @ left) + doubt) / (float(shares @ shares) + doubt)
    return min(max(factor, CORRECTION[0]), CORRECTION[1])
