"""What is common to predictors that learn by fitting log time again to all the runs that they keep."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Predictions
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.representable import refuse_unrepresentable, representable
from metasched.predictors.memory.setting_columns import NO_COLUMNS, SettingColumns
from metasched.predictors.memory.window import RunWindow
from metasched.records import DEFAULT_SETTINGS, Run, Settings

#: Spread that scores are counted in.
SPREAD = 0.1
#: Runs that are kept at most.
CAPACITY = 10_000


class LogRegression(ByColumns):
    """A regression of log time that learns by fitting itself to all runs again.

    Parameters
    ----------
    application, cluster : what it models; those of the first run where empty.
    capacity : how many runs it keeps at most.
    """

    name = "log-regression"

    def __init__(self, application: str = "", cluster: str = "", *, capacity: int = CAPACITY) -> None:
        self.application, self.cluster = application, cluster
        self.window = RunWindow(capacity=capacity)
        self.calibration = Calibration()
        self._columns, self._settings = NO_COLUMNS, DEFAULT_SETTINGS

    def fit(self, runs: Iterable[Run]) -> LogRegression:
        """Fit to runs and forget everything learned before."""
        runs = tuple(runs)
        refuse_unrepresentable(runs)
        self.window = RunWindow(runs, self.window.capacity)
        self.calibration = Calibration()
        self._refit()
        return self

    def learn(self, run: Run) -> None:
        """Take one more run into account."""
        if not representable(run):
            return
        predicted = self.under(run.settings).predict(run.request).execution_time
        self.calibration = self.calibration.learned(score(run.execution_time, predicted, SPREAD))
        self.window.add(run)
        self._refit()

    def under(self, settings: Settings) -> LogRegression:
        """The predictor as it is now, answering for other settings."""
        view = copy.copy(self)
        view._settings = settings
        return view

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.calibration.around(self._expected(columns), SPREAD, level)

    def _expected(self, columns: Columns) -> Floats:
        points = self._with_settings(np.log(np.stack(columns, axis=1)), [self._settings])
        return np.exp(self._log_time(points)) if len(points) else np.empty(0)

    def _refit(self) -> None:
        first = next(iter(self.window), None)
        if first is not None:
            self.application, self.cluster = self.application or first.application, self.cluster or first.cluster
        runs, settings = self.window.observations(), [run.settings for run in self.window]
        points = np.log(np.stack([runs.problem_size, runs.processors, runs.cpu, runs.bw], axis=1))
        self._columns = SettingColumns.of(settings, points[:, 1])
        self._fit_log_time(self._with_settings(points, settings, learned=True), np.log(runs.time))

    def _with_settings(self, points: Floats, settings: Sequence[Settings], *, learned: bool = False) -> Floats:
        """Points (n, 4) with the columns of their settings, (n, 4 + c)."""
        rows = self._columns.rows(settings, learned=learned)
        return np.hstack([points, self._columns.filled(rows, points[:, 1])])

    @abstractmethod
    def _fit_log_time(self, points: Floats, log_time: Floats) -> None: ...

    @abstractmethod
    def _log_time(self, points: Floats) -> Floats: ...
