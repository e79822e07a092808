"""Which process ranks are counted from: the root of a tree or the first of a chain, where that is not process 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.arrays import Ints
from metasched.signature.equations.expressions import Expression
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.numbered_runs import NumberedRun
from metasched.signature.traces.trace import Trace

#: How many processes are tried as the first one.
MOST_ORIGINS = 4
#: Shares of all processes that the first one may be at, or near: the same in all runs, near the last, in the middle.
SHARES = (0.0, 1.0, 0.5)


def origins(traces: Sequence[Trace]) -> list[Attribute]:
    """Processes other than 0 that may be the first one, simplest first: no other makes the same calls in any run.

    Parameters
    ----------
    traces : of different counts.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> def gathered(n):
    ...     others = [("recv", (rank, 7, 8, 6)) for rank in range(n - 1)]
    ...     return trace_of({rank: [("send", (n - 1, 7, 8, 6))] if rank < n - 1 else others for rank in range(n)})
    >>> [str(each) for each in origins([gathered(n) for n in (4, 6, 9)])]
    ['n - 1']
    """
    counts = [len(trace.processes) for trace in traces]
    alone = [_alone(trace) for trace in traces]
    found: list[tuple[int, float, Attribute]] = []
    for place, share in enumerate(SHARES):
        for rank in alone[0].tolist():
            by = float(rank - int(share * counts[0]))
            origin = Attribute(expression=Expression(by, ((share, "n"),) if share else ()))
            ranks = [*map(origin.at, counts)]
            fits = all(0 <= one < n and one in each for one, n, each in zip(ranks, counts, alone, strict=True))
            if fits and any(ranks):
                found.append((place, abs(by), origin))
    return [each for *_, each in sorted(found, key=lambda one: one[:2])][:MOST_ORIGINS]


def _alone(trace: Trace) -> Ints:
    """The processes whose calls, in their order, no other process makes."""
    classes = NumberedRun(trace, {}, set()).classes
    return np.flatnonzero(np.bincount(classes)[classes] == 1)
