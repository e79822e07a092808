"""What is asked of the runs that energy is learned from: their conditions, and whether their meters can be believed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.abilities import UsualLoad
from metasched.predictors.memory.representable import LARGEST_DIGITS
from metasched.predictors.memory.window import observations
from metasched.records import Run

#: Mean powers that many times off those of the other runs are errors of the meter.
MISREAD = 30.0


def misread(runs: Sequence[Run]) -> list[bool]:
    """Which runs have a mean power that is no power of this application, as where a counter jumped.

    Power grows with the processors at most in proportion, and never falls with them: a run is left out if it is more
    than :data:`MISREAD` times off the range between both for the median run, or if its energy is too large or too small
    to be computed with.
    """
    if not runs:
        return []
    energies = np.log([run.energy or math.nan for run in runs])
    watts = energies - np.log([run.execution_time for run in runs])
    processors = np.log([float(run.processors) for run in runs])
    more, count = watts - np.median(watts), processors - np.median(processors)
    off = np.maximum(more - np.maximum(count, 0.0), np.minimum(count, 0.0) - more)
    return [bool(each) for each in (off > math.log(MISREAD)) | (np.abs(energies) > LARGEST_DIGITS * math.log(10.0))]


def conditions(runs: Sequence[Run], usual: Sequence[UsualLoad] = ()) -> Floats:
    """Logarithms of N, P, CPU and bandwidth of runs, shape (n, 4).

    Parameters
    ----------
    runs : one or more.
    usual : CPU and bandwidth where they were not measured; by default those of idle nodes.
    """
    found = observations(runs, *(load.median for load in usual))
    return np.asarray(np.log(np.stack([found.problem_size, found.processors, found.cpu, found.bw], axis=1)))


def frequencies_of(runs: Sequence[Run]) -> Floats:
    """Clocks of runs (MHz), shape (n,), NaN where they are not recorded."""
    return np.array([run.settings.frequency for run in runs], dtype=np.float64)
