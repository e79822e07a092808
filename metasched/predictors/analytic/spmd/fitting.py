"""Fitting the seven parameters of a phase to observed times, with their standard errors.

Relative least squares, as the paper's error is relative. Standard errors are those of the linearised model, also for
parameters that end at a bound (0, or 1 for w); those that the observations cannot tell apart get an infinite one and a
line that names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Flags, Floats, Ints
from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.surface import execution_time
from metasched.records import InputError

#: What is estimated, in the order of every array here.
PARAMETERS = (
    "parallel_computation",
    "serial_computation",
    "communication_startup",
    "communication_transfer",
    "io_startup",
    "io_transfer",
    "contention",
)
#: Levels of contention that the search starts from: the error has valleys on both sides.
_STARTS = (0.1, 0.5, 0.9)
#: Parts of the longest time under which a parameter counts as 0.
_NEGLIGIBLE = 1e-7
#: Ratio of singular values under which directions of the parameters are not determined.
_SINGULAR = 1e-5


@dataclass(frozen=True)
class SurfaceFit:
    """The fitted parameters of a phase, with their covariance and the errors of the fit.

    Parameters
    ----------
    phase : the phase with the parameters found.
    covariance : array of shape (7, 7) in the order of :data:`PARAMETERS`; infinite variance for a parameter that is
        not determined.
    average_error : the paper's average error, the root of the summed squares of the relative errors over their number.
    rms_error : root mean square of the relative errors.
    notes : what the user should know of the parameters.
    """

    phase: Phase
    covariance: Floats
    average_error: float
    rms_error: float
    notes: tuple[str, ...]

    @property
    def standard_error(self) -> dict[str, float]:
        """Standard error of each parameter by name."""
        return dict(zip(PARAMETERS, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))


def fit_surface(template: Phase, processors: ArrayLike, disks: ArrayLike, time: ArrayLike) -> SurfaceFit:
    """Fit the seven parameters to observed times.

    Parameters
    ----------
    template : the phase whose other parameters (c, r, n^I/O, cycles, ...) are known.
    processors, disks, time : arrays of shape (n,), time in seconds; for observed speedups give 1 / speedup, and the
        parameters come out in units of T_1.

    Raises
    ------
    InputError : with too few points, times that are not above 0, or points where the template is not defined.

    Examples
    --------
    >>> p, d = (grid.ravel() for grid in np.meshgrid([1, 2, 4, 8, 16], [1, 2, 4]))
    >>> truth = Phase(8.0, 0.1, 0.05, 0.5, 0.02, 1.0, contention=0.4, dimensions=2, io="bus")
    >>> fit = fit_surface(Phase(1.0, dimensions=2, io="bus"), p, d, execution_time(Application("a", (truth,)), p, d))
    >>> round(fit.phase.parallel_computation, 3), round(fit.phase.contention, 3)
    (8.0, 0.4)
    """
    p, d, measured = (
        np.asarray(column).ravel() for column in np.broadcast_arrays(processors, disks, np.asarray(time, dtype=float))
    )
    _check(template, p, d, measured)
    unit = float((measured * p).max())

    def predicted(values: Floats) -> Floats:
        return execution_time(Application("fit", (_with(template, values, unit),)), p, d)

    def residual(values: Floats) -> Floats:
        return measured / predicted(values) - 1.0  # (s - s_observed) / s_observed

    upper = np.array([np.inf] * 6 + [1.0])
    work = float((measured * p).min()) / (unit * template.cycles * template.computation_bursts)

    def search(start: Floats, tolerance: float) -> scipy.optimize.OptimizeResult:
        return bounded_least_squares(residual, start, upper, xtol=tolerance, ftol=tolerance)

    starts = (
        np.array([1.0, 0.02, 0.02, 0.2, 0.02, 0.1, 0.0]) * work + np.append(np.zeros(6), contention)
        for contention in _STARTS
    )
    rough = min((search(start, 1e-4) for start in starts), key=lambda result: float(result.cost))
    found = search(rough.x, 1e-10)
    values = np.where(found.x < _NEGLIGIBLE, 0.0, found.x)
    at_bound = (values == 0) | (values > upper - _NEGLIGIBLE)
    errors = residual(values)
    covariance, undetermined = _covariance(np.asarray(found.jac), errors)
    scale = np.append(np.full(6, unit), 1.0)
    return SurfaceFit(
        _with(template, values, unit),
        covariance * np.outer(scale, scale),
        average_error=float(np.sqrt((errors**2).sum()) / errors.size),
        rms_error=float(np.sqrt((errors**2).mean())),
        notes=_notes(at_bound, undetermined),
    )


def bounded_least_squares(
    residual: Callable[[Floats], Floats], start: Floats, upper: Floats, **limits: Any
) -> scipy.optimize.OptimizeResult:
    """The parameters from 0 to ``upper`` with the least sum of squares, see :func:`scipy.optimize.least_squares`."""
    # Where nothing is left to gain in a direction, SciPy divides by zero on its way to a step that is sound.
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.zeros(len(upper)), upper
        return scipy.optimize.least_squares(residual, start, bounds=bounds, x_scale="jac", **limits)


def _with(template: Phase, values: Floats, unit: float) -> Phase:
    numbers = dict(zip(PARAMETERS, values.tolist(), strict=True))
    for name in PARAMETERS[:6]:
        numbers[name] *= unit
    # The search stays above 0 but for rounding; a phase without any computation is none.
    numbers["parallel_computation"] = max(numbers["parallel_computation"], np.finfo(float).tiny)
    return replace(template, **numbers)


def _check(template: Phase, p: Ints, d: Ints, measured: Floats) -> None:
    if measured.size < len(PARAMETERS):
        raise InputError(f"{measured.size} observations, expected at least {len(PARAMETERS)}, one for each parameter")
    wrong = ~(np.isfinite(measured) & (measured > 0))
    if wrong.any():
        raise InputError(f"an observed time is {measured[wrong][0]}, expected finite numbers above 0")
    if np.unique(p).size < 2:
        raise InputError(f"all observations have {p[0]} processors, expected at least two different numbers")
    undefined = np.isnan(execution_time(Application("fit", (template,)), p, d))
    if undefined.any():
        level = template.synchronization
        at = f"{p[undefined][0]} processors and {d[undefined][0]} disks"
        raise InputError(f"the {template.io} model with synchronization {level} is not defined for {at}")


def _covariance(jacobian: Floats, errors: Floats) -> tuple[Floats, Flags]:
    """s^2 (J^T J)^-1, and which parameters lie in a direction that changes nothing."""
    length = np.sqrt((jacobian**2).sum(axis=0))
    length[length == 0] = 1.0
    _, singular, directions = np.linalg.svd(jacobian / length, full_matrices=False)
    determined = singular > _SINGULAR * singular.max(initial=0.0)
    variance = (errors**2).sum() / max(errors.size - int(determined.sum()), 1)
    known = directions[determined] / singular[determined, None]
    covariance = variance * (known.T @ known) / np.outer(length, length)
    undetermined = np.abs(directions[~determined]).max(axis=0, initial=0.0) > 1e-3
    covariance[undetermined, undetermined] = np.inf
    return covariance, undetermined


def _notes(at_bound: Flags, undetermined: Flags) -> tuple[str, ...]:
    notes = []
    if at_bound.any():
        names = ", ".join(name for name, bound in zip(PARAMETERS, at_bound, strict=True) if bound)
        notes.append(f"at a bound: {names}")
    if undetermined.any():
        names = ", ".join(name for name, vague in zip(PARAMETERS, undetermined, strict=True) if vague)
        notes.append(
            f"the observations do not determine these parameters separately: {names}; they do determine the surface"
        )
    return tuple(notes)
