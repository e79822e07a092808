"""The instruction prediction table: instructions of each phase by group of processes (section 3.3, Table 4).

One row for each phase and instruction group. Rules share out steady totals again (Eq. 4); the table of the
expanded trace is then that of a number of processes which was not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from metasched.signature.computation.instruction_groups import ALIKE, grouped
from metasched.signature.traces.phases import Machine, summed
from metasched.signature.traces.trace import Trace


def total_instructions(per_process: float, weight: float, processes: int) -> float:
    """All instructions of a phase: those of one process and execution, times weight and processes (Eqs. 2 and 3).

    >>> total_instructions(2990984267, 999, 256)
    764926280379648
    """
    return per_process * weight * processes


@dataclass(frozen=True, slots=True)
class GroupOfPhase:
    """A row of the table.

    Parameters
    ----------
    phase, weight : the phase, and how often it is run.
    group : numbered from the one with least instructions.
    processes, first : how many are in the group, and the lowest of their ranks.
    instructions : of one process at one time.
    total : of the group (Eqs. 2 and 3).
    share : of the time of all processes.
    """

    phase: int
    weight: int
    group: int
    processes: int
    first: int
    instructions: float
    total: float
    share: float

    def as_dict(self) -> dict[str, Any]:
        """The row by name of each figure, as ``--json`` prints it."""
        return asdict(self)


def instruction_table(trace: Trace, machine: Machine) -> list[GroupOfPhase]:
    """The instruction groups of each phase of a trace; phases without instructions are left out.

    >>> from metasched.signature.traces.trace import trace_of
    >>> def one(instructions):
    ...     return [("init", ()), *([("compute", (instructions,)), ("barrier", ())] * 10), ("finalize", ())]
    >>> trace = trace_of({rank: one(3e6 if rank < 2 else 1e6) for rank in range(4)})
    >>> [(each.group, each.processes, each.first, each.total) for each in instruction_table(trace, Machine())]
    [(0, 2, 2, 20000000.0), (1, 2, 0, 60000000.0)]
    """
    table = trace.table
    flops = np.array([table.instructions(action) for action in range(len(table.shape))])
    weights, (instructions, seconds) = summed(trace, (flops, machine.seconds(trace)))
    whole = float(seconds.sum()) or 1.0
    rows = []
    for phase, weight in enumerate(weights.tolist()):
        once = instructions[:, phase] / weight
        if not once.any():
            continue
        groups = grouped(once)
        for group in range(int(groups.max()) + 1):
            ranks = np.flatnonzero(groups == group)
            each = float(once[ranks].mean())
            total = total_instructions(each, weight, ranks.size)
            share = float(seconds[ranks, phase].sum()) / whole
            rows.append(GroupOfPhase(phase, weight, group, ranks.size, int(ranks[0]), each, total, share))
    return rows


def drifting(tables: Mapping[int, Sequence[GroupOfPhase]]) -> list[tuple[int, float, dict[int, float]]]:
    """Phases whose total number of instructions changes with n, which the method does not cover.

    Returns
    -------
    Of each such phase its number, its share of the time of the largest run, and its totals by number of processes.
    """
    totals: dict[int, dict[int, float]] = {}
    for n, rows in tables.items():
        for row in rows:
            of = totals.setdefault(row.phase, {})
            of[n] = of.get(n, 0.0) + row.total
    largest = tables[max(tables)]
    return [
        (phase, sum(row.share for row in largest if row.phase == phase), of)
        for phase, of in sorted(totals.items())
        if min(of.values()) < ALIKE * max(of.values())
    ]
