"""Solves forecast and prediction together: a forecast depends on the duration of the run, and it on the forecast."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Forecast = TypeVar("Forecast")


@dataclass(frozen=True, slots=True)
class Horizon(Generic[Forecast]):
    """A horizon T that agrees with itself.

    Parameters
    ----------
    seconds : T.
    forecast : the forecast over [now, now + T].
    steps : the prediction that found it: 1 is the first.
    """

    seconds: float
    forecast: Forecast
    steps: int


def solve_horizon(
    predict_time: Callable[[Forecast], float],
    forecast: Callable[[float], Forecast],
    *,
    start: float = 60.0,
    tolerance: float = 0.01,
    most_steps: int = 12,
) -> Horizon[Forecast]:
    """Find T with T = predict_time(forecast(T)).

    Parameters
    ----------
    predict_time : execution time (s) under a forecast.
    forecast : forecast over a horizon (s).
    start : first guess of T, seconds.
    tolerance : relative change of T at which it is found.
    most_steps : after this many predictions the best T so far is taken.

    Returns
    -------
    Horizon; its forecast is the one that belongs to its seconds.

    Raises
    ------
    ValueError : a predicted time is not a finite number above 0.

    Notes
    -----
    Plain iteration on log T converges where forecasts change slowly with T, as averages do; the secant of
    log g(T) - log T speeds it up. Once two guesses have the root between them, a step that would leave them is replaced
    by halving, so that a forecast that jumps cannot send T back and forth forever.

    Examples
    --------
    >>> found = solve_horizon(lambda cpu: 100.0 / cpu, lambda T: 0.5 + 0.3 / (1 + T / 60))
    >>> round(found.seconds), found.steps
    (174, 3)
    """
    position = math.log(_checked(start))
    low, high = -math.inf, math.inf
    earlier: tuple[float, float] | None = None
    least = math.inf
    for steps in range(1, most_steps + 1):
        view = forecast(math.exp(position))
        excess = math.log(_checked(predict_time(view))) - position
        if abs(excess) < least:
            least, best = abs(excess), Horizon(math.exp(position), view, steps)
        if least <= tolerance:
            break
        low, high = (max(low, position), high) if excess > 0 else (low, min(high, position))
        target = position + excess
        if earlier is not None and excess != earlier[1]:
            secant = position - excess * (position - earlier[0]) / (excess - earlier[1])
            target = secant if abs(secant - position) < 4 * abs(excess) else target
        if not low < target < high:
            target = (low + high) / 2 if math.isfinite(low + high) else position + excess
        earlier, position = (position, excess), target
    return best


def _checked(seconds: float) -> float:
    if not 0 < seconds < math.inf:
        raise ValueError(f"predicted time is {seconds}, expected a finite number of seconds above 0")
    return seconds
