"""Exact solutions for several classes of jobs, over the lattice of all smaller populations.

Stations of fixed speed and delays are solved by mean value analysis, level by level. Stations whose speed depends on
their load come in by convolution of normalisation constants, kept as logarithms, and are never divided out again.
Many networks with the same populations and speeds are solved in one call. Axis order: (network, station, class);
inside, the points of the lattice come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Flags, Floats, Ints
from metasched.queueing.lattice import Lattice
from metasched.queueing.series import leave_one_out


@dataclass(frozen=True, slots=True)
class Steady:
    """Steady state of networks at one population.

    Parameters
    ----------
    throughput : array of shape (..., classes), cycles a second.
    queue_length : array of shape (..., stations, classes), mean jobs at each station, in service or waiting.
    """

    throughput: Floats
    queue_length: Floats


def bytes_needed(population: Ints, stations: int, varying: int) -> int:
    """Bytes that the exact solution of a network takes at its peak; ``varying`` stations are load-dependent.

    Parameters
    ----------
    population : jobs of each class.
    stations : of the network.
    varying : of these, whose speed depends on their load.
    """
    points = 1
    for jobs in population:
        points *= int(jobs) + 1
    classes = len(population)
    # Queues, throughputs, constants without each varying station and their work space; indices and their work space.
    constants = 3 * classes + 2 * varying + 6 if varying else 4
    return 8 * points * (stations + 5 * classes + constants + 3)


def solve_exactly(demands: ArrayLike, think_time: ArrayLike, population: ArrayLike, rates: ArrayLike) -> Steady:
    """Solve networks of any stations exactly.

    Parameters
    ----------
    demands : array of shape (..., stations, classes), seconds of service in each cycle at speed 1.
    think_time : array of shape (..., classes), seconds.
    population : array of shape (classes,), the jobs of each class, at least 1.
    rates : array of shape (stations, jobs in total), speed of each station with 1, 2, ... jobs there.

    References
    ----------
    Reiser and Lavenberg 1980 (several chains); Bruell and Balbo 1980, chapter 3; the powers of the demand operator are
    those of Reiser and Kobayashi, Queuing networks with multiple closed chains, IBM J. R&D 19(3), 1975.

    Examples
    --------
    >>> rates = np.ones((2, 3))
    >>> steady = solve_exactly([[1.0, 2.0], [1.0, 0.5]], [0.0, 0.0], [1, 2], rates)
    >>> steady.throughput
    array([0.25      , 0.35714286])
    """
    demands = np.asarray(demands, dtype=float)
    shape, (stations, classes) = demands.shape[:-2], demands.shape[-2:]
    demands = demands.reshape(-1, stations, classes)
    think_time = np.broadcast_to(np.asarray(think_time, dtype=float), (*shape, classes)).reshape(-1, classes)
    rates = np.asarray(rates, dtype=float)
    lattice = Lattice.below(np.asarray(population, dtype=np.int64))

    delay = np.all(rates == np.arange(1, rates.shape[1] + 1), axis=1)
    fixed = np.all(rates == rates[:, :1], axis=1) & ~delay
    varying = np.flatnonzero(~delay & ~fixed)
    idle = think_time + demands[:, delay].sum(axis=1)
    fixed_demands = demands[:, fixed] / rates[fixed, :1]

    throughput, arrival_queue = _mean_values(lattice, fixed_demands, idle)
    queue = np.zeros_like(demands)
    if varying.size:
        base = _log_constants(lattice, throughput, idle + fixed_demands.sum(axis=1) > 0)
        with np.errstate(divide="ignore"):
            factors = [(np.log(demands[:, station]), np.log(rates[station])) for station in varying]
        others = leave_one_out(base, factors, lambda constants, factor: _add_station(lattice, constants, *factor))
        constants = _add_station(lattice, others[0], *factors[0])
        throughput = _throughput(lattice, constants)
        arrival_queue = _queues(lattice, fixed_demands, throughput)
        for station, factor, other in zip(varying, factors, others, strict=True):
            waiting = _waiting(lattice, other, constants, *factor)
            queue[:, station] = throughput[:, lattice.points - 1].T * demands[:, station] * waiting
    final = throughput[:, lattice.points - 1].T
    queue[:, delay] = final[:, None] * demands[:, delay]
    queue[:, fixed] = final[:, None] * fixed_demands * (1.0 + arrival_queue)
    return Steady(final.reshape(*shape, classes), queue.reshape(*shape, stations, classes))


def _mean_values(lattice: Lattice, demands: Floats, idle: Floats) -> tuple[Floats, Floats]:
    """Mean value analysis of fixed-speed stations and a delay.

    Returns throughputs, shape (classes, points, networks), and the queue that a job of each class finds on arrival
    at the full population, shape (networks, stations, classes).
    """
    networks, stations, classes = demands.shape
    queue = np.zeros((lattice.points + 1, networks, stations))
    throughput = np.zeros((classes, lattice.points, networks))
    for level in lattice.level_slices():
        for index in range(classes):
            found = queue[lattice.before[index, level]]
            residence = demands[:, :, index] * (1.0 + found)  # arrival theorem
            cycle = idle[:, index] + residence.sum(axis=-1)
            jobs = lattice.jobs[index, level, None]
            # A class that asks nothing of these stations has no throughput of its own here.
            rate = np.divide(jobs, cycle, out=np.zeros_like(cycle), where=cycle > 0)
            throughput[index, level] = rate
            queue[level] += rate[:, :, None] * residence
    return throughput, np.moveaxis(queue[lattice.before[:, lattice.points - 1]], 0, -1)


def _queues(lattice: Lattice, demands: Floats, throughput: Floats) -> Floats:
    """The queues that a job of each class finds on arrival at fixed-speed stations, from the network's throughputs."""
    queue = np.zeros((lattice.points + 1, *demands.shape[:2]))
    for level in lattice.level_slices():
        for index in range(demands.shape[2]):
            found = queue[lattice.before[index, level]]
            queue[level] += throughput[index, level][:, :, None] * demands[:, :, index] * (1.0 + found)
    return np.moveaxis(queue[lattice.before[:, lattice.points - 1]], 0, -1)


