"""What a scalability curve says and costs: the error of its times, efficiency, overhead (Eq. 7)."""

from __future__ import annotations

from collections.abc import Iterable


def prediction_error(predicted: float, measured: float) -> float:
    """PETE: how far a predicted time is from the measured one, in percent of the measured.

    Examples
    --------
    >>> round(prediction_error(547.0, 549.33), 2)
    0.42
    """
    return 100.0 * abs(predicted - measured) / measured


def efficiency(time: float, processes: int, base_time: float, base_processes: int) -> float:
    """Speedup over the base run, over that of a linear one.

    Examples
    --------
    >>> round(efficiency(549.33, 4096, 8379.85, 256), 3)
    0.953
    """
    return base_time * base_processes / (time * processes)


def core_hours(runs: Iterable[tuple[float, int]]) -> float:
    """What runs of so many seconds on so many cores cost together (Eq. 7).

    Examples
    --------
    >>> core_hours([(1800.0, 4), (3600.0, 2)])
    4.0
    """
    return sum(seconds * cores for seconds, cores in runs) / 3600.0
