"""Parts of ``MPI_Alltoallv`` that follow no rule: shares of what a process sends to all, received as they are sent.

What does not divide evenly goes to the first processes, a byte or value more from each. So the parts of a process add
up to its total, and there are two kinds of processes only, however many there are.
"""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.signature.rules.application import Rule
from metasched.signature.traces.actions import Shape


def shares(shape: Shape, rule: Rule) -> bool:
    """Whether neither an action's total nor its parts follow a rule."""
    to_all = shape.name.lower() in ("alltoallv", "ialltoallv")
    return to_all and all(each.law is not None for each in (rule.numbers[0], *rule.lists))


def shared_out(numbers: tuple[float, ...], count: int, first: bool) -> tuple[tuple[float, ...], tuple[Floats, Floats]]:
    """The numbers of an action outside its lists, and its lists, for as many processes.

    Parameters
    ----------
    numbers : the total first.
    count : how many processes there are.
    first : whether the process is one of those to which what is left over goes.

    Examples
    --------
    >>> numbers, (sent, received) = shared_out((14.0, 13.0, 6.0, 6.0), 4, first=True)
    >>> numbers, sent.tolist(), received.tolist()
    ((14.0, 16.0, 6.0, 6.0), [4.0, 4.0, 3.0, 3.0], [4.0, 4.0, 4.0, 4.0])
    """
    each, left = divmod(numbers[0], count)
    sent = each + (np.arange(count) < left).astype(np.float64)
    received = np.full(count, each + first, dtype=np.float64)
    return (numbers[0], float(received.sum()), *numbers[2:]), (sent, received)