def _log_constants(lattice: Lattice, throughput: Floats, present: Flags) -> Floats:
    """Logarithms of the normalisation constants, shape (points + 1, networks); the last row stands for no point.

    ``present``, of shape (networks, classes), says which classes ask anything of the stations so far: states with jobs
    of another class have weight 0.
    """
    constants = np.zeros((lattice.points + 1, throughput.shape[2]))
    first = lattice.first_class()
    for level in lattice.level_slices():
        points = np.arange(level.start, level.stop)
        rate = throughput[first[level], points]
        step = np.log(rate, out=np.zeros_like(rate), where=rate > 0)
        constants[level] = constants[lattice.before[first[level], points]] - step  # X_r(n) = G(n - e_r) / G(n)
    absent = np.einsum("cp,nc->pn", lattice.jobs > 0, ~present)
    constants[:-1][absent] = -np.inf
    constants[-1] = -np.inf
    return constants


def _powers(
    lattice: Lattice, constants: Floats, log_demands: Floats, log_rates: Floats
) -> Iterator[tuple[int, Floats]]:
    """Weights of the states with exactly j = 0, 1, ... jobs at one station, as logarithms.

    The j-th is (D_1 z_1 + ... + D_C z_C)^j / (alpha(1) ... alpha(j)) times the generating function of the other
    stations: one application of the operator for each j, where the textbook sums over the whole lattice.
    """
    weights = constants
    yield 0, weights
    for jobs in range(1, lattice.levels + 1):
        tail = slice(int(lattice.starts[jobs]), lattice.points)
        terms = weights[lattice.before[:, tail]] + log_demands.T[:, None, :]
        top = terms.max(axis=0)
        np.copyto(top, 0.0, where=np.isneginf(top))
        following = np.full_like(weights, -np.inf)
        with np.errstate(divide="ignore"):
            following[tail] = np.log(np.exp(terms - top).sum(axis=0)) + top - log_rates[jobs - 1]
        weights = following
        yield jobs, weights


def _add_station(lattice: Lattice, constants: Floats, log_demands: Floats, log_rates: Floats) -> Floats:
    """Logarithms of the constants with one more station."""
    total = np.full_like(constants, -np.inf)
    for _, weights in _powers(lattice, constants, log_demands, log_rates):
        total = np.logaddexp(total, weights)
    return total


def _throughput(lattice: Lattice, constants: Floats) -> Floats:
    """X_r(n) = G(n - e_r) / G(n), shape (classes, points, networks)."""
    return np.exp(constants[lattice.before] - constants[:-1])


def _waiting(lattice: Lattice, other: Floats, constants: Floats, log_demands: Floats, log_rates: Floats) -> Floats:
    """Residence over demand at one station for a job of each class, shape (networks, classes).

    The arrival theorem for a load-dependent station: sum over j of j / alpha(j) times the probability that an arriving
    job finds j - 1 there.
    """
    arrival = lattice.before[:, lattice.points - 1]
    total = np.zeros((arrival.size, constants.shape[1]))
    for found, weights in _powers(lattice, other, log_demands, log_rates):
        if found < lattice.levels:
            total += (found + 1) * np.exp(weights[arrival] - constants[arrival] - log_rates[found])
    return total.T
