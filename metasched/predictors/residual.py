"""What the formulas leave over: a Gaussian process on the logarithm of measured over predicted time.

Caches, imbalance and overlap bend real times away from any formula of two terms, smoothly in the logarithms of N, P,
available CPU and bandwidth. The process learns that bend where there are runs and fades to the formula where there are
none, and its spread says how sure it is. Kernel: Matern 5/2 with a length scale for each input, plus noise (Rasmussen &
Williams, Gaussian Processes for Machine Learning, section 4.2); hyperparameters by marginal likelihood. Runs that the
others do not explain carry more noise, see ``heavy_tails``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats
from metasched.predictors.heavy_tails import t_weights
from metasched.predictors.scaling import Scaling

# A length scale that ends at its bound says that its input does not matter, which is no fault. The filter is for the
# whole program because processes are fitted in threads, and filters set for a block of code leak between threads.
warnings.filterwarnings("ignore", category=ConvergenceWarning, module="sklearn.gaussian_process")

#: Runs that the process looks at: the newest, and of the older those that cover most ground.
NEWEST, COVERING = 192, 64
#: Searches for the hyperparameters, each with the weights that the one before gave.
SEARCHES = 2
#: Requests predicted in one piece.
_PIECE = 4096


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Of the kernel: variance of the bend, a length scale for each of the four inputs, variance of the noise."""

    variance: float = 0.01
    length_scales: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    noise: float = 1e-3


