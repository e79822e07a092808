"""What the robust method knows at one moment, which never changes: to learn is to put another in its place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metasched.predictors.calibration import Calibration
from metasched.predictors.committee import Record, combine, combined
from metasched.predictors.contract import Floats
from metasched.predictors.domain import Domain
from metasched.predictors.experts import NAMES, Experts
from metasched.predictors.extrapolation import Extrapolation
from metasched.predictors.trend import Trend
from metasched.records import Interval, Prediction, Request

#: Spread of the log time assumed until the committee can be fitted.
UNKNOWN_SPREAD = 0.3


@dataclass(frozen=True)
class RobustState:
    """All that the robust method has learned.

    Parameters
    ----------
    trend : the models of Eq. (1).
    experts : the committee around the trend; None with too few runs.
    record : how well each expert has predicted.
    calibration : scores of past predictions.
    domain : what was learned from.
    extrapolation : how much less sure the committee is outside that.
    notes : what a user of the predictions should know.
    since_search : runs learned since the last search.
    """

    trend: Trend
    experts: Experts | None
    record: Record
    calibration: Calibration
    domain: Domain
    extrapolation: Extrapolation
    notes: tuple[str, ...] = ()
    since_search: int = 0

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Log times and their spreads, for arrays of one shape (n,); infinite where nothing is defined."""
        return self.compare(n, p, cpu, bw)[:2]

    def compare(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats, Floats]:
        """Log times, their spreads, and the log times of the trend alone, each of shape (n,)."""
        if self.experts is None or not n.size:
            trend = self.trend.log_time(n, p, cpu, bw)
            return trend, np.full(n.shape, UNKNOWN_SPREAD), trend
        each, spreads = self.experts.predict(n, p, cpu, bw)
        log_time, spread = combine(each, spreads, self.record.weights())
        return log_time, np.hypot(spread, self.extrapolation.spread(n, p, cpu, bw)), each[0]

    def expect(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Log times alone."""
        if self.experts is None or not n.size:
            return self.trend.log_time(n, p, cpu, bw)
        return combined(self.experts.expect(n, p, cpu, bw), self.record.weights())

    def explained(self, log_shift: float) -> str:
        """Name the formula, and what the committee made of it."""
        formula, shares = self._words
        return f"{formula}; {np.expm1(log_shift):+.1%} by the committee ({shares})" if shares else formula

    @cached_property
    def _words(self) -> tuple[str, str]:
        shares = zip(NAMES, self.record.weights(), strict=True)
        told = ", ".join(f"{name} {share:.0%}" for name, share in shares)
        return self.trend.formula(), told if self.experts is not None else ""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was last predicted, by what was known then: log time, its spread, and the model's name."""

    state: RobustState
    request: Request
    log_time: float
    spread: float
    model: str

    def at(self, level: float) -> Prediction:
        """The prediction, with an interval of some level."""
        with np.errstate(over="ignore"):
            time = np.exp([self.log_time])
        low, high = self.state.calibration.ends(time, self.spread, level)
        interval = Interval(float(low[0]), float(high[0]), level)
        warnings = self.state.notes + self.state.domain.warnings(self.request)
        return Prediction(float(time[0]), interval, self.model, warnings)
