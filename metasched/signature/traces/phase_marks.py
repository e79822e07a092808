"""Marks of the phases of a recorded run, from which predictors by phases learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metasched.records import InputError, PhaseMark, Request
from metasched.signature.traces.phases import Machine, phases_of, worked
from metasched.signature.traces.trace import Trace

#: The shortest time that a mark states (s): a phase may have no work for some processes.
SHORTEST = 1e-9


def phases_to_mark(trace: Trace, marked: Iterable[str]) -> list[int]:
    """The phases of a run to mark, ascending: those of the runs that are marked already, else the relevant ones.

    Runs on other numbers of processes have the same phases in the same places.

    Parameters
    ----------
    trace : instructions are nanoseconds.
    marked : the phases in marks of other runs of the program, in any order.

    Raises
    ------
    InputError : when the run cannot have the phases of the others.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> step = [("compute", (1e6,)), ("barrier", ())]
    >>> whole = [("init", ()), *(step * 10), ("finalize", ())]
    >>> trace = trace_of({0: whole, 1: whole})
    >>> phases_to_mark(trace, ()), phases_to_mark(trace, ["2", "1", "2"])
    ([1], [1, 2])
    """
    found, names = phases_of(trace, Machine()).phases, dict.fromkeys(marked)
    if not names:
        return [each.phase for each in found if each.relevant]
    known = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    if len(known) < len(names) or known[-1] >= len(found):
        raise InputError(
            f"has {len(found)} phases, and those of the runs that are marked are {', '.join([*names][:8])}: "
            "expected runs of one program, marked by this command alone"
        )
    return known


def phase_marks(trace: Trace, durations: Sequence[float], phases: Sequence[int], asked: Request) -> list[PhaseMark]:
    """What each process did in each phase of a run.

    Parameters
    ----------
    trace : instructions are nanoseconds.
    durations : of each process (s).
    phases : ascending.
    asked : the loads that the run met.
    """
    seconds = worked(trace, durations, phases, Machine())
    return [
        PhaseMark(str(phase), process, asked.available_cpu, asked.available_bandwidth, max(float(each), SHORTEST))
        for phase, of in zip(phases, seconds, strict=True)
        for process, each in enumerate(of.tolist())
    ]
