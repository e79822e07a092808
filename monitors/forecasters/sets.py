"""Forecasts of the available resources over a run: each node's average, and the minimum of several nodes.

One forecast serves all: ``rank`` and the daemon, which ask about every set that may be chosen, and ``evaluate``, which
asks about the nodes that a run had. The further ahead a run reaches, the more a node's history counts and the less its
present; how much is learned from past spans of the same length, as far from the latest sample as the one to come.

A scheduler takes the nodes that promise most, and a run goes as fast as the worst of them. So the promise is broken
twice: of many nodes the best-looking are partly those that are about to become worse, and the least of many averages
lies below the least of what is expected of each. How much follows from the past. For every past moment the nodes are
put in the order in which they would have been chosen, and what the first k had over the span that followed is compared
with what was expected of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from monitors.forecasters.samples import Floats, Samples, carried_forward

Ints = NDArray[np.intp]

#: The level of the ends of a :class:`SetForecast`.
LEVEL = 0.9
#: Nodes that are learned from: of more, this many spread evenly.
LEARNED_FROM = 200
#: With too little history: the smallest deviation of the logarithm of the errors, and its degrees of freedom.
LEAST_SPREAD, FEW = 0.1, 3.0
#: Samples of history, and past moments, that are used.
HISTORY, MOMENTS = 600, 300
#: Past moments below which nothing is learned from the past.
LEAST_MOMENTS = 8
#: How sharply weights follow past errors: by standard errors of a mean of this many independent spans.
SHARPNESS = 2.0
#: What followed samples like the latest one is averaged over at least this part of the past of all nodes, and over so
#: many samples at most unless more are equal.
NEAR_PART, NEAR_MOST = 0.1, 200


@dataclass(frozen=True, slots=True)
class SetForecast:
    """The minima of sets of nodes, relative to the smallest forecast of their nodes.

    Parameters
    ----------
    part : array of shape (k,), in (0, 1]: the part that the sets keep on harmonic average.
    ends : array of shape (2, k): between which parts of what is so expected it comes out, at the level :data:`LEVEL`.
    middle : array of shape (k,): the part that it comes out above as often as below. A few bad spans make harmonic
        averages small, so it is above 1 where most spans are good.
    """

    part: Floats
    ends: Floats
    middle: Floats


@dataclass(frozen=True, slots=True)
class Sets:
    """The forecasts of single nodes, and of sets of them.

    Parameters
    ----------
    cpu, bandwidth : arrays of shape (n,), each node's expected average: share of a processor, and Mbit/s.
    cpu_sets, bandwidth_sets : of the 1, 2, ... nodes of which most CPU is expected, or of the one set asked about.
    """

    cpu: Floats
    bandwidth: Floats
    cpu_sets: SetForecast
    bandwidth_sets: SetForecast


def forecast_sets(
    time: ArrayLike,
    cpu: ArrayLike,
    bandwidth: ArrayLike,
    now: float,
    horizon: float,
    *,
    chosen: Sequence[int] | None = None,
    least: tuple[float, float] = (0.01, 0.001),
) -> Sets:
    """Forecast nodes and sets of them over [now, now + horizon].

    All averages are harmonic: the mean time of work that takes 1/x is the time at the harmonic mean of x.

    Parameters
    ----------
    time : array of shape (t,), seconds, strictly increasing; samples after ``now`` are ignored.
    cpu, bandwidth : arrays of shape (t, n), averages over the step that ends with each sample; a missing sample is not
        finite, and each node has one by ``now``.
    now : seconds.
    horizon : seconds, above 0.
    chosen : numbers of the nodes of the one set asked about, each once; None for those that a scheduler takes, the
        nodes of which most CPU is expected first.
    least : smaller values of CPU and of bandwidth count as these.

    Raises
    ------
    ValueError : shapes do not fit, ``horizon`` is out of range, a node has no sample by ``now``.

    Notes
    -----
    Candidates say what a node should have: its latest sample, its trailing averages over 1, 2, 4, ... steps up to all
    history, and what followed samples like its latest one, of any node, the mean over the nearest ones. With l_k the
    mean squared error of 1/x of candidate k on past spans (the mean time is what a placement makes small) and
    m = min l_k, it gets the weight exp(-eta sqrt(s) (l_k - m)/m), s being how many independent spans history holds:
    with little history all count alike, with much the best.

    The ends are quantiles of the past errors on the logarithm, widened by Student's quantile over the normal one and
    sqrt(1 + 1/s): the prediction interval of a sample of that size. With little history the latest samples stand, all
    is kept, and the ends are as wide as the samples were scattered.

    Examples
    --------
    Eight nodes, each busy for ten minutes out of thirty, by chance: the least of eight keeps less than one does.

    >>> t = 60.0 * np.arange(300)
    >>> busy = np.repeat(np.random.default_rng(1).random((30, 8)) < 1 / 3, 10, axis=0)
    >>> found = forecast_sets(t, np.where(busy, 0.5, 1.0), np.full((300, 8), 90.0), t[-1], 1200.0)
    >>> found.cpu_sets.part[[0, 7]].round(1).tolist(), found.bandwidth_sets.part[[0, 7]].round(6).tolist()
    ([1.0, 0.8], [1.0, 1.0])
    >>> found.cpu_sets.ends[:, 7].round(1).tolist(), found.bandwidth_sets.ends[:, 7].round(6).tolist()
    ([0.8, 1.2], [1.0, 1.0])
    """
    if not (np.isfinite(horizon) and horizon > 0):
        raise ValueError(f"horizon is {horizon}, expected a finite number of seconds above 0")
    seen = [_history(time, each, now, floor) for each, floor in zip((cpu, bandwidth), least, strict=True)]
    spans = _spans(seen[0], now, horizon)
    size = seen[0].values.shape[1]
    if spans is None:
        sets = size if chosen is None else 1
        return Sets(seen[0].values[-1], seen[1].values[-1], *(_unlearned(each.values, sets) for each in seen))
    origins, start, stop = spans
    independent = max(origins.size * seen[0].step / max(float(stop[0] - start[0]), seen[0].step), 1.0)
    learned = np.linspace(0, size - 1, min(size, LEARNED_FROM)).astype(np.intp)
    learned = np.union1d(learned, np.asarray(() if chosen is None else chosen, dtype=np.intp))
    expected, promised, came = [], [], []
    for series, floor in zip(seen, least, strict=True):
        few = series if learned.size == size else Samples(series.time, series.values[:, learned])
        outcome = np.maximum(few.mean(start, stop), floor)
        like = _Like(few.values[origins].ravel(), outcome.ravel())
        past, present = (
            np.concatenate([like(own[:, :1]), np.maximum(own, floor)], axis=1)
            for own in (_own(few, origins), _own(series, np.array([-1])))
        )
        weights = _weights(np.square(1 / past - 1 / outcome[:, None]).mean(axis=(0, 2)), independent)
        expected.append(1 / (weights @ (1 / present[0])))
        promised.append(1 / np.einsum("k,skn->sn", weights, 1 / past))
        came.append(outcome)
    if chosen is None:
        order = np.argsort(-promised[0], axis=1, kind="stable")
    else:
        order = np.broadcast_to(np.searchsorted(learned, chosen), (origins.size, len(chosen)))
    first = 0 if chosen is None else -1
    sets_of = [_sets(said, found, order, independent, first) for said, found in zip(promised, came, strict=True)]
    return Sets(expected[0], expected[1], *sets_of)


def _history(time: ArrayLike, values: ArrayLike, now: float, least: float) -> Samples:
    """The latest samples up to ``now``, holes filled with the latest one before them."""
    moments, given = np.asarray(time, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if moments.ndim != 1 or given.ndim != 2 or len(moments) != len(given):
        raise ValueError(f"time has shape {moments.shape} and values {given.shape}, expected (t,) and (t, n)")
    end = int(np.searchsorted(moments, now, side="right"))
    part = slice(max(end - HISTORY, 0), end)
    # A node may have been silent for all of the history that is used.
    first = 0 if end and not np.isfinite(given[part.start]).all() else part.start
    filled = given[first:end]
    if end:
        filled = carried_forward(np.where(np.isfinite(filled), filled, np.nan))[part.start - first :]
    if not filled.size or np.isnan(filled[-1]).any():
        raise ValueError(f"a node has no sample up to time {now}, expected at least one in each of one or more")
    return Samples(moments[part], np.maximum(filled, least))


def _own(series: Samples, origins: Ints) -> Floats:
    """Right after the samples ``origins`` the latest sample and the averages over trailing windows: shape (s, k, n)."""
    span = float(series.time[-1] - series.time[0])
    windows = series.step * 2.0 ** np.arange(int(np.log2(max(span / series.step, 1.0))) + 1)
    windows = np.append(windows[windows < 0.7 * span], max(span, series.step))
    end = np.broadcast_to(series.time[origins][:, None], (len(origins), len(windows)))
    start = np.maximum(end - windows, series.time[0] - series.step)
    return np.concatenate([series.values[origins][:, None, :], series.mean(start, end)], axis=1)


def _weights(losses: Floats, independent: float) -> Floats:
    """Weights of candidates by their losses, shape (k,), on ``independent`` past spans; they add up to 1."""
    least = losses.min()
    excess = (losses - least) / max(least, 1e-12)
    weights = np.exp(-SHARPNESS * np.sqrt(independent) * np.minimum(excess, 1e3))
    normed: Floats = weights / weights.sum()
    return normed


class _Like:
    """Harmonic means of the loads that followed similar samples: equal ones and the nearest ones."""

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


def _sets(promised: Floats, came: Floats, order: Ints, independent: float, first: int) -> SetForecast:
    """The least of the nodes up to each of the order beside the least promised, over past moments."""
    least, found = (
        np.minimum.accumulate(np.take_along_axis(each, order, axis=1), axis=1)[:, first:] for each in (promised, came)
    )
    part = np.minimum(1.0 / (least / found).mean(axis=0), 1.0)
    tail = (1 - LEVEL) / 2
    low, middle, high = np.quantile(np.log(found / (part * least)), [tail, 0.5, 1 - tail], axis=0)
    freedom = max(independent - 1, 1.0)
    student, normal = scipy.special.stdtrit(freedom, 1 - tail), scipy.special.ndtri(1 - tail)
    wider = float(student / normal * np.sqrt(1 + 1 / independent))
    ends = np.exp(wider * np.stack([np.minimum(low, 0.0), np.maximum(high, 0.0)]))
    return SetForecast(part, ends, np.exp(middle))


def _unlearned(values: Floats, sets: int) -> SetForecast:
    """With too few past spans: all is kept, give or take what was seen so far scattered, by Student's quantile."""
    spread = max(float(np.log(values).std(axis=0).mean()), LEAST_SPREAD)
    reach = float(np.exp(scipy.special.stdtrit(FEW, (1 + LEVEL) / 2) * spread))
    return SetForecast(np.ones(sets), np.repeat([[1 / reach], [reach]], sets, axis=1), np.ones(sets))


def _spans(series: Samples, now: float, horizon: float) -> tuple[Ints, Floats, Floats] | None:
    """Past samples, and the spans after them that are as long and as far away as the one to forecast."""
    latest, step = series.time[-1], series.step
    age = max(now - latest, 0.0)
    span = min(horizon, max((latest - series.time[0] - age) / 3, step))
    over = np.flatnonzero(series.time + age + span <= latest + 1e-9 * step)[-MOMENTS:]
    start = series.time[over] + age
    return None if over.size < LEAST_MOMENTS else (over, start, start + span)
