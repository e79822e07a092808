"""The peers of learned energy: regressions of the logarithm of energy, and mean power times predicted time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Predictions, Predictor
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.judging.peers import GaussianProcess, PowerLaw, RidgeQuadratic
from metasched.predictors.log_regression import SPREAD, LogRegression
from metasched.predictors.memory.calibration import Calibration, score
from metasched.records import Prediction, Request, Run, Settings


class _OverTimes(ByColumns):
    """The times of a peer's predictor, for which forecast loads count."""

    times: Predictor

    def settle(self) -> None:
        """Wait for what runs in the background."""
        self.times.settle()

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict the execution time (s) of one run."""
        return self.times.predict(request, level)

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.times.predict_many(*columns, level)


class ByRegression(_OverTimes):
    """A regression of energies, with clocks and settings among its inputs, beside one of times.

    >>> runs = [
    ...     Run("a", "c", n, p, 0.9, 90.0, n / p, extra={"energy": str(7.0 * n)})
    ...     for n in (100, 200, 400)
    ...     for p in (1, 2, 4)
    ... ]
    >>> peer = ByRegression(RidgeQuadratic).fit(runs)
    >>> round(peer.energy_predictor().predict(Request(300, 2, 0.9, 90.0)).execution_time)
    2100
    """

    def __init__(self, kind: Callable[[], LogRegression]) -> None:
        self.times: LogRegression = kind()
        self.energies = kind()
        self.name = self.times.name

    def fit(self, runs: Iterable[Run]) -> ByRegression:
        """Fit the regression of times and the regression of energies."""
        runs = tuple(runs)
        self.times.fit(runs)
        self.energies.fit(_in_joules(runs))
        return self

    def learn(self, run: Run) -> None:
        """Learn a run in both regressions; its energy only where it was measured."""
        self.times.learn(run)
        for one in _in_joules([run]):
            self.energies.learn(one)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time under the request's settings."""
        return self.times.under(request.settings).predict(request, level)

    def energy_predictor(self) -> Predictor:
        """The regression that predicts energies (J) as it is now."""
        return self.energies


class MeanPower(_OverTimes):
    """The mean power of the learned runs times the times predicted by the metered method.

    >>> runs = [
    ...     Run("a", "c", n, p, 0.9, 90.0, n / p, extra={"energy": str(7.0 * n / p)})
    ...     for n in range(100, 900, 100)
    ...     for p in (1, 2, 4)
    ... ]
    >>> peer = MeanPower().fit(runs)
    >>> round(peer.energy_predictor().predict(Request(300, 2, 0.9, 90.0)).execution_time, -2)
    1000.0
    """

    name = "mean_power"

    def __init__(self) -> None:
        self.times: MeteredPredictor = MeteredPredictor()
        self.watts: list[float] = []
        self.calibration = Calibration()

    def fit(self, runs: Iterable[Run]) -> MeanPower:
        """Fit the times, and average the power."""
        runs = tuple(runs)
        self.times.fit(runs)
        self.watts = [run.energy / run.execution_time for run in runs if run.energy is not None]
        return self

    def learn(self, run: Run) -> None:
        """Learn a run's time and power."""
        if run.energy is not None:
            found = self.energy_predictor().under(run.settings).predict(run.request)
            self.calibration = self.calibration.learned(score(run.energy, found.execution_time, SPREAD))
            self.watts.append(run.energy / run.execution_time)
        self.times.learn(run)

    def energy_predictor(self) -> _MeanPowerEnergy:
        """What multiplies the predicted time by the mean power."""
        return _MeanPowerEnergy(self.times, float(np.mean(self.watts)), self.calibration)


class _MeanPowerEnergy(ByColumns):
    name = "mean_power"

    def __init__(self, times: MeteredPredictor, watts: float, calibration: Calibration) -> None:
        self._times, self._watts, self._calibration = times, watts, calibration

    def under(self, settings: Settings) -> _MeanPowerEnergy:
        return _MeanPowerEnergy(self._times.under(settings), self._watts, self._calibration)

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        joules = self._watts * self._times.expect_many(*columns)
        return self._calibration.around(joules, SPREAD, level)

    def fit(self, runs: Iterable[Run]) -> _MeanPowerEnergy:
        self._times.fit(runs)
        return self

    def learn(self, run: Run) -> None:
        self._times.learn(run)


def _in_joules(runs: Iterable[Run]) -> list[Run]:
    """Runs that tell their energy, in the place of their time."""
    return [replace(run, execution_time=run.energy) for run in runs if run.energy is not None]


#: All of them, in the order that tables show them.
ENERGY_PEERS: tuple[Callable[[], ByRegression | MeanPower], ...] = (
    MeanPower,
    lambda: ByRegression(PowerLaw),
    lambda: ByRegression(RidgeQuadratic),
    lambda: ByRegression(GaussianProcess),
)
