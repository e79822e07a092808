"""The two scale factors of Eq. (3), from dedicated runs on one and on two processors of both platforms.

Section 3.5 of Sanjay & Vadhiyar 2008. Rcpu is the ratio of one-processor times, here the median over all problem sizes
instead of one moderate size. Rbw is where the formula fits two-processor runs on the target as well as it fits those on
the reference; the paper steps towards that value, here the best fit is a minimum and the values that fit as well as on
the reference lie between two roots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import scipy

from candidate_functions.terms import Observations
from metasched.arrays import Floats
from metasched.plain_numbers import number_of
from metasched.records import InputError, Run

#: A run counts as dedicated if at least this share of its processors was available.
DEDICATED = 0.9
#: Least scatter of the logarithms of ratios of times, as the least noise of the process on a ported formula: one run,
#: or two that agree, are no exact measurement.
LEAST_SCATTER = 0.01
#: log Rbw is looked for within these bounds of 0.
FARTHEST = math.log(1e3)
#: Spread of log Rbw before anything is known. Bandwidth is in Eq. (3) by itself, so what Rbw stands for, different
#: overlap and protocol costs, is a matter of a factor of two, not of ten.
EXPECTED_SPREAD = math.log(2.0)

#: Badness of fit under a given log Rbw.
Misfit = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Factor:
    """A scale factor, and the range of values that fit about as well."""

    value: float
    low: float
    high: float


def dedicated(runs: Iterable[Run], processors: int, *, where: str) -> list[Run]:
    """The dedicated runs on ``processors`` processors.

    Raises
    ------
    InputError : there is none.
    """
    chosen = [
        run for run in runs if run.processors == processors and run.measured and run.min_avg_avail_cpu >= DEDICATED
    ]
    if not chosen:
        count = number_of(processors, "processor")
        raise InputError(
            f"no dedicated run on {count} (available CPU at least {DEDICATED:g}), expected at least one to port with",
            where=where,
        )
    return chosen


def cpu_factor(reference: Observations, target: Observations) -> Factor:
    """Rcpu: the time of a processor of the target relative to the reference.

    Times are multiplied by the available CPU, so that a processor that was not quite free does no harm. Sizes that the
    reference has not run are interpolated in logarithms between those that it has.

    Raises
    ------
    InputError : no problem size of the target lies within those of the reference.

    Examples
    --------
    >>> def alone(sizes, seconds):
    ...     return Observations.of(sizes, np.ones(len(sizes)), np.ones(len(sizes)), np.full(len(sizes), 90.0), seconds)
    >>> round(cpu_factor(alone([100, 200, 400], [1.0, 4.0, 16.0]), alone([150, 200], [1.125, 2.0])).value, 6)
    0.5
    """
    known, log_known = _log_times_by_size(reference)
    sizes, log_times = _log_times_by_size(target)
    common = (sizes >= known[0]) & (sizes <= known[-1])
    if not common.any():
        raise InputError(
            f"one-processor runs of the target have problem sizes {sizes[0]:g} to {sizes[-1]:g}, "
            f"expected some within those of the reference, {known[0]:g} to {known[-1]:g}"
        )
    ratios = log_times[common] - np.interp(np.log(sizes[common]), np.log(known), log_known)
    middle = float(np.median(ratios))
    # The median absolute deviation, scaled to a standard deviation, and as a standard error of the median.
    scatter = max(1.4826 * float(np.median(np.abs(ratios - middle))), LEAST_SCATTER)
    error = scatter * math.sqrt(math.pi / 2.0 / len(ratios))
    return Factor(math.exp(middle), math.exp(middle - error), math.exp(middle + error))


def bandwidth_factor(misfit: Misfit, reference_misfit: float, runs: int) -> Factor:
    """Rbw: the time of communication on the target relative to that of Eq. (1) alone.

    Parameters
    ----------
    misfit : badness of fit to the dedicated runs of the target, as a mean square, under a given log Rbw.
    reference_misfit : that of the unscaled formula to the dedicated runs of the reference, which is to be matched.
    runs : how many runs of the target there are.

    Returns
    -------
    Factor : the value that fits best, weighed against the expectation that Rbw is near 1 so that runs that hardly
        communicate do not make it up; and the range in which the fit is at least as good as on the reference.

    Examples
    --------
    >>> found = bandwidth_factor(lambda log_rbw: 0.5 + 100.0 * (log_rbw - np.log(1.5)) ** 2, 0.6, runs=15)
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (1.5, 1.45, 1.55)

    Raises
    ------
    InputError : when the formula is not defined at all of the dedicated runs.
    """
    if not all(math.isfinite(each) for each in (reference_misfit, *map(misfit, (-FARTHEST, 0.0, FARTHEST)))):
        raise InputError("the reference's formula is not defined at some dedicated runs, expected it at all of them")

    def objective(log_rbw: float) -> float:
        return runs * misfit(log_rbw) + (log_rbw / EXPECTED_SPREAD) ** 2

    best = _minimum(objective)
    # A target that the formula fits worse than the reference still has a range: one unit of squared distance.
    level = max(reference_misfit, misfit(best) + 1.0 / runs)
    low = _crossing(misfit, level, best, -FARTHEST)
    high = _crossing(misfit, level, best, FARTHEST)
    return Factor(math.exp(best), math.exp(low), math.exp(high))


def _minimum(objective: Callable[[float], float]) -> float:
    """The lowest point within the bounds: the best of a grid, refined between its neighbours."""
    grid = np.linspace(-FARTHEST, FARTHEST, 41)
    best = int(np.argmin([objective(float(point)) for point in grid]))
    bounds = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
    return float(scipy.optimize.minimize_scalar(objective, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)


def _crossing(misfit: Misfit, level: float, inside: float, bound: float) -> float:
    """Where the misfit rises through a level on the way from a point inside to a bound; the bound if it does not."""
    if misfit(bound) <= level:
        return bound
    return float(scipy.optimize.brentq(lambda point: misfit(point) - level, inside, bound, xtol=1e-6))


def _log_times_by_size(runs: Observations) -> tuple[Floats, Floats]:
    """Problem sizes, ascending, and the median of log(time x available CPU) at each."""
    sizes, position = np.unique(runs.problem_size, return_inverse=True)
    work = np.log(runs.time * runs.cpu)
    return sizes, np.array([np.median(work[position == size]) for size in range(len(sizes))])
