"""The forecast a scheduler needs: the mean over [now, now + T] of a load, and of its minimum over the chosen nodes.

The further ahead the mean reaches, the more history counts and the less the present. How much is learned from the past
itself: the latest sample and trailing averages over 1, 2, 4, ... steps up to all history are each judged on every past
span of the same length and the same distance, and weighed by how well they did. The errors of the weighed forecast on
those spans give its bias and its interval. Samples may be irregular, and moments or averages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from monitors.forecasters.outlook import Outlook
from monitors.forecasters.samples import Floats, Kind, Samples, carried_forward, sampled

Indices = NDArray[np.intp]

#: Samples of history that are looked at: beyond a few hundred the weights no longer change, the cost would.
HISTORY = 600
#: Past spans that candidates are judged on, the latest ones.
ORIGINS = 300
#: How sharply weights follow past errors: by standard errors of a mean of so many independent spans.
SHARPNESS = 2.0
#: Degrees of freedom at which Student's quantile is the normal one for all that matters.
_NORMAL = 1e9


def forecast_minimum(
    time: ArrayLike,
    values: ArrayLike,
    now: float,
    horizon: float,
    *,
    chosen: ArrayLike | None = None,
    level: float = 0.9,
    samples: Kind = "moments",
) -> Outlook:
    """Forecast the smallest, over the chosen series, of the averages over [now, now + horizon].

    Parameters
    ----------
    time : array of shape (t,), seconds, strictly increasing; samples after ``now`` are not looked at.
    values : array of shape (t, n): axis 0 is time, axis 1 the series; a missing sample is not finite.
    now : seconds.
    horizon : T, seconds, above 0.
    chosen : indices into axis 1, all where None. Weights are learned from all series alike, so it pays to pass the
        whole cluster and choose from it.
    level : probability that the interval should hold the outcome.
    samples : what a sample tells: what was seen at its moment, or the average over the step that ends with it.

    Returns
    -------
    Outlook in the unit of ``values``; not clamped.

    Raises
    ------
    ValueError : shapes do not fit, ``horizon`` or ``level`` is out of range, a chosen series has no sample by ``now``.

    Notes
    -----
    Candidate k forecasts y_k = mean over the last w_k seconds. With l_k its mean absolute error over past spans and
    m = min l_k, it gets the weight exp(-eta sqrt(s) (l_k - m)/m), s being how many independent spans history holds:
    with little history all count alike, with much the best.

    Examples
    --------
    >>> t = np.arange(0.0, 3000.0, 10.0)
    >>> x = np.array([0.6, 0.8]) + 0.1 * np.sin(t[:, None])
    >>> round(forecast_minimum(t, x, now=2995.0, horizon=628.0).expected, 2)
    0.6
    """
    series, columns = _history(time, values, now, chosen, samples)
    if not (np.isfinite(horizon) and horizon > 0):
        raise ValueError(f"horizon is {horizon}, expected a finite number of seconds above 0")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}, expected a probability in (0, 1)")

    judged = _judged(series, now, horizon)
    if isinstance(judged, _Unjudged):
        return _without_history(series.values[:, columns], judged.present[:, columns], level)
    past = np.einsum("k,skn->sn", judged.weights, judged.past[..., columns])
    errors = judged.outcome[:, columns].min(axis=1) - past.min(axis=1)
    expected = float((judged.weights @ judged.present[:, columns]).min())
    return _with_errors(expected, errors, judged.independent, level)


def forecast_each(
    time: ArrayLike, values: ArrayLike, now: float, horizon: float, *, samples: Kind = "moments"
) -> Floats:
    """Forecast the average over [now, now + horizon] of every series at once; see :func:`forecast_minimum`.

    Parameters
    ----------
    time, values, now, horizon, samples : as there; every series has a sample by ``now``.

    Returns
    -------
    array of shape (n,), in the unit of ``values``.

    Examples
    --------
    >>> t = np.arange(0.0, 3000.0, 10.0)
    >>> x = np.array([0.6, 0.8]) + 0.1 * np.sin(t[:, None])
    >>> forecast_each(t, x, now=2995.0, horizon=628.0).round(2).tolist()
    [0.6, 0.8]
    """
    series, _ = _history(time, values, now, None, samples)
    judged = _judged(series, now, horizon)
    if isinstance(judged, _Unjudged):
        return np.asarray(judged.present.mean(axis=0))
    return np.asarray(judged.weights @ judged.present)


@dataclass(frozen=True, slots=True)
class _Unjudged:
    """What the candidates say now, shape (k, n), with too little history to judge them."""

    present: Floats


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the candidates say now (k, n), said in the past (s, k, n), what came out (s, n), and their weights (k,)."""

    present: Floats
    past: Floats
    outcome: Floats
    weights: Floats
    independent: float


