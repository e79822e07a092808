"""The effects of node failures on a placement: success probability, completion with restarts, the best P."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.blocks.failures import FailureRate, best_interval, best_pieces, from_scratch, in_pieces, young
from metasched.placement.ranking.query import Curve
from metasched.records import InputError, Interval

#: Mean times until a node fails, and times that checkpoints take, that are counted with (s).
NODE_MTTF, CHECKPOINT = (1e-3, 1e15), (1e-6, 1e9)


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints that each take ``cost`` seconds.

    Parameters
    ----------
    young, exact : seconds of work between two of a long job, by Young and by Lambert's function.
    number : of checkpoints with which this job is expected to end first; 0 where none pays.
    interval : seconds of work between two of them, the exact one fitted to the length of the job; None without any.
    expected_completion : with that number (s).
    """

    cost: float
    young: float
    exact: float
    number: int
    interval: float | None
    expected_completion: float


@dataclass(frozen=True)
class Reliability:
    """A placement under failures.

    Parameters
    ----------
    rate : failures per second of a node.
    nodes : of the placement.
    success : probability that none fails within the predicted execution time.
    interval : of that probability.
    expected_completion : queue wait and runs that begin again after each failure (s).
    checkpoints : the same with checkpoints, where they were asked about.
    processors, completion : arrays of shape (p,), the expected completion for each number of processors (s), with
        checkpoints where they were asked about.
    fastest : the number of processors whose expected completion is the earliest; None where none is expected to end.
    """

    rate: FailureRate
    nodes: int
    success: float
    interval: Interval
    expected_completion: float
    checkpoints: Checkpoints | None
    processors: Ints
    completion: Floats
    fastest: int | None


def check_failure_times(node_mttf: float | None, checkpoint: float | None) -> None:
    """Refuse times (s) that nothing can be worked out with.

    >>> check_failure_times(None, -3.0)
    Traceback (most recent call last):
    metasched.records.errors.InputError: --checkpoint is -3, expected seconds from 1e-06 to 1e+09
    """
    asked = (("--node-mttf", node_mttf, NODE_MTTF), ("--checkpoint", checkpoint, CHECKPOINT))
    for option, seconds, (least, most) in asked:
        if seconds is not None and not least <= seconds <= most:
            raise InputError(f"{option} is {seconds:g}, expected seconds from {least:g} to {most:g}")


def under_failures(
    curve: Curve,
    processors: int,
    nodes: int,
    rate: FailureRate,
    cost: float | None,
    level: float,
    *,
    slowdown: float = 1.0,
) -> Reliability:
    """The effects of failures on the best placement, and on those with another number of processors.

    Parameters
    ----------
    curve : the best placement for each number of processors.
    processors, nodes : of the best placement of all; others take as many processors of each node.
    rate : of a node.
    cost : of a checkpoint (s); None where none are written.
    level : of the interval.
    slowdown : of the best placement by other jobs, which slow down the others as much.

    Examples
    --------
    >>> p = np.array([1_000, 10_000, 100_000])
    >>> time = 8.64e7 / p
    >>> found = under_failures(Curve(p, time, time, time, time), 100_000, 100_000, FailureRate(5.03372e-10), None, 0.9)
    >>> round(found.expected_completion, 3), round(found.success, 4), found.fastest
    (883.064, 0.9574, 100000)
    """
    struck = rate.mean * np.ceil(curve.processors * nodes / processors)
    wait, work = curve.completion - curve.execution_time, slowdown * curve.execution_time
    here = int(np.flatnonzero(curve.processors == processors)[0])
    scratch = wait + from_scratch(work, struck)
    checkpoints, completion = None, scratch
    if cost is not None:
        pieces = best_pieces(work, struck, cost)
        completion = wait + in_pieces(work, struck, cost, pieces)
        number = int(pieces[here]) - 1
        checkpoints = Checkpoints(
            cost,
            float(young(cost, struck[here])),
            float(best_interval(cost, struck[here])),
            number,
            float(work[here] - cost) / (number + 1) if number else None,
            float(completion[here]),
        )
    duration = float(work[here])
    first = int(completion.argmin())
    low, high = rate.success_between(duration, nodes, level)
    return Reliability(
        rate,
        nodes,
        rate.success(duration, nodes),
        Interval(low, high, level),
        float(scratch[here]),
        checkpoints,
        curve.processors,
        completion,
        int(curve.processors[first]) if np.isfinite(completion[first]) else None,
    )