def inputs(problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
    """Inputs of the process: logarithms of N / P, P, available CPU and bandwidth, shape (n, 4).

    N / P stands for N because what a processor holds, not the whole problem, decides where caches overflow.
    """
    return np.log(np.stack([problem_size / processors, processors, cpu, bw], axis=1))


class ResidualProcess:
    """A Gaussian process fitted to log residuals.

    Parameters
    ----------
    points : array of shape (n, 4), see :func:`inputs`.
    residual : array of shape (n,), log(measured / trend).
    hyperparameters : to use as they are, or to start from.
    optimise : whether to maximise the marginal likelihood over them.

    Examples
    --------
    >>> x = np.log(np.stack([np.linspace(100, 900, 20), np.full(20, 4.0), np.ones(20), np.full(20, 90.0)], axis=1))
    >>> process = ResidualProcess(x, 0.1 * np.sin(x[:, 0]), optimise=True)
    >>> mean, spread = process.predict(x[:1])
    >>> bool(abs(mean[0] - 0.1 * np.sin(x[0, 0])) < 0.01)
    True
    """

    def __init__(
        self,
        points: Floats,
        residual: Floats,
        hyperparameters: Hyperparameters | None = None,
        *,
        optimise: bool = False,
    ) -> None:
        self.scaling = Scaling.of(points)
        self._extra_noise = np.zeros(len(points))
        scaled, found = self.scaling(points), hyperparameters or Hyperparameters()
        for _ in range(SEARCHES if optimise else 0):
            self._condition(scaled, residual, found, optimise=True)
            found = self.hyperparameters
            self._weigh()
        # The same two steps however the hyperparameters were come by, so that a model read from a file is the same.
        self._extra_noise[:] = 0.0
        self._condition(scaled, residual, found)
        self._weigh()
        self._condition(scaled, residual, found)

    def _condition(self, scaled: Floats, residual: Floats, start: Hyperparameters, *, optimise: bool = False) -> None:
        kernel = ConstantKernel(start.variance, (1e-6, 4.0)) * Matern(
            np.asarray(start.length_scales), (1e-1, 1e3), nu=2.5
        ) + WhiteKernel(start.noise, (1e-6, 1.0))
        self._process = GaussianProcessRegressor(
            kernel,
            alpha=1e-10 + self._extra_noise,
            optimizer="fmin_l_bfgs_b" if optimise else None,
            copy_X_train=False,
        )
        self._process.fit(scaled, residual)
        # Kept as plain arrays: a prediction of a few points takes no longer than it takes to ask the library for them.
        found = self.hyperparameters
        self._lengths = np.array(found.length_scales)
        self._variance, self._noise = found.variance, found.noise
        self._factor = np.asfortranarray(self._process.L_)
        self._known, self._alpha = self._process.X_train_ / self._lengths, np.ravel(self._process.alpha_)

    def _weigh(self) -> None:
        """Give each run the noise beyond the usual that its error, predicted from the others, calls for."""
        error, spread = self.leave_one_out()
        self._extra_noise = spread**2 * (1.0 / t_weights(error / spread) - 1.0)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The hyperparameters in use."""
        found = self._process.kernel_
        one, two, three, four = (float(length) for length in found.k1.k2.length_scale)
        return Hyperparameters(float(found.k1.k1.constant_value), (one, two, three, four), float(found.k2.noise_level))

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and spread of a new outcome's log residual at points of shape (n, 4)."""
        mean, spread = np.empty(len(points)), np.empty(len(points))
        for start in range(0, len(points), _PIECE):
            piece = slice(start, start + _PIECE)
            mean[piece], spread[piece] = self._outcome(self.scaling(points[piece]))
        return mean, spread

    def mean(self, points: Floats) -> Floats:
        """The mean alone, as :meth:`predict` tells it, in a fraction of the time."""
        mean = np.empty(len(points))
        for start in range(0, len(points), _PIECE):
            piece = slice(start, start + _PIECE)
            mean[piece] = self._covariance(self.scaling(points[piece])) @ self._alpha
        return mean

    def _covariance(self, scaled: Floats) -> Floats:
        """Matern 5/2 between scaled points and those learned from (Rasmussen & Williams, Eq. 4.17)."""
        distance = cdist(scaled / self._lengths, self._known)
        distance *= np.sqrt(5.0)
        covariance: Floats = np.exp(-distance)
        covariance *= self._variance * (1.0 + distance * (1.0 + distance / 3.0))
        return covariance

    def _outcome(self, scaled: Floats) -> tuple[Floats, Floats]:
        """Mean and spread at scaled points (Rasmussen & Williams, Eqs. 2.25 and 2.26).

        The library computes the same, and checks its inputs for ten times as long as a small prediction takes; so
        does its solver for triangular systems, and LAPACK's is asked directly.
        """
        covariance = self._covariance(scaled)
        explained, _ = dtrtrs(self._factor, covariance.T, lower=1)
        left = self._variance + self._noise - np.einsum("ij,ij->j", explained, explained)
        return covariance @ self._alpha, np.sqrt(np.maximum(left, 0.0))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Error and spread of every run's residual, predicted from the others (Rasmussen & Williams, Eqs. 5.10-12).

        The spread is that of a new outcome there, without the noise that this one run carries beyond the usual.
        """
        factor = self._process.L_
        inverse_factor = np.linalg.solve(factor, np.eye(len(factor)))
        diagonal = np.einsum("ij,ij->j", inverse_factor, inverse_factor)
        variance = np.maximum(1.0 / diagonal - self._extra_noise, self.hyperparameters.noise)
        return np.ravel(self._process.alpha_) / diagonal, np.sqrt(variance)


def well_chosen(runs: Observations) -> NDArray[np.intp]:
    """Positions of the runs that a process should look at, ascending: the newest, and older ones that cover the rest.

    Older runs are chosen one at a time, always the one farthest from all chosen so far.
    """
    n = len(runs)
    if n <= NEWEST + COVERING:
        return np.arange(n)
    points = inputs(runs.problem_size, runs.processors, runs.cpu, runs.bw)
    points = Scaling.of(points)(points)
    newest = np.arange(n - NEWEST, n)
    distance = np.min(np.linalg.norm(points[: n - NEWEST, None] - points[None, newest], axis=2), axis=1)
    older = []
    for _ in range(COVERING):
        farthest = int(np.argmax(distance))
        older.append(farthest)
        distance = np.minimum(distance, np.linalg.norm(points[: n - NEWEST] - points[farthest], axis=1))
    return np.concatenate([np.unique(older), newest])
