"""What followed the moments of the past that were most like the present: :class:`Analogues`.

A median of past values needs no model of how loads move, and is what absolute errors ask for. Which values count how
much is the question: recent ones more than old ones, and those more that followed a past like the present one. How fast
to forget and how much of the past must be alike is learned from each series itself, by the probability that every
answer gave to the values that came.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from benchmarks.forecasters.contract import Floats, Indices, checked

#: Latest values of a series that count.
HISTORY = 256
#: After so many steps a value counts 1/4 of the newest one.
MEMORIES = (15.0, 50.0, 150.0)
#: Likeness: by how much a step back counts less in it, and the distance at which a past counts 1/e.
LIKENESSES = ((0.5, 0.5), (0.9, 0.7))
#: Columns of :meth:`Analogues.forecasts`: without regard to likeness, for each likeness, and all together.
ANSWERS = len(LIKENESSES) + 2

#: What a past as unlike as can be still counts.
_UNLIKE = 0.01
#: Width that a past value stands for in a probability, in mean absolute deviations of the series.
_WIDTH = 0.7
#: Density, in one over these deviations, that even a value nothing foretold has.
_SURPRISE = 0.02
#: Weight that goes round all answers alike at each step, so that one which was wrong for long can come back.
_SHARE = 0.01
#: Series that are worked on together, so that their arrays stay in the processor's cache.
_PANEL = 250


class Analogues:
    """Weighted medians of past values, by age and by how alike the pasts before them are to the present one.

    The value that followed the moment s steps ago counts (1 + (s - 1)/m)^-2 (u + exp(-d_s/(h b))), for memories m and
    likenesses (a, h), with b the mean absolute deviation of the series and d_s the distance of the two pasts,
    d_s = a d_s' + (1 - a) |x_0 - x_s|, in which d_s' is that of one step before: one multiplication for each s
    takes in the whole past. Every pair of memory and likeness is a distribution of the next value. They are
    mixed by the probability that they gave to the values that came, with a fixed share (M. Herbster and M. Warmuth,
    Tracking the best expert, Machine Learning 32 (1998)), and the median of the mixture is the forecast.

    Parameters
    ----------
    series : n, how many series.

    Examples
    --------
    >>> forecaster = Analogues(1)
    >>> for step in range(60):
    ...     forecaster.update([[0.2, 0.2, 0.9][step % 3]])
    >>> forecaster.forecast().tolist()
    [0.2]
    >>> forecaster.update([0.2]), forecaster.update([0.2]), forecaster.forecast().tolist()
    (None, None, [0.9])
    """

    def __init__(self, series: int) -> None:
        ages = np.arange(HISTORY - 1)
        self._memory = np.stack([(1 + ages / memory) ** -2.0 for memory in MEMORIES], axis=1)
        self._values = np.full((series, HISTORY), np.nan)  # the newest first
        self._apart = np.zeros((len(LIKENESSES), series, HISTORY))  # d_s
        self._scale = np.ones(series)
        self._log_weights = np.full((series, len(LIKENESSES) + 1, len(MEMORIES)), -np.log(ANSWERS - 1))
        self._pending = np.full((series, ANSWERS), np.nan)

    def update(self, values: ArrayLike) -> None:
        """Score every distribution on the values, then let each value become the newest of its series."""
        array = checked(values, len(self._scale))
        rows = np.flatnonzero(~np.isnan(array))
        for start in range(0, len(rows), _PANEL):
            panel = rows[start : start + _PANEL]
            judged = panel[~np.isnan(self._values[panel, 1])]
            if len(judged):
                self._score(judged, array)
            self._absorb(panel, array[panel])
            self._pending[panel] = self._medians(panel)

    def forecast(self) -> Floats:
        """The median of the mixture, shape (n,); NaN before the first value."""
        return self._pending[:, -1].copy()

    def forecasts(self) -> Floats:
        """The medians of the mixtures without likeness, of each likeness and of all, shape (n, ANSWERS)."""
        return self._pending.copy()

    def _score(self, rows: Indices, values: Floats) -> None:
        past = self._past(rows)
        width = _WIDTH * self._scale[rows, None]
        near = np.exp(-np.abs(values[rows, None] - past) / width) / (2 * _WIDTH)
        alike = self._alike(rows)
        density = np.stack([((each * near) @ self._memory) / (each @ self._memory) for each in alike], axis=1)
        log_weights = self._log_weights[rows] + np.log(density + _SURPRISE)
        log_weights -= logsumexp(log_weights, axis=(1, 2), keepdims=True)
        self._log_weights[rows] = np.log((1 - _SHARE) * np.exp(log_weights) + _SHARE / log_weights[0].size)

    def _absorb(self, rows: Indices, newest: Floats) -> None:
        past = self._values[rows]
        past[:, 1:] = past[:, :-1]
        past[:, 0] = newest
        self._values[rows] = past
        there = ~np.isnan(past)
        past = np.where(there, past, newest[:, None])
        apart = np.abs(past - newest[:, None])
        for kept, (fading, _) in zip(self._apart, LIKENESSES, strict=True):
            kept[rows] = np.where(there, fading * kept[rows] + (1 - fading) * apart, 0.0)
        count = there.sum(axis=1)
        ordered = np.sort(self._values[rows], axis=1)
        middle = ordered[np.arange(len(rows)), (count - 1) // 2]
        deviation = np.where(there, np.abs(past - middle[:, None]), 0.0).sum(axis=1) / count
        self._scale[rows] = deviation + 1e-3 * np.abs(middle) + 1e-12  # constant or nearly so is alike

    def _medians(self, rows: Indices) -> Floats:
        past, series = self._past(rows), np.arange(len(rows))
        order = past.argsort(axis=1)
        weights = np.exp(self._log_weights[rows])
        alone = np.isnan(self._values[rows, 1])
        medians = []
        mixture: Floats = np.zeros(past.shape)
        for index, each in enumerate(self._alike(rows)):
            norm = np.maximum(each @ self._memory, 1e-300)
            part = each * ((weights[:, index] / norm) @ self._memory.T)
            mixture += part
            medians.append(part)
        answers = []
        for weight in (*medians, mixture):
            below = np.take_along_axis(weight, order, axis=1).cumsum(axis=1)
            middle = (below >= below[:, -1:] / 2).argmax(axis=1)
            answers.append(np.where(alone, self._values[rows, 0], past[series, order[series, middle]]))
        return np.stack(answers, axis=1)

    def _past(self, rows: Indices) -> Floats:
        """The values that followed the moments 1, 2, ... steps ago; 0 where there was none."""
        past = self._values[rows, :-1]
        return np.where(np.isnan(past), 0.0, past)

    def _alike(self, rows: Indices) -> list[Floats]:
        """How much the moments 1, 2, ... steps ago count by their pasts, for each likeness after none; 0 where none."""
        there = (~np.isnan(self._values[rows, 1:])).astype(np.float64)
        scale = self._scale[rows, None]
        return [there] + [
            there * (_UNLIKE + np.exp(-kept[rows, 1:] / (reach * scale)))
            for kept, (_, reach) in zip(self._apart, LIKENESSES, strict=True)
        ]
