"""How the work of a phase is spread over its processes, by their position, whatever their number.

Eq. (4) gives every process functions of its own, which leaves the last of 16 processes without a single run to learn
from when only 8 have been tried. Here the work is a density over the positions 0 to 1, learned from what processes of
one and the same run did differently: process pid of P has the integral from pid / P to (pid + 1) / P. A process with
twice the work on a processor is like one with the mean work on half of it, so the density enters Eq. (4) through the
available CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from metasched.arrays import Floats
from metasched.records import PhaseMark

#: Pieces of the density.
PIECES = 8
#: Least density, and what one unit of curvature counts for beside a log error.
LEAST, SMOOTH = 0.02, 0.05


@dataclass(frozen=True)
class WorkProfile:
    """A piecewise linear density of work with mean 1 over relative positions 0 to 1.

    Parameters
    ----------
    density : its values at evenly spaced positions, array of shape (k,), above 0.

    Examples
    --------
    >>> WorkProfile(np.array([0.5, 1.5])).share(np.arange(4), 4)
    array([0.625, 0.875, 1.125, 1.375])
    """

    density: Floats

    @classmethod
    def even(cls) -> WorkProfile:
        """A density that gives every process the same work."""
        return cls(np.ones(2))

    @classmethod
    def of(cls, runs: Sequence[Sequence[PhaseMark]]) -> WorkProfile:
        """Learn a density from the marks of one phase, those of each run together.

        >>> marks = [PhaseMark("1", pid, 0.5, 90.0, 3.0 * (1.0 + pid)) for pid in range(8)]
        >>> WorkProfile.of([marks, marks]).share(np.array([0, 7]), 8).round(1)
        array([0.2, 1.8])
        """
        together = [marks for marks in runs if len(marks) > 1]
        if not together:
            return cls.even()
        run = np.repeat(np.arange(len(together)), [len(marks) for marks in together])
        size = np.array([len(marks) for marks in together])
        process = np.array([mark.process for marks in together for mark in marks])
        work = np.log([m.execution_time * m.avg_avail_cpu for marks in together for m in marks])

        def centred(values: Floats) -> Floats:
            return np.asarray(values - (np.bincount(run, values) / size)[run])

        observed = centred(work)

        def misfit(density: Floats) -> Floats:
            fit = observed - centred(np.log(_shares(density, process, size[run])))
            # The level is free within every run, so it is held at the mean.
            return np.concatenate([fit, SMOOTH * np.diff(density, 2), [density.mean() - 1.0]])

        found = scipy.optimize.least_squares(
            misfit, np.ones(PIECES + 1), bounds=(LEAST, np.inf), loss="soft_l1", f_scale=0.1
        ).x
        return cls(found / (0.5 * (found[1:] + found[:-1])).mean())

    def share(self, process: NDArray[np.integer], processes: int | NDArray[np.integer]) -> Floats:
        """Work of processes over the mean: ids and numbers of processes, arrays of one shape (n,), to (n,)."""
        return _shares(self.density, np.asarray(process), np.asarray(processes))

    def effective_cpu(self, cpu: Floats, process: NDArray[np.integer], processes: int | NDArray[np.integer]) -> Floats:
        """Available CPU for each unit of work, in units of the least loaded position, so that it stays within 1.

        Parameters
        ----------
        cpu : available CPU of each process, a share of one processor, shape (n,).
        process : its number, from 0.
        processes : how many there are in its run.
        """
        # Where all have the least work the division may round up to more than a whole processor.
        work = np.maximum(self.share(process, processes) / float(self.density.min()), 1.0)
        return np.asarray(cpu / work)

    def explains(self, runs: Sequence[Sequence[PhaseMark]]) -> bool:
        """Whether processes worked each for itself: their times follow their own work and CPU.

        Within a run, times divided by work and by the slowness of the processor are then alike. Where the processes of
        a phase wait for each other all the time, it is the times themselves that are alike.
        """
        apart = alike = 0.0
        for marks in runs:
            cpu = np.array([mark.avg_avail_cpu for mark in marks])
            time = np.log([mark.execution_time for mark in marks])
            own = time + np.log(self.effective_cpu(cpu, np.array([mark.process for mark in marks]), len(marks)))
            apart += float(np.sum((own - own.mean()) ** 2))
            alike += float(np.sum((time - time.mean()) ** 2))
        return apart < alike


def _shares(density: Floats, process: NDArray[np.integer], processes: NDArray[np.integer]) -> Floats:
    """Integral of a piecewise linear density over the block of each process, times the number of processes."""
    step = 1.0 / (len(density) - 1)
    whole = np.concatenate([[0.0], np.cumsum(0.5 * step * (density[1:] + density[:-1]))])

    def integral(position: Floats) -> Floats:
        piece = np.minimum((position / step).astype(np.intp), len(density) - 2)
        into = position - piece * step
        slope = (density[piece + 1] - density[piece]) / step
        return np.asarray(whole[piece] + density[piece] * into + 0.5 * slope * into * into)

    return np.asarray(processes * (integral((process + 1) / processes) - integral(process / processes)))
