"""What an engine tells of a run: the time of each phase in the process that ends last."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints

#: Share of the time within which processes end together.
TOGETHER = 0.01


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One execution of a phase in the process that ends last (s): the whole, computation, communication."""

    phase: int
    weight: int
    time: float
    computation: float
    communication: float


@dataclass(frozen=True)
class Timed:
    """The result of an engine.

    Parameters
    ----------
    phases : the time of each.
    messages : of each phase, what messages themselves take of one execution (s), without waits for the computation of
        others; empty where an engine does not tell them from other time in calls.
    energy, success : energy (J) and probability of completion, if they are known.
    warnings : what a user should know, one clause each.
    """

    phases: tuple[PhaseTime, ...]
    messages: tuple[float, ...] = ()
    energy: float = math.nan
    success: float = math.nan
    warnings: tuple[str, ...] = ()

    @property
    def time(self) -> float:
        """Time that the whole run takes (s)."""
        return sum(each.weight * (each.computation + each.communication) for each in self.phases)

    @property
    def carrying(self) -> float:
        """Time that the whole run takes for messages themselves (s)."""
        return sum(each.weight * taken for each, taken in self.of_messages)

    @property
    def of_messages(self) -> Iterator[tuple[PhaseTime, float]]:
        """Each phase, with what messages take of one execution (s)."""
        return zip(self.phases, self.messages or (each.communication for each in self.phases), strict=True)


#: Seconds at a number of processes.
Engine = Callable[[int], Timed]


def phases_in_last(computing: Floats, waiting: Floats, executed: Floats | Ints, weights: Ints) -> tuple[PhaseTime, ...]:
    """Phases in the process that ends last: of those that end within :data:`TOGETHER` of it, in the first.

    Where processes end together, which is the last one depends on rounding, but not what each phase takes in it.

    Parameters
    ----------
    computing, waiting : arrays of shape (processes, phases), seconds.
    executed, weights : how often each phase was run, and how often the application runs it.
    """
    ends = (computing + waiting).sum(axis=1)
    last = int(np.argmax(ends >= (1.0 - TOGETHER) * ends.max()))
    times = (
        np.maximum(executed, np.finfo(np.float64).tiny) * max(float(ends[last]), 1e-30) / max(float(ends.max()), 1e-30)
    )
    seen = zip(weights.tolist(), (computing[last] / times).tolist(), (waiting[last] / times).tolist(), strict=True)
    return tuple(PhaseTime(phase, weight, work + wait, work, wait) for phase, (weight, work, wait) in enumerate(seen))
