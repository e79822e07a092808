"""Throughputs that the exact answer lies between, for any population, at the price of a few sums.

Asymptotic bounds hold for any number of classes; for a single class the balanced job bounds are tighter.
"""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.queueing.network import Network, Station
from metasched.queueing.solution import Bounds


def throughput_bounds(network: Network) -> Bounds:
    """Bound the throughput of every class.

    References
    ----------
    Lazowska, Zahorjan, Graham and Sevcik, Quantitative System Performance, 1984, tables 5.2 and 5.3; Zahorjan, Sevcik,
    Eager and Galler, Balanced job bound analysis of queueing networks, CACM 25(2), 1982. The lower asymptotic bound is
    that of the arrival theorem: an arriving job finds all the others at the station that costs it most.

    Examples
    --------
    >>> from metasched.queueing.network import JobClass
    >>> stations = (Station("cpu", (1.0,), (1.0,)), Station("disk", (0.5,), (1.0,)))
    >>> bounds = throughput_bounds(Network("", stations, (JobClass("batch", 3),)))
    >>> bounds.kind, bounds.lower.round(3), bounds.upper.round(3)
    ('balanced job', array([0.857]), array([1.]))
    """
    population, think_time, demands = network.population.astype(float), network.think_time, network.demands
    total = int(network.population.sum())
    alone, least, growth = np.array([_stretch(station, total) for station in network.stations]).T[:, :, None]
    with np.errstate(divide="ignore"):
        saturated = np.min(network.peak_rates[:, None] / demands, axis=0)
    fastest = think_time + (demands * least).sum(axis=0)
    slowest = think_time + (demands * alone).sum(axis=0) + max(total - 1, 0) * (demands * growth).max(axis=0)
    present = population > 0
    upper = np.where(present, np.minimum(saturated, _per_second(population, fastest)), 0.0)
    lower = np.where(present, _per_second(population, slowest), 0.0)
    if population.size > 1:
        return Bounds(lower, upper, "asymptotic")

    fixed = np.array([station.is_fixed for station in network.stations])
    queued = (demands * alone)[fixed, 0]
    queued = queued[queued > 0]
    if queued.size and total:
        whole, longest = queued.sum(), queued.max()
        # Nobody waits less at the other stations than not at all.
        elsewhere = think_time[0] + (demands * least)[~fixed, 0].sum()
        balanced = whole + elsewhere + (total - 1) * queued.mean() / (1 + elsewhere / whole)
        upper = np.minimum(upper, total / balanced)
        if all(
            station.kind == "delay" for station, is_fixed in zip(network.stations, fixed, strict=True) if not is_fixed
        ):
            crowded = whole + elsewhere + (total - 1) * longest / (1 + elsewhere / (total * whole))
            lower = np.maximum(lower, total / crowded)
    return Bounds(lower, upper, "balanced job")


def _stretch(station: Station, total: int) -> tuple[float, float, float]:
    """Residence over demand: with nobody found, its least value, and how fast it grows at most with those found."""
    if station.kind == "delay":
        return 1.0, 1.0, 0.0
    listed = station.listed_rates
    # Beyond the listed rates the stretch is linear, so its steepest chord ends within them or at the last job.
    found = np.unique(np.append(np.arange(min(len(listed), max(total, 1))), max(total - 1, 0)))
    stretch = (found + 1) / np.array(listed)[np.minimum(found, len(listed) - 1)]
    growth = (stretch[1:] - stretch[0]) / found[1:]
    return float(stretch[0]), float(stretch.min()), float(max(growth.max(initial=0.0), 0.0))


def _per_second(population: Floats, cycle: Floats) -> Floats:
    return np.divide(population, cycle, out=np.full_like(population, np.inf), where=cycle > 0)
