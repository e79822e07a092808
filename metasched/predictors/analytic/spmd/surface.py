"""Execution time and speedup of an application over processors and disks, whole surfaces in one call."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.spmd import bus, clustered, synchronous
from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.bursts import AS_IT_IS, Scale, bursts, groups
from metasched.records import InputError

#: Most processors; the time to solve a point grows with them.
MOST_PROCESSORS = 100_000


def execution_time(application: Application, processors: ArrayLike, disks: ArrayLike) -> Floats:
    """T(p, d) of (2), summed over the phases.

    Parameters
    ----------
    application : what runs.
    processors, disks : whole numbers of at least 1, broadcast against each other.

    Returns
    -------
    array of the broadcast shape, seconds; NaN where a phase is not defined: c must divide p, and in a clustered phase
    d must divide p/c.

    Examples
    --------
    >>> application = Application("a", (Phase(8.0, io_transfer=1.0, synchronization=None, spread="uniform"),))
    >>> execution_time(application, [[1], [3]], [1, 2]).round(3)
    array([[9. , 8.5],
           [5. , 4.5]])
    """
    p, d = np.broadcast_arrays(_whole("processors", processors), _whole("disks", disks))
    time = np.zeros(p.size)
    for phase in application.phases:
        time += phase_time(phase, p.ravel(), d.ravel())
    return time.reshape(p.shape)


def speedup(
    application: Application, processors: ArrayLike, disks: ArrayLike, reference_time: float | None = None
) -> Floats:
    """s(p, d) of (3): ``reference_time``, the application's own on one processor and disk if None, over T(p, d).

    Parameters
    ----------
    application : its phases.
    processors, disks : p and d, arrays that broadcast to the shape of the answer.
    reference_time : what is divided by T (s).

    Examples
    --------
    >>> speedup(Application("a", (Phase(8.0, 2.0),)), 4, 1)
    array(1.2)
    """
    reference = application.reference_time if reference_time is None else reference_time
    return np.asarray(reference / execution_time(application, processors, disks))


def phase_time(phase: Phase, processors: Ints, disks: Ints, times: Scale = AS_IT_IS) -> Floats:
    """Seconds of one phase at points that are given as arrays of shape (n,); NaN where it is not defined."""
    count = groups(phase, processors)
    defined = count > 0
    if phase.io == "clustered":
        defined &= count % disks == 0
    time = np.full(processors.shape, np.nan)
    if defined.any():
        here = Scale(
            *(np.broadcast_to(part, defined.shape)[defined] for part in (times.computation, times.transfer, times.io))
        )
        at = bursts(phase, processors[defined], disks[defined], here)
        if phase.io == "clustered":
            cycle = clustered.cycle_time(at, disks[defined], phase.computation_bursts)
        elif phase.io == "bus":
            cycle = bus.cycle_time(at, phase.computation_bursts)
        else:
            cycle = synchronous.cycle_time(at, phase.computation_bursts)
        time[defined] = phase.cycles * cycle
    return time


def _whole(name: str, values: ArrayLike) -> Ints:
    given = np.asarray(values, dtype=float)
    wrong = ~((given >= 1) & (given <= MOST_PROCESSORS) & (given == np.floor(given)))
    if wrong.any():
        raise InputError(f"{name} holds {given[wrong].flat[0]:g}, expected whole numbers from 1 to {MOST_PROCESSORS}")
    return given.astype(np.int64)
