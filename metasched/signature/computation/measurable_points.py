"""Time per instruction against the instructions that a process has: measurable points (section 3.3, Tables 5 and 6).

A process that has less to do in a phase has a smaller working set, and instructions take less time once it lies in the
cache. Runs of a small workload on few processes, with as many instructions in each process as many processes would have
of the large one, show how long an instruction takes there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.records import InputError
from metasched.signature.computation.instruction_groups import ALIKE
from metasched.signature.traces.phases import summed
from metasched.signature.traces.trace import Trace

#: Most points of a phase, and most phases.
MOST_POINTS, MOST_PHASES = 1_000, 10_000


@dataclass(frozen=True)
class Pace:
    """Time per instruction of a phase (s), as a function of the instructions of a process in one execution.

    Parameters
    ----------
    instructions : ascending, an array of shape (points,).
    seconds : of each instruction, an array of the same shape.

    Examples
    --------
    >>> pace = Pace((1e6, 1e8), (5e-10, 1e-9))
    >>> pace(np.array([1e5, 1e7, 1e9])).round(12).tolist()
    [5e-10, 7.07e-10, 1e-09]
    """

    instructions: tuple[float, ...]
    seconds: tuple[float, ...]

    def __call__(self, instructions: Floats) -> Floats:
        """Seconds of each instruction where a process has so many: between points by logarithms, outside as at them."""
        at = np.log(np.maximum(instructions, 1e-300))
        return np.asarray(np.exp(np.interp(at, np.log(self.instructions), np.log(self.seconds))))

    def reaches(self, instructions: float) -> bool:
        """Whether a point has as many instructions, as nearly as processes of a group, or points lie on both sides."""
        return ALIKE * self.instructions[0] <= instructions <= self.instructions[-1] / ALIKE

    def as_dict(self) -> dict[str, Any]:
        """The pace as a JSON document, which :meth:`of` reads."""
        return {"instructions": list(self.instructions), "seconds": list(self.seconds)}

    @classmethod
    def of(cls, document: Any) -> Pace:
        """The pace of a document; InputError for what is none."""
        try:
            numbers = [tuple(float(each) for each in document[name]) for name in ("instructions", "seconds")]
            sound = 0 < len(numbers[0]) == len(numbers[1]) <= MOST_POINTS
            sound = sound and all(0.0 < each < 1e30 for some in numbers for each in some)
            sound = sound and all(np.diff(numbers[0]) > 0)
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise InputError(f"pace {str(document)[:60]!r} is not valid")
        return cls(*numbers)


@dataclass(frozen=True)
class Point:
    """A measured run: instructions and seconds of one execution of each phase, averaged over the processes.

    Parameters
    ----------
    processes : of the run.
    instructions, seconds : of each phase.
    """

    processes: int
    instructions: tuple[float, ...]
    seconds: tuple[float, ...]


def point(counted: Trace, timed: Trace) -> Point:
    """Instructions and seconds of each phase, from two traces of one run.

    Parameters
    ----------
    counted : amounts are instructions.
    timed : the same calls; amounts are nanoseconds.

    Raises
    ------
    InputError : when the traces have other calls than each other.
    """
    found = []
    for trace in (counted, timed):
        amounts = np.array([trace.table.instructions(action) for action in range(len(trace.table.shape))])
        weights, (sums,) = summed(trace, (amounts,))
        found.append((weights, sums.mean(axis=0) / weights))
    (weights, instructions), (other, nanoseconds) = found
    if len(counted.processes) != len(timed.processes) or not np.array_equal(weights, other):
        raise InputError("the traces of instructions and of times have other phases, expected two of the same run")
    return Point(len(counted.processes), tuple(instructions.tolist()), tuple((1e-9 * nanoseconds).tolist()))


def paces(points: Sequence[Point]) -> tuple[Pace | None, ...]:
    """The pace of each phase by its place in the program; None for those without instructions.

    Raises
    ------
    InputError : when the runs have different numbers of phases.
    """
    if len({len(each.instructions) for each in points}) > 1:
        listed = ", ".join(f"{len(each.instructions)} with {each.processes}" for each in points)
        raise InputError(f"the numbers of phases are {listed} processes, expected points that have the same phases")
    found: list[Pace | None] = []
    for phase in range(len(points[0].instructions)):
        known: dict[float, list[float]] = {}
        for each in points:
            if each.instructions[phase] > 0.0 and each.seconds[phase] > 0.0:
                per = each.seconds[phase] / each.instructions[phase]
                known.setdefault(float(f"{each.instructions[phase]:.6g}"), []).append(math.log(per))
        listed_ = sorted((many, math.exp(sum(per) / len(per))) for many, per in known.items())
        found.append(Pace(*map(tuple, zip(*listed_, strict=True))) if listed_ else None)
    return tuple(found)
