"""Exact solutions for one class of jobs, for all populations 1, ..., N at once, and for many networks in one call.

Two ways that check each other: mean value analysis, for stations of fixed speed and delays; and convolution, for any
station, which stays exact with many servers and many jobs because it only ever adds and multiplies positive numbers.
Axis order: (network, station, population).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.queueing.recurrence import accumulate
from metasched.queueing.series import convolve, leave_one_out


@dataclass(frozen=True, slots=True)
class Curve:
    """The exact solution of a network for each population 1, 2, ..., N.

    Parameters
    ----------
    throughput : array of shape (..., N), cycles a second.
    queue_length : array of shape (..., stations, N), mean jobs at each station, in service or waiting.
    think_time : array of shape (...,), seconds outside all stations.
    """

    throughput: Floats
    queue_length: Floats
    think_time: Floats


def bytes_needed(population: int, stations: int, varying: int) -> int:
    """Bytes that a solution of one network takes at its peak, ``varying`` of the stations being load-dependent."""
    # Queues and the work space of their recurrence, speeds, and a few sequences for each varying station.
    return 8 * population * (6 * stations + 2 * varying + 8)


def mean_value_analysis(demands: ArrayLike, think_time: ArrayLike, population: int, *, delay: ArrayLike = ()) -> Curve:
    """Solve networks of fixed-speed stations and delays by exact mean value analysis.

    Parameters
    ----------
    demands : array of shape (..., stations), seconds of service in each cycle.
    think_time : array of shape (...,), seconds.
    population : N, at least 1.
    delay : numbers of the delay stations, where jobs do not queue.

    References
    ----------
    Reiser and Lavenberg, Mean-value analysis of closed multichain queuing networks, JACM 27(2), 1980.

    Examples
    --------
    >>> mean_value_analysis([1.0, 1.0], 0.0, 3).throughput
    array([0.5       , 0.66666667, 0.75      ])
    """
    service, idle = _networks(demands, think_time)
    waits = np.ones(service.shape[-1])
    waits[np.asarray(delay, dtype=int)] = 0.0
    throughput = np.empty((population, *idle.shape))
    queue = np.zeros((population + 1, *service.shape))
    for jobs in range(1, population + 1):
        residence = service * (1.0 + waits * queue[jobs - 1])  # arrival theorem
        throughput[jobs - 1] = jobs / (idle + residence.sum(axis=-1))
        queue[jobs] = throughput[jobs - 1][..., None] * residence
    return _curve(throughput, queue[1:], idle)


def convolution(demands: ArrayLike, think_time: ArrayLike, rates: ArrayLike) -> Curve:
    """Solve networks of any stations by convolution of their normalisation constants.

    Stations of fixed speed are added in the order of falling demand, through ratios of constants that stay in [1, N];
    delays and stations whose speed depends on their load follow through logarithms. The queue of a load-dependent
    station comes from the constants of the network without it, which are computed, never divided out.

    Parameters
    ----------
    demands : array of shape (..., stations), seconds of service in each cycle at speed 1.
    think_time : array of shape (...,), seconds.
    rates : array of shape (stations, N), speed of each station with 1, ..., N jobs; all ones for a single server,
        min(n, m) for m servers, n for a delay.

    References
    ----------
    Buzen 1973 (see :mod:`metasched.queueing.series`); Bruell and Balbo, Computational Algorithms for Closed Queueing
    Networks, 1980, chapter 2.

    Examples
    --------
    >>> two_servers = np.minimum(np.arange(1, 4), 2.0)
    >>> convolution([2.0, 1.0], 0.0, [two_servers, np.ones(3)]).throughput
    array([0.33333333, 0.6       , 0.71428571])
    """
    service, think = _networks(demands, think_time)
    speeds = np.asarray(rates, dtype=float)
    shape, (stations, population) = think.shape, speeds.shape
    service, think = service.reshape(-1, stations), think.reshape(-1)
    jobs = np.arange(1, population + 1)
    delay = np.all(speeds == jobs, axis=1)
    fixed = np.all(speeds == speeds[:, :1], axis=1) & ~delay
    varying = np.flatnonzero(~delay & ~fixed)

    # In units of the time in which the slowest station serves one job the constants stay near 1 at saturation.
    unit = np.max(service / speeds[:, -1], axis=1, where=~delay, initial=0.0)
    unit = np.where(unit > 0, unit, think + service.sum(axis=1))
    service = service / unit[:, None]
    fixed_service = service[:, fixed] / speeds[fixed, 0]
    idle = think / unit + service[:, delay].sum(axis=1)
    base = _log_fixed(fixed_service, population)
    with np.errstate(divide="ignore"):
        # f(n) = D^n / (alpha(1) ... alpha(n)); a delay's alpha(n) is n.
        base = convolve(base, _log_powers(np.log(idle), np.log(jobs)))
        factors = [_log_powers(np.log(service[:, station]), np.log(speeds[station])) for station in varying]
    others = leave_one_out(base, factors, convolve)
    constants = convolve(others[0], factors[0]) if factors else base

    throughput = np.exp(constants[:, :-1] - constants[:, 1:]).T  # X(n) = G(n - 1) / G(n)
    queue = np.empty((population, *service.shape))
    queue[:, :, delay] = throughput[:, :, None] * service[:, delay]
    queue[:, :, fixed] = accumulate(throughput[:, :, None] * fixed_service)
    log_jobs = np.concatenate([[-np.inf], np.log(jobs)])
    for station, factor, other in zip(varying, factors, others, strict=True):
        # Q(n) = sum_j j f(j) G_without(n - j) / G(n)
        queue[:, :, station] = np.exp(convolve(other, factor + log_jobs) - constants)[:, 1:].T
    return _curve(
        (throughput / unit).reshape(population, *shape),
        queue.reshape(population, *shape, stations),
        think.reshape(shape),
    )


def _networks(demands: ArrayLike, think_time: ArrayLike) -> tuple[Floats, Floats]:
    service = np.asarray(demands, dtype=float)
    return service, np.broadcast_to(np.asarray(think_time, dtype=float), service.shape[:-1])


def _curve(throughput: Floats, queue_length: Floats, think_time: Floats) -> Curve:
    return Curve(np.moveaxis(throughput, 0, -1), np.moveaxis(queue_length, 0, -1), think_time)


def _log_fixed(demands: Floats, population: int) -> Floats:
    """Logarithms of G(0), ..., G(N) of fixed-speed stations alone, shape (networks, N + 1)."""
    networks, stations = demands.shape
    constants = np.full((networks, population + 1), -np.inf)
    constants[:, 0] = 0.0
    if not stations:
        return constants
    demands = -np.sort(-demands, axis=1)
    with np.errstate(divide="ignore"):
        log_throughput = np.tile(-np.log(demands[:, 0]), (population, 1))
    for demand in demands[:, 1:].T:
        # G_k(n) / G_{k-1}(n) = 1 + D_k X_{k-1}(n) G_k(n - 1) / G_{k-1}(n - 1), and D_k X_{k-1}(n) <= 1 in this order.
        with np.errstate(invalid="ignore"):
            growth = np.log1p(accumulate(np.where(demand > 0, demand * np.exp(log_throughput), 0.0)))
        log_throughput[1:] += growth[:-1]
        log_throughput -= growth
    constants[:, 1:] = -np.cumsum(log_throughput, axis=0).T
    return constants


def _log_powers(log_demand: Floats, log_rates: Floats) -> Floats:
    """Logarithms of D^n / (alpha(1) ... alpha(n)), n = 0, ..., N, shape (networks, N + 1)."""
    return np.concatenate([np.zeros((log_demand.size, 1)), np.cumsum(log_demand[:, None] - log_rates, axis=1)], axis=1)
