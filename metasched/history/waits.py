"""Forecasts of waits: a simulation of the queue with predicted run times, corrected for the errors of earlier ones.

Jobs that arrive later and start earlier are unknown to the simulation; the errors of earlier forecasts account for
them. A forecast is corrected, and its interval made, by the ratios of actual to simulated waits among forecasts of
about the same length. It is corrected only while that has recently improved the forecasts.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from metasched.records import InputError

#: Upper bounds of the classes of simulated waits (s) whose errors are pooled; the last class is unbounded.
CLASSES = (0.0, 300.0, 1800.0, 7200.0, 21_600.0, 86_400.0)
#: Added to waits before they are compared by ratios (s).
SOFTENING = 60.0
#: Decay, for each wait learned, of the summed errors of corrected and uncorrected forecasts.
MEMORY = 0.99
#: Part of the waits that each end of an interval should miss, and at most aims at.
MISS, MOST_MISS = 0.05, 0.3
#: Step by which the levels of intervals follow their coverage (Gibbs & Candès, "Adaptive conformal inference
#: under distribution shift", NeurIPS 2021).
STEP = 0.01
#: Most forecasts of a class that are used, and the fewest with a known outcome before they are.
MOST, FEWEST = 300, 20


class Wait(NamedTuple):
    """A forecast of a wait; times in s.

    Parameters
    ----------
    seconds, low, high : the wait, and the ends of its interval.
    simulated, corrected : what the simulation led to, and that after the correction; ``seconds`` is the better of both.
    """

    seconds: float
    low: float
    high: float
    simulated: float
    corrected: float


class WaitErrors:
    """The errors of earlier forecasts, and the corrections that follow from them.

    >>> errors = WaitErrors()
    >>> errors.expect(600.0).seconds
    600.0
    >>> for _ in range(40):
    ...     errors.learn(errors.expect(600.0), 1260.0)
    >>> round(errors.expect(600.0).seconds)
    1260
    """

    def __init__(self) -> None:
        self._low, self._high = MISS, 1.0 - MISS
        self._ratios: list[deque[float]] = [deque(maxlen=MOST) for _ in range(len(CLASSES) + 1)]
        self._missed = self._missed_corrected = 0.0
        # Of each class, since the last wait was learned: a queue asks for thousands of forecasts between two of them.
        self._factors: dict[int, tuple[float, float, float]] = {}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """What :meth:`as_dict` has written down.

        Raises
        ------
        InputError : when it is no such document.
        """
        made = cls()
        try:
            made._low, made._high, made._missed, made._missed_corrected = (
                float(document[name]) for name in ("low", "high", "missed", "missed_corrected")
            )
            ratios = [[float(each) for each in of_class][-MOST:] for of_class in document["ratios"]]
        except (KeyError, TypeError, ValueError):
            raise InputError("the errors of waits are not as they are written down") from None
        numbers = np.array([made._missed, made._missed_corrected, *(ratio for each in ratios for ratio in each)])
        possible = 0.0 <= made._low <= MOST_MISS and 1.0 - MOST_MISS <= made._high <= 1.0 and numbers[:2].min() >= 0.0
        if not possible or not np.isfinite(numbers).all() or len(ratios) != len(made._ratios):
            raise InputError("the errors of waits hold numbers that they cannot have")
        for known, of_class in zip(made._ratios, ratios, strict=True):
            known.extend(of_class)
        return made

    def as_dict(self) -> dict[str, Any]:
        """All that was learned, as JSON holds it.

        >>> errors = WaitErrors()
        >>> for _ in range(40):
        ...     errors.learn(errors.expect(600.0), 1260.0)
        >>> round(WaitErrors.of(errors.as_dict()).expect(600.0).seconds)
        1260
        """
        return {
            "low": self._low,
            "high": self._high,
            "missed": self._missed,
            "missed_corrected": self._missed_corrected,
            "ratios": [[round(ratio, 6) for ratio in list(each)] for each in self._ratios],
        }

    def learn(self, forecast: Wait, waited: float) -> None:
        """Learn how long a job waited (s) for which a forecast had been made.

        The forecast is judged as it was made: what has been learned since was of no use to it.
        """
        self._missed = MEMORY * self._missed + abs(forecast.simulated - waited)
        self._missed_corrected = MEMORY * self._missed_corrected + abs(forecast.corrected - waited)
        self._low = min(max(self._low + STEP * (MISS - (waited < forecast.low)), 0.0), MOST_MISS)
        self._high = max(min(self._high - STEP * (MISS - (waited > forecast.high)), 1.0), 1.0 - MOST_MISS)
        self._ratios[_class(forecast.simulated)].append(
            math.log((waited + SOFTENING) / (forecast.simulated + SOFTENING))
        )
        self._factors.clear()

    def expect(self, simulated: float) -> Wait:
        """The forecast for a job whose simulated wait is known (s)."""
        of = _class(simulated)
        if len(self._ratios[of]) < FEWEST:
            return Wait(simulated, 0.0, max(4.0 * simulated, 3600.0), simulated, simulated)
        if of not in self._factors:
            levels = np.quantile(self._ratios[of], [self._low, 0.5, self._high])
            self._factors[of] = tuple(np.exp(levels).tolist())
        low, corrected, high = (max(factor * (simulated + SOFTENING) - SOFTENING, 0.0) for factor in self._factors[of])
        better = corrected if self._missed_corrected < self._missed else min(max(simulated, low), high)
        return Wait(better, low, high, simulated, corrected)


def _class(said: float) -> int:
    return bisect_right(CLASSES, said) if said > 0 else 0
