"""The queue wait of a job, by the number of processors that it requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.history.queue import Line, PrecedingJob
from metasched.records import InputError


@dataclass(frozen=True, slots=True)
class QueueWait:
    """A wait that changes in steps with the number of processors.

    Parameters
    ----------
    processors : array of shape (k,), ascending, the first is 1: a step holds from this many processors on.
    seconds : array of shape (k,), the wait there.

    Examples
    --------
    >>> QueueWait([1, 9], [0.0, 600.0]).at([1, 8, 9, 64]).tolist()
    [0.0, 0.0, 600.0, 600.0]
    """

    processors: Ints
    seconds: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "processors", np.asarray(self.processors, dtype=np.int64))
        object.__setattr__(self, "seconds", np.asarray(self.seconds, dtype=np.float64))
        if not self.processors.size or self.processors[0] != 1 or np.any(np.diff(self.processors) <= 0):
            raise InputError(f"steps of a wait start at {self.processors.tolist()}, expected 1 and then ascending")
        if not np.all(np.isfinite(self.seconds) & (self.seconds >= 0)):
            raise InputError(f"waits are {self.seconds.tolist()}, expected finite numbers of at least 0")

    @classmethod
    def always(cls, seconds: float) -> QueueWait:
        """The same wait for any number of processors."""
        return cls(np.array([1]), np.array([seconds]))

    def at(self, processors: ArrayLike) -> Floats:
        """The wait of jobs that request ``processors`` processors (s)."""
        step = np.searchsorted(self.processors, np.asarray(processors), side="right") - 1
        return np.asarray(self.seconds[step])


def earliest_start(
    free: int, running: Sequence[tuple[int, float]], queued: Sequence[tuple[int, float]] = ()
) -> QueueWait:
    """The earliest time from which enough processors stay free, if the jobs before start by the rules of a queue.

    Parameters
    ----------
    free : processors free now.
    running : for each running job its processors and its remaining time (s).
    queued : for each job ahead in the queue its processors and its execution time (s), first come first.

    Returns
    -------
    QueueWait
        Steps up to all processors there are; it says nothing of larger jobs.

    Examples
    --------
    Two processors are free now, two more in 10 s, four more in 60 s.

    >>> wait = earliest_start(2, [(2, 10.0), (4, 60.0)])
    >>> wait.at([1, 2, 3, 4, 5, 8]).tolist()
    [0.0, 0.0, 10.0, 10.0, 60.0, 60.0]
    """
    before = (
        [PrecedingJob(processors, seconds, (seconds,)) for processors, seconds in jobs] for jobs in (running, queued)
    )
    return QueueWait(*Line(free, *before).steps())
