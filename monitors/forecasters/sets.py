"""What sets of nodes should have to spare over a run: each node's average, and how far the least of many falls below.

A scheduler takes the nodes that promise most, and a run goes as fast as the worst of them. So the promise is broken
twice: of many nodes the best-looking are partly those that are about to become worse, and the least of many averages
lies below the least of what is expected of each. How much follows from the past. For every past moment the nodes are
put in the order in which they would have been chosen, and what the first k had over the span that followed is compared
with what was expected of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitors.forecasters.samples import Floats, Kind, Samples, carried_forward, sampled

Ints = NDArray[np.int64]

#: Samples of history, and past moments, that are looked at.
HISTORY, MOMENTS = 600, 300
#: Past moments below which nothing is learned from the past.
LEAST_MOMENTS = 8
#: A node's expectation is the mean over at least this part of the past samples of all nodes, and over so many at most
#: unless more are equal.
NEAR_PART, NEAR_MOST = 0.1, 200


@dataclass(frozen=True, slots=True)
class Sets:
    """What nodes should have alone, and what sets of them keep of it.

    Parameters
    ----------
    cpu, bandwidth : arrays of shape (n,), each node's expected average.
    kept_cpu, kept_bandwidth : arrays of shape (n,): what the first k + 1 nodes keep of their least one's, in (0, 1].
    """

    cpu: Floats
    bandwidth: Floats
    kept_cpu: Floats
    kept_bandwidth: Floats


def forecast_sets(
    time: ArrayLike,
    cpu: ArrayLike,
    bandwidth: ArrayLike,
    now: float,
    horizon: float,
    *,
    least: tuple[float, float] = (0.01, 0.001),
    samples: Kind = "moments",
) -> Sets:
    """Forecast nodes and sets of them over [now, now + horizon].

    All averages are harmonic: the mean time of work that takes 1/x is the time at the harmonic mean of x.

    Parameters
    ----------
    time : array of shape (t,), seconds, strictly increasing; samples after ``now`` are not looked at.
    cpu, bandwidth : arrays of shape (t, n); a missing sample is not finite, and each node has one by ``now``.
    now : seconds.
    horizon : seconds, above 0.
    least : smaller values of CPU and of bandwidth count as these.
    samples : what a sample tells, see :func:`monitors.forecasters.horizon.forecast_minimum`.

    Notes
    -----
    A node should have what followed samples like its latest one, of any node: the mean over the nearest ones. The nodes
    are chosen by CPU, the most first. With little history the latest samples stand, and all is kept.

    Examples
    --------
    Eight nodes, each busy for ten minutes out of thirty, by chance: the least of eight keeps less than one does.

    >>> t = 60.0 * np.arange(300)
    >>> busy = np.repeat(np.random.default_rng(1).random((30, 8)) < 1 / 3, 10, axis=0)
    >>> found = forecast_sets(t, np.where(busy, 0.5, 1.0), np.full((300, 8), 90.0), t[-1], 1200.0, samples="averages")
    >>> found.kept_cpu[[0, 7]].round(1).tolist(), found.kept_bandwidth[[0, 7]].round(6).tolist()
    ([1.0, 0.8], [1.0, 1.0])
    """
    moments = np.asarray(time, dtype=np.float64)
    end = int(np.searchsorted(moments, now, side="right"))
    part = slice(max(end - HISTORY, 0), end)
    seen = [
        sampled(moments[part], np.maximum(_filled(np.asarray(values, dtype=np.float64)[part]), floor), samples)
        for values, floor in zip((cpu, bandwidth), least, strict=True)
    ]
    spans = _spans(seen[0], now, horizon)
    size = seen[0].values.shape[1]
    if spans is None:
        return Sets(seen[0].values[-1], seen[1].values[-1], np.ones(size), np.ones(size))
    origins, start, stop = spans
    expected, promised, came = [], [], []
    for series, floor in zip(seen, least, strict=True):
        outcome = np.maximum(series.mean(start, stop), floor)
        like = _Like(series.values[origins].ravel(), outcome.ravel())
        expected.append(like(series.values[-1]))
        promised.append(like(series.values[origins]))
        came.append(outcome)
    order = np.argsort(-promised[0], axis=1, kind="stable")
    kept = [_kept(told, found, order) for told, found in zip(promised, came, strict=True)]
    return Sets(expected[0], expected[1], kept[0], kept[1])


class _Like:
    """Harmonic means of what followed samples like some others: those equal, and the nearest ones."""

    def __init__(self, sample: Floats, outcome: Floats) -> None:
        order = np.argsort(sample, kind="stable")
        self._sample = sample[order]
        self._sums = np.concatenate([np.zeros(1), np.cumsum(1.0 / outcome[order])])

    def __call__(self, values: Floats) -> Floats:
        size = self._sample.size
        near = min(NEAR_MOST, max(1, int(NEAR_PART * size)))
        first, last = (np.searchsorted(self._sample, values, side=side) for side in ("left", "right"))
        begin = np.clip((first + last - near) // 2, 0, size - near)
        first, last = np.minimum(first, begin), np.maximum(last, begin + near)
        return np.asarray((last - first) / (self._sums[last] - self._sums[first]))


def _kept(promised: Floats, came: Floats, order: Ints) -> Floats:
    """What the least of the first k nodes kept of the least promised, on harmonic average over past moments: (n,)."""
    told, found = (np.minimum.accumulate(np.take_along_axis(each, order, axis=1), axis=1) for each in (promised, came))
    return np.asarray(np.minimum(1.0 / (told / found).mean(axis=0), 1.0))


def _spans(series: Samples, now: float, horizon: float) -> tuple[Ints, Floats, Floats] | None:
    """Past samples, and the spans after them that are as long and as far away as the one to forecast."""
    latest, step = series.time[-1], series.step
    age = max(now - latest, 0.0)
    ahead = min(horizon, max((latest - series.time[0] - age) / 3, step))
    over = np.flatnonzero(series.time + age + ahead <= latest + 1e-9 * step)[-MOMENTS:]
    start = series.time[over] + age
    return None if over.size < LEAST_MOMENTS else (over, start, start + ahead)


def _filled(values: Floats) -> Floats:
    return carried_forward(np.where(np.isfinite(values), values, np.nan))
