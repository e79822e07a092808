"""How one loading is said to be like another: level, spread, memory and steadiness of sampled loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.testbed.timeline import Floats, Series

NEAR = 0.1  # a load is steady while it stays this near to where it was


def sample(series: Series, period: float, horizon: float) -> Floats:
    """Averages over consecutive periods up to the horizon; array of shape (periods,)."""
    ends = np.arange(1, int(horizon / period) + 1) * period
    return series.mean(ends - period, ends)


def autocorrelation(samples: Floats, lag: int = 1) -> float:
    """Correlation of a load with itself ``lag`` samples before; NaN where it never changes.

    Examples
    --------
    >>> round(autocorrelation(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])), 2)
    0.6
    """
    centred = samples - samples.mean()
    square = float((centred**2).mean())
    return float((centred[:-lag] * centred[lag:]).mean()) / square if square > 0 else float("nan")


def dwell(samples: Floats, period: float) -> float:
    """Mean time for which a load stays within 0.1 of where it was (s).

    Examples
    --------
    >>> dwell(np.array([1.0, 0.95, 0.5, 0.55, 0.52, 1.0]), period=120.0)
    240.0
    """
    stays, level = 1, samples[0]
    for value in samples:
        if abs(value - level) > NEAR:
            stays, level = stays + 1, value
    return len(samples) * period / stays


@dataclass(frozen=True)
class Statistics:
    """Mean over all series; medians over them of deviation, lag-1 autocorrelation and dwell time (s)."""

    mean: float
    deviation: float
    autocorrelation: float
    dwell: float


def describe(series: Mapping[str, Series], period: float, horizon: float, full: float = 1.0) -> Statistics:
    """Statistics of sampled loads, as fractions of ``full``."""
    samples = [sample(one, period, horizon) / full for one in series.values()]
    return Statistics(
        float(np.mean([one.mean() for one in samples])),
        float(np.median([one.std() for one in samples])),
        float(np.nanmedian([autocorrelation(one) for one in samples])),
        float(np.median([dwell(one, period) for one in samples])),
    )