def _judged(series: Samples, now: float, horizon: float) -> _Judged | _Unjudged:
    latest, step = series.time[-1], series.step
    age = max(now - latest, 0.0)
    span = latest - series.time[0]
    ahead = min(horizon, max((span - age) / 3, step))

    windows = _trailing_windows(step, span)
    present = _candidates(series, np.array([-1]), windows)[0]
    origins = _origins(series, age + ahead)
    if len(origins) < 3:
        return _Unjudged(present)

    past = _candidates(series, origins, windows)
    start = series.time[origins] + age
    outcome = series.mean(start, start + ahead)
    independent = max(len(origins) * step / max(ahead, step), 1.0)
    weights = _weights(np.abs(past - outcome[:, None, :]).mean(axis=(0, 2)), independent)
    return _Judged(present, past, outcome, weights, independent)


def _history(
    time: ArrayLike, values: ArrayLike, now: float, chosen: ArrayLike | None, kind: Kind
) -> tuple[Samples, Indices]:
    """The latest samples up to ``now`` of the series that have any, and where the chosen ones stand among them."""
    moments, samples = np.asarray(time, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if moments.ndim != 1 or samples.ndim != 2 or len(moments) != len(samples):
        raise ValueError(f"time has shape {moments.shape} and values {samples.shape}, expected (t,) and (t, n)")
    end = int(np.searchsorted(moments, now, side="right"))
    kept = slice(max(end - HISTORY, 0), end)
    seen = samples[kept]
    filled = carried_forward(np.where(np.isfinite(seen), seen, np.nan)) if end else samples[:0]
    columns: Indices = (
        np.arange(samples.shape[1]) if chosen is None else np.atleast_1d(np.asarray(chosen, dtype=np.intp))
    )
    there = ~np.isnan(filled[-1]) if end else np.zeros(samples.shape[1], dtype=bool)
    if not len(columns) or not there[columns].all():
        raise ValueError(
            f"a chosen series has no sample up to time {now}, expected at least one in each of one or more"
        )
    return sampled(moments[kept], filled[:, there], kind), (np.cumsum(there) - 1)[columns]


def _trailing_windows(step: float, span: float) -> Floats:
    """Lengths of the candidates' windows: step times 1, 2, 4, ... up to most of the history, and all of it (s)."""
    doublings = step * 2.0 ** np.arange(int(np.log2(max(span / step, 1.0))) + 1)
    return np.append(doublings[doublings < 0.7 * span], max(span, step))


def _candidates(series: Samples, origins: Indices, windows: Floats) -> Floats:
    """What each candidate said right after the samples ``origins``: shape (s, k, n), the latest sample first."""
    end = np.broadcast_to(series.time[origins][:, None], (len(origins), len(windows)))
    start = np.maximum(end - windows, series.time[0] - series.step)
    return np.concatenate([series.values[origins][:, None, :], series.mean(start, end)], axis=1)


def _origins(series: Samples, reach: float) -> Indices:
    """Past samples whose span was over ``reach`` seconds later, without the first few, which had next to no past."""
    over = np.flatnonzero(series.time + reach <= series.time[-1] + 1e-9 * series.step)
    return over[over >= min(8, len(series.time) // 4)][-ORIGINS:]


def _weights(losses: Floats, independent: float) -> Floats:
    least = losses.min()
    excess = (losses - least) / max(least, 1e-12)
    weights = np.exp(-SHARPNESS * np.sqrt(independent) * np.minimum(excess, 1e3))
    normed: Floats = weights / weights.sum()
    return normed


def _with_errors(expected: float, errors: Floats, independent: float, level: float) -> Outlook:
    """Correct by the median error and spread by the errors' quantiles, wider where few spans are independent.

    The factor is Student's quantile over the normal one, times sqrt(1 + 1/s) for the next outcome of a mean over s: the
    prediction interval of a sample of that size.
    """
    tail = (1 - level) / 2
    low, middle, high = np.quantile(errors, [tail, 0.5, 1 - tail])
    expected += float(middle * independent / (independent + 10))
    freedom = max(independent - 1, 1.0)
    factor = stdtrit(freedom, 1 - tail) / stdtrit(_NORMAL, 1 - tail) * np.sqrt(1 + 1 / independent)
    return Outlook(
        expected, expected - float(factor * (middle - low)), expected + float(factor * (high - middle)), level
    )


def _without_history(seen: Floats, present: Floats, level: float) -> Outlook:
    """With too few past spans to judge on: all candidates alike, and the spread of what was seen so far."""
    expected = float(present.mean(axis=0).min())
    spread = max(float(seen.std()), 0.1 * abs(expected))
    reach = float(stdtrit(3.0, (1 + level) / 2)) * spread
    return Outlook(expected, expected - reach, expected + reach, level)
