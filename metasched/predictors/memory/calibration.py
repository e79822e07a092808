"""Calibrated intervals: conformal prediction from the past errors of a model.

The score of an outcome is how far the logarithm of the measured time lay from the logarithm of the prediction, in units
of the spread that the model itself expected there. The interval of a new prediction reaches as far as the right
quantile of the last scores (split conformal prediction; Lei et al., "Distribution-free predictive inference for
regression", 2018, with scores over a sliding window so that it follows a model that changes). While there are too
few scores for the level asked for, a Student t quantile over a cautious prior stands in and widens the interval.

The scores of a model that has just been fitted are larger than its later ones, and all are smaller than those after a
change of the program. So the level follows the outcomes: it falls a little with each that lay within its interval, and
rises with each that did not (Gibbs & Candès, "Adaptive conformal inference under distribution shift", 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.predictors.contract import Predictions
from metasched.records import check_level

#: Number of stored scores.
WINDOW = 200
#: The prior of the spread: one imagined score of this size.
PRIOR_SCORE = 2.0
#: The level by whose intervals outcomes are judged; how much more the log odds of all levels change after one that lay
#: outside than after one that lay inside; and how far they change at most. Of steps from 0.1 to 0.8, larger ones
#: brought the share inside nearer to the level on the design campaigns and on the laws 20000 to 20039 of
#: ``benchmarks.other_laws``, but levels vary as the steps do.
JUDGED, STEP, FARTHEST = 0.9, 0.3, 2.0


def score(measured: float, predicted: float, spread: float) -> float:
    """Distance of an outcome from its prediction, in standard deviations; infinite for an infinite prediction.

    Parameters
    ----------
    measured, predicted : of one outcome, in the same unit.
    spread : standard deviation of the logarithm of the outcome, above 0.

    Examples
    --------
    >>> round(score(11.0, 10.0, spread=0.1), 3)
    0.953
    """
    return abs(math.log(measured / predicted)) / spread if 0.0 < predicted < math.inf else math.inf


@dataclass(frozen=True)
class Calibration:
    """The last scores of a model, oldest first.

    Parameters
    ----------
    scores : |log(measured / predicted)| over the expected spread, each at least 0.
    rehearsed : how many of the first scores are not of predictions that were made, but imagined or of training runs.
        They make a start, and each real score drives out two of them.
    shift : of the log odds of the levels, as the outcomes of earlier intervals demand.

    Examples
    --------
    >>> calibration = Calibration(tuple(np.linspace(0.0, 2.0, 99)))
    >>> round(calibration.reach(0.9), 2)
    1.82
    """

    scores: tuple[float, ...] = ()
    rehearsed: int = 0
    shift: float = 0.0
    _reach: dict[float, float] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def starting(cls, scores: Iterable[float]) -> Calibration:
        """Start from imagined scores or those of training runs."""
        kept = tuple(float(score) for score in scores if math.isfinite(score))[-WINDOW:]
        return cls(kept, len(kept))

    def learned(self, score: float) -> Calibration:
        """Add the score of one more outcome; one that is not finite is left out."""
        if not math.isfinite(score):
            return self
        shift = self.shift + STEP * ((score > self.reach(JUDGED)) - (1.0 - JUDGED))
        gone, shift = min(2, self.rehearsed), min(max(shift, -FARTHEST), FARTHEST)
        return Calibration((*self.scores[gone:], score)[-WINDOW:], self.rehearsed - gone, shift)

    def reach(self, level: float) -> float:
        """Number of standard deviations from the prediction to either end of an interval of this level.

        Raises
        ------
        InputError : when the level is not between 0 and 1.
        """
        if level not in self._reach:
            check_level("level", level)
            self._reach[level] = self._quantile(level)
        return self._reach[level]

    def _quantile(self, level: float) -> float:
        level = float(scipy.special.expit(scipy.special.logit(level) + self.shift))
        n = len(self.scores)
        rank = math.ceil((n + 1) * level - 1e-9)  # without the rounding of the line above
        if n >= 9 and rank <= n:
            return float(np.partition(self.scores, rank - 1)[rank - 1])
        spread = math.sqrt((PRIOR_SCORE**2 + sum(score * score for score in self.scores)) / (n + 1))
        return max(spread * float(scipy.special.stdtrit(n + 1, 0.5 + level / 2)), 0.0, *self.scores)

    def ends(self, prediction: Floats, spread: Floats | float, level: float) -> tuple[Floats, Floats]:
        """Low and high ends of the intervals around predictions, all arrays of shape (n,).

        Parameters
        ----------
        prediction : predicted values, seconds or joules.
        spread : standard deviations of their logarithms.
        level : of the intervals, in (0, 1).
        """
        factor = np.exp(np.minimum(self.reach(level) * np.broadcast_to(spread, prediction.shape), 50.0))
        with np.errstate(over="ignore"):  # what overflows is infinite
            return prediction / factor, prediction * factor

    def around(self, time: Floats, spread: Floats | float, level: float) -> Predictions:
        """Predicted times (s) with their intervals, for arrays of shape (n,)."""
        return Predictions(time, *self.ends(time, spread, level), level)
