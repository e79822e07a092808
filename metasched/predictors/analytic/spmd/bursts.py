"""The three submodels of Cremonesi and Gennaro, section 3: CPU, communication and I/O bursts as functions of p and d.

They turn a phase into the service times of its queueing network, one network for each point (p, d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.spmd.application import Phase, Spread


@dataclass(frozen=True, slots=True)
class Bursts:
    """Service times of one phase at n points.

    Parameters
    ----------
    delay : z of (15), seconds of a computation burst in which nobody waits for the network, shape (n,).
    network : S_queue^COM of (9), seconds of a computation burst at the shared part of the network, shape (n,).
    io : service time of one I/O request, (14), shape (n,).
    groups : p/c, groups of processors that wait for each other, shape (n,).
    """

    delay: Floats
    network: Floats
    io: Floats
    groups: Ints


@dataclass(frozen=True, slots=True)
class Scale:
    """What the times of a phase are multiplied by at n points, each a number or of shape (n,).

    Parameters
    ----------
    computation : of both CPU times.
    transfer : of the communication transfer time.
    io : of the I/O transfer time.
    """

    computation: Floats | float = 1.0
    transfer: Floats | float = 1.0
    io: Floats | float = 1.0


#: The phase as it is.
AS_IT_IS = Scale()


def synchronization_cost(level: ArrayLike, spread: Spread = "exponential") -> Floats:
    """Mean of the slowest of c bursts over the mean of one, h(c).

    Parameters
    ----------
    level : c, how many processes wait for each other, shape (n,).
    spread : distribution of the bursts.

    Examples
    --------
    >>> synchronization_cost([1, 2, 4]), synchronization_cost([1, 2, 4], "uniform")
    (array([1.        , 1.5       , 2.08333333]), array([1.        , 1.33333333, 1.6       ]))
    """
    c = np.asarray(level, dtype=float)
    if spread == "uniform":
        return np.asarray(2.0 * c / (c + 1.0))
    return np.asarray(scipy.special.digamma(c + 1.0) + np.euler_gamma)  # (6): the harmonic number 1 + 1/2 + ... + 1/c


def groups(phase: Phase, processors: Ints) -> Ints:
    """p/c at each point, shape (n,); 0 where c does not divide p."""
    level = _level(phase, processors)
    return np.where(processors % level == 0, processors // level, 0)


def bursts(phase: Phase, processors: Ints, disks: Ints, times: Scale = AS_IT_IS) -> Bursts:
    """Service times at points where c divides p, both arrays of shape (n,).

    Parameters
    ----------
    phase : whose costs these are.
    processors, disks : p and d of each point.
    times : factors of computation, transfer and I/O.
    """
    p, d = processors.astype(float), disks.astype(float)
    count = groups(phase, processors)
    scale = np.where(p > 1, p**-phase.scale_exponent, 0.0)  # (7), and g(1) = 0
    startup = np.where(p > 1, phase.communication_startup * p**phase.startup_exponent, 0.0)
    transfer = times.transfer * scale * phase.communication_transfer
    cpu = times.computation * (phase.parallel_computation / p + phase.serial_computation)  # Amdahl's law
    cost = synchronization_cost(_level(phase, processors), phase.spread)
    return Bursts(
        delay=cost * cpu + startup + (1.0 - phase.contention) * transfer,  # (15)
        network=phase.contention * transfer,  # (9)
        io=phase.io_startup + times.io * phase.io_transfer / _io_divisor(phase, count, d),  # (14)
        groups=count,
    )


def _level(phase: Phase, processors: Ints) -> Ints:
    if phase.synchronization is None:
        return processors
    return np.minimum(phase.synchronization, processors)


def _io_divisor(phase: Phase, count: Ints, disks: Floats) -> Floats:
    if phase.io == "synchronous":
        return disks  # (11)
    return count * disks if phase.io == "bus" else count.astype(float)  # (12), (13)
