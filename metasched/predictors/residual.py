"""What the formulas leave over: a Gaussian process on the logarithm of measured over predicted time.

Caches, imbalance and overlap bend real times away from any formula of two terms, smoothly in the logarithms of N, P,
available CPU and bandwidth. The process learns that bend where there are runs and fades to the formula where there are
none, and its spread says how sure it is. Kernel: Matern 5/2 with a length scale for each input, plus noise (Rasmussen &
Williams, Gaussian Processes for Machine Learning, section 4.2); hyperparameters by marginal likelihood.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats
from metasched.predictors.scaling import Scaling

# A length scale that ends at its bound says that its input does not matter, which is no fault. The filter is for the
# whole program because processes are fitted in threads, and filters set for a block of code leak between threads.
warnings.filterwarnings("ignore", category=ConvergenceWarning, module="sklearn.gaussian_process")

#: Runs that the process looks at: the newest, and of the older those that cover most ground.
NEWEST, COVERING = 192, 64
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
        start = hyperparameters or Hyperparameters()
        kernel = ConstantKernel(start.variance, (1e-6, 4.0)) * Matern(
            np.asarray(start.length_scales), (1e-1, 1e3), nu=2.5
        ) + WhiteKernel(start.noise, (1e-6, 1.0))
        self.scaling = Scaling.of(points)
        self._process = GaussianProcessRegressor(
            kernel, alpha=1e-10, optimizer="fmin_l_bfgs_b" if optimise else None, copy_X_train=False
        )
        self._process.fit(self.scaling(points), residual)

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
            mean[piece], spread[piece] = self._process.predict(self.scaling(points[piece]), return_std=True)
        return mean, spread

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Error and spread of every run's residual, predicted from the others (Rasmussen & Williams, Eqs. 5.10-12)."""
        factor = self._process.L_
        inverse_factor = np.linalg.solve(factor, np.eye(len(factor)))
        diagonal = np.einsum("ij,ij->j", inverse_factor, inverse_factor)
        return np.ravel(self._process.alpha_) / diagonal, 1.0 / np.sqrt(diagonal)


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
