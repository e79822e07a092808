"""Models of execution time as an estimator of scikit-learn, for its pipelines, searches and cross-validation."""

from __future__ import annotations

import warnings
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative, column_or_1d, validate_data

from metasched.arrays import Floats
from metasched.fitting import METHODS, fit
from metasched.frames import predicted, rows_by_settings
from metasched.records import DEFAULT_SETTINGS, Run, Settings, check_level
from metasched.store import documents
from metasched.store.files.runs import REQUEST_COLUMNS

#: What columns that X does not have are taken for: one processor, and loads that are not known.
_MISSING = (1.0, 1.0, np.nan, np.nan)
_LOWEST = (1e-9, 1.0, 1e-6, 1e-6)
_HIGHEST = (np.inf, 1e9, 1.0, np.inf)


class ExecutionTimeRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Execution times of one application on one platform, from what a run is asked and the loads that it meets.

    X has the columns problem_size, processors, min_avg_avail_cpu (fraction of one processor) and min_avg_avail_bw
    (Mbit/s), in this order; the last ones may be missing, and are then taken for one processor and loads that are not
    known: runs are learned as such, and predictions expect the usual loads. Or it is a data frame of pandas that names
    them among others, in any order, such as one of ``runs.csv``, of which only loads may be missing: then its columns
    of layout, clock and parameters count too, where the method distinguishes them. Further columns are not used. y is
    the execution time (s).

    Parameters
    ----------
    method : ``"robust"`` or another of :func:`metasched.fit`.
    outside : ``"raise"`` refuses numbers that no run can have (no processor, CPU above 1, a time that is not above 0);
        ``"clip"`` moves them to the nearest that one can have, rounds processors, and refuses negative ones only.

    Attributes
    ----------
    predictor_ : the fitted predictor, which can also learn run by run.
    n_features_in_ : int, columns of X in ``fit``.

    Examples
    --------
    >>> X = [[n, p, 1.0, 100.0] for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> y = [0.001 * n / p for n, p, _, _ in X]
    >>> model = ExecutionTimeRegressor(method="published").fit(X, y)
    >>> model.predict([[1000, 4, 1.0, 100.0]]).round(3)
    array([0.25])
    >>> low, high = model.predict_interval([[1000, 4, 1.0, 100.0]], level=0.9)[0]
    >>> bool(low <= 0.25 <= high)
    True
    """

    def __init__(self, method: str = "robust", outside: str = "raise") -> None:
        self.method = method
        self.outside = outside

    def fit(self, X: ArrayLike, y: ArrayLike) -> ExecutionTimeRegressor:
        """Fit to runs.

        Parameters
        ----------
        X : array of shape (n, 4) or data frame.
        y : array of shape (n,), execution times (s).

        Raises
        ------
        ValueError : for parameters and numbers that are not as the class says.
        """
        if self.method not in METHODS:
            raise ValueError(f"method is {self.method!r}, expected one of {', '.join(METHODS)}")
        if self.outside not in ("raise", "clip"):
            raise ValueError(f"outside is {self.outside!r}, expected raise or clip")
        checked: tuple[Floats, Floats] = validate_data(self, _chosen(X), y, y_numeric=True, dtype=np.float64)
        times = column_or_1d(checked[1], warn=True).astype(float)
        if self.outside == "clip":
            times = np.maximum(times, 1e-9)
        asked, extra = self._requests(checked[0], X), np.empty(len(times), dtype=object)
        for settings, rows in _by_settings(X, len(times)).items():
            extra[rows] = MappingProxyType(settings.cells)
        runs = [
            Run("application", "platform", size, int(count), cpu, bandwidth, time, extra=cells)
            for (size, count, cpu, bandwidth), time, cells in zip(asked, times, extra, strict=True)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self.predictor_ = fit(runs, self.method)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Execution times (s), array of shape (n,), for X of shape (n, 4) or a data frame."""
        return self._predictions(X, 0.9)[:, 0]

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> Floats:
        """Ends of the prediction intervals (s), array of shape (n, 2), each with its outcome by probability level."""
        check_level("level", level)
        return self._predictions(X, level)[:, 1:]

    def _predictions(self, X: ArrayLike, level: float) -> Floats:
        """Execution time and both ends of its interval (s) of each row, shape (n, 3)."""
        check_is_fitted(self)
        checked: Floats = validate_data(self, _chosen(X), dtype=np.float64, reset=False)
        asked = self._requests(checked, X)
        return predicted(self.predictor_, asked, _by_settings(X, len(asked)), level)

    def _requests(self, checked: Floats, X: Any) -> Floats:
        """The four columns, shape (n, 4), as the parameter ``outside`` has them.

        Parameters
        ----------
        checked : X as an array.
        X : a data frame may lack columns.
        """
        whole = np.tile(_MISSING, (len(checked), 1))
        used = min(checked.shape[1], 4)
        whole[:, :used] = checked[:, :used]
        if _named(X):
            whole[:, [name not in X.columns for name in REQUEST_COLUMNS]] = np.nan
        if self.outside == "clip":
            check_non_negative(checked, type(self).__name__)
            whole = np.clip(whole, _LOWEST, _HIGHEST)
            whole[:, 1] = np.round(whole[:, 1])
            return np.asarray(whole)
        wrong = (whole <= 0) | (whole > _HIGHEST) | np.isinf(whole)
        wrong[:, 1] |= whole[:, 1] % 1 != 0
        if wrong.any():
            row, column = (int(place) for place in np.argwhere(wrong)[0])
            expected = ("a number above 0", "a whole number of at least 1", "a fraction in (0, 1]", "a number above 0")
            name = REQUEST_COLUMNS[column]
            raise ValueError(f"X, row {row}: {name} is {whole[row, column]:g}, expected {expected[column]}")
        return whole

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "predictor_" in state:
            state["predictor_"] = documents.dump(state["predictor_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "predictor_" in state:
            state = state | {"predictor_": documents.parse(state["predictor_"], where="pickled model")}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True
        return tags


def _chosen(X: Any) -> Any:
    """The four columns of a data frame that names any of them, ones in place of loads; anything else as it is.

    Raises
    ------
    ValueError : the data frame has no problem_size or no processors; only loads may be missing.
    """
    if not _named(X):
        return X
    for name in REQUEST_COLUMNS[:2]:
        if name not in X.columns:
            raise ValueError(f"X has no column {name}, found {', '.join(map(str, X.columns))}")
    return np.column_stack([X[name] if name in X.columns else np.ones(len(X)) for name in REQUEST_COLUMNS])


def _named(X: Any) -> bool:
    """Whether this is a data frame that names any of the four columns."""
    return any(isinstance(name, str) and name in REQUEST_COLUMNS for name in getattr(X, "columns", ()))


def _by_settings(X: Any, count: int) -> dict[Settings, NDArray[np.intp]]:
    """The places of so many rows by their settings, which only frames of pandas with named columns tell."""
    return rows_by_settings(X) if _named(X) and hasattr(X, "iloc") else {DEFAULT_SETTINGS: np.arange(count)}
