"""Choice of the method that solves a network, by its size and the memory that it takes.

Exact wherever that is cheap, otherwise approximate with bounds and an error estimate.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, get_args

import numpy as np

from metasched.arrays import Floats
from metasched.queueing import multi_class, single_class
from metasched.queueing.approximate import Level, solve_approximately
from metasched.queueing.bounds import throughput_bounds
from metasched.queueing.network import Network
from metasched.queueing.solution import PrecisionError, Solution
from metasched.records import InputError

Method = Literal["auto", "exact", "approximate"]

#: Memory that an exact solution may take unless another limit is given, in bytes.
MEMORY = 2 * 2**30
#: Numbers that ``auto`` lets an exact solution compute before it turns to the approximate one; a few seconds' worth.
_CHEAP = 50_000_000
#: Numbers that could be computed in the time that a step to the next population takes however small the network is: of
#: one class, and of each class of several.
_STEP, _STEP_OF_SEVERAL = 200, 1000
#: Largest classes x classes x stations that Linearizer is asked for.
_LINEARIZER = 1_000_000


def solve(network: Network, method: Method = "auto", *, memory: int = MEMORY) -> Solution:
    """Solve one network.

    Parameters
    ----------
    network : what to solve.
    method : ``"exact"``, ``"approximate"``, or ``"auto"``, which is exact where that takes a few seconds at most.
    memory : bytes that an exact solution may take.

    Raises
    ------
    InputError : when the method is unknown, or when an exact solution would not fit into ``memory``.
    PrecisionError : when no answer within 1e-6 could be computed.

    Examples
    --------
    >>> from metasched.queueing.network import JobClass, Station
    >>> cpu, disk = Station("cpu", (0.5,), (2.0,)), Station("disk", (0.1,), (3.0,))
    >>> solution = solve(Network("machine", (cpu, disk), (JobClass("batch", 4),)))
    >>> solution.method, solution.throughput.round(6)
    ('mean value analysis', array([0.994316]))
    """
    if method not in get_args(Method):
        raise InputError(f"method is {method!r}, expected one of {', '.join(get_args(Method))}")
    if not network.population.any():
        stations, classes = network.demands.shape
        return Solution(network, "empty", np.zeros(classes), np.zeros((stations, classes)))
    if method == "approximate" or (method == "auto" and not _is_cheap(network, memory)):
        try:
            return _approximate(network)
        except PrecisionError:
            # Between stations that are nearly as slow as each other the approximate queues settle too slowly.
            if method == "approximate" or _bytes_needed(network) > memory:
                raise
    return _exact(network, memory)


def _exact(network: Network, memory: int) -> Solution:
    need = _bytes_needed(network)
    if need > memory:
        asked = " x ".join(map(str, network.population))
        raise InputError(
            f"population {asked} at {len(network.stations)} stations needs {_size(need)} to solve exactly, "
            f"expected at most {_size(memory)}; ask for an approximate solution"
        )
    present = network.population > 0
    population, demands = network.population[present], network.demands[:, present]
    think_time, jobs = network.think_time[present], int(population.sum())
    throughput = np.zeros(present.size)
    queue_length = np.zeros((len(network.stations), present.size))
    plain = all(station.kind == "delay" or station.is_fixed for station in network.stations)
    if population.size > 1:
        steady = multi_class.solve_exactly(demands, think_time, population, _rates(network, jobs))
        throughput[present], queue_length[:, present] = steady.throughput, steady.queue_length
    else:
        if plain:
            speeds = np.array([1.0 if entry.kind == "delay" else entry.listed_rates[0] for entry in network.stations])
            delay = np.array([index for index, entry in enumerate(network.stations) if entry.kind == "delay"])
            curve = single_class.mean_value_analysis(demands[:, 0] / speeds, think_time[0], jobs, delay=delay)
        else:
            curve = single_class.convolution(demands[:, 0], think_time[0], _rates(network, jobs))
        throughput[present], queue_length[:, present] = curve.throughput[-1], curve.queue_length[:, -1:]
    return Solution(network, "mean value analysis" if plain else "convolution", throughput, queue_length)


def _approximate(network: Network) -> Solution:
    """Linearizer, or Schweitzer's approximation where that is too large; the next coarser one tells the error.

    Linearizer's corrections are not bound by the laws, and near saturation they break one now and then: then
    Schweitzer's approximation answers, too.
    """
    fine = np.count_nonzero(network.population) ** 2 * len(network.stations) <= _LINEARIZER
    if fine:
        with suppress(PrecisionError):
            return _approximated(network, "linearizer", "schweitzer")
    return _approximated(network, "schweitzer", "bard")


def _approximated(network: Network, level: Level, coarser_level: Level) -> Solution:
    present = network.population > 0
    kinds = [() if station.kind == "delay" else station.listed_rates for station in network.stations]
    problem = network.demands[:, present], network.think_time[present], network.population[present], kinds
    best, coarser = solve_approximately(*problem, level), solve_approximately(*problem, coarser_level)

    bounds = throughput_bounds(network)
    throughput, error = np.zeros(present.size), np.zeros(present.size)
    queue_length = np.zeros((len(network.stations), present.size))
    throughput[present], queue_length[:, present] = best.throughput, best.queue_length
    error[present] = np.abs(coarser.throughput / best.throughput - 1)
    return Solution(network, level, throughput, queue_length, bounds, error)


def _rates(network: Network, jobs: int) -> Floats:
    return np.stack([station.rates_up_to(jobs) for station in network.stations])


def _varying(network: Network) -> int:
    return sum(station.kind == "queue" and not station.is_fixed for station in network.stations)


def _bytes_needed(network: Network) -> int:
    present = network.population[network.population > 0]
    if present.size > 1:
        return multi_class.bytes_needed(present, len(network.stations), _varying(network))
    return single_class.bytes_needed(int(present[0]), len(network.stations), _varying(network))


def _is_cheap(network: Network, memory: int) -> bool:
    present = network.population[network.population > 0]
    points = 1
    for jobs in present:
        points *= int(jobs) + 1
    varying, jobs = _varying(network), int(present.sum())
    products = varying * (varying.bit_length() + 2) * jobs * present.size
    steps = jobs * present.size * (_STEP_OF_SEVERAL if present.size > 1 else _STEP)
    numbers = points * (len(network.stations) * present.size + products) + steps
    return numbers <= _CHEAP and _bytes_needed(network) <= memory


def _size(count: int) -> str:
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.4g} {units[0]}"
