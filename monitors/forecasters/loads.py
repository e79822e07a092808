"""From recorded loads to the two minima a prediction is asked with: :func:`forecast_loads`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitors.forecasters.horizon import forecast_minimum
from monitors.forecasters.outlook import Outlook
from monitors.forecasters.samples import Kind

#: A forecast never promises a processor or a link that is not there at all: models divide by both.
LEAST_CPU = 0.01
LEAST_BANDWIDTH = 0.01


@dataclass(frozen=True, slots=True)
class LoadOutlook:
    """Forecasts of min_avg_avail_cpu, inside (0, 1], and of min_avg_avail_bw, above 0 (Mbit/s)."""

    available_cpu: Outlook
    available_bandwidth: Outlook


def forecast_loads(
    time: ArrayLike,
    names: Sequence[str],
    available_cpu: ArrayLike,
    available_bandwidth: ArrayLike,
    *,
    now: float,
    nodes: Sequence[str],
    horizon: float,
    level: float = 0.9,
    samples: Kind = "moments",
) -> LoadOutlook:
    """Forecast the two minima over the chosen nodes of the averages over [now, now + horizon].

    Parameters
    ----------
    time : array of shape (t,), seconds, strictly increasing; samples after ``now`` are not looked at.
    names : n names of nodes, in the order of axis 1.
    available_cpu, available_bandwidth : arrays of shape (t, n); a missing sample is NaN.
    now, horizon : seconds, ``horizon`` above 0.
    nodes : names of the chosen nodes.
    level : probability that each interval should hold its outcome.
    samples : what a sample tells: what was seen at its moment, or the average over the step that ends with it.

    Raises
    ------
    ValueError : a node is unknown or has no sample by ``now``, or an argument is out of range.

    Examples
    --------
    >>> t = np.arange(0.0, 1000.0, 10.0)
    >>> cpu, bandwidth = np.full((100, 2), [0.9, 0.5]), np.full((100, 2), [80.0, 95.0])
    >>> both = forecast_loads(t, ["n0", "n1"], cpu, bandwidth, now=995.0, nodes=["n0", "n1"], horizon=60.0)
    >>> round(both.available_cpu.expected, 6), round(both.available_bandwidth.expected, 6)
    (0.5, 80.0)
    """
    place = {name: index for index, name in enumerate(names)}
    unknown = [node for node in nodes if node not in place]
    if unknown:
        raise ValueError(f"node {unknown[0]} has no loads, expected one of {', '.join(names)}")
    chosen = np.array([place[node] for node in dict.fromkeys(nodes)], dtype=np.intp)
    cpu = forecast_minimum(time, available_cpu, now, horizon, chosen=chosen, level=level, samples=samples)
    bandwidth = forecast_minimum(time, available_bandwidth, now, horizon, chosen=chosen, level=level, samples=samples)
    return LoadOutlook(cpu.clamped(LEAST_CPU, 1.0), bandwidth.clamped(LEAST_BANDWIDTH, np.inf))
