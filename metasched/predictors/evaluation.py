"""The protocol of the paper's section 4: fit on training runs, then predict, compare and learn, run by run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metasched.predictors.conditions import Conditions, predict
from metasched.predictors.contract import Predictor
from metasched.records import Prediction, Run


class Adaptive(Predictor, Protocol):
    """A predictor that can be fitted to training runs first."""

    def fit(self, runs: Iterable[Run]) -> Any:
        """Fit to training runs."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prediction and what really happened."""

    run: Run
    prediction: Prediction

    @property
    def ppe(self) -> float:
        """Percentage prediction error: 100 |predicted - measured| / measured."""
        return 100.0 * abs(self.prediction.execution_time / self.run.execution_time - 1.0)

    @property
    def held(self) -> bool:
        """Whether the interval held the outcome."""
        return self.prediction.interval.low <= self.run.execution_time <= self.prediction.interval.high


@dataclass(frozen=True)
class Evaluation:
    """All outcomes of one predictor on one campaign, in order of time.

    Examples
    --------
    >>> from metasched.records import Interval
    >>> outcome = Outcome(Run("a", "c", 1, 1, 1, 1, 10.0), Prediction(11.0, Interval(9.0, 12.0, 0.9), "m"))
    >>> round(Evaluation((outcome,)).summary()["ppe_mean"], 6)
    10.0
    """

    outcomes: tuple[Outcome, ...]

    def summary(self) -> dict[str, float]:
        """Mean, deviation and median PPE (%), and the shares of predictions under 30 % and held by their interval."""
        ppe = np.array([outcome.ppe for outcome in self.outcomes])
        return {
            "ppe_mean": float(ppe.mean()),
            "ppe_std": float(ppe.std()),
            "ppe_median": float(np.median(ppe)),
            "ppe_under_30": float((ppe < 30.0).mean()),
            "interval_coverage": float(np.mean([outcome.held for outcome in self.outcomes])),
        }


def split(runs: Iterable[Run]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Training runs, and the runs to predict, each in the order given."""
    runs = tuple(runs)
    return (
        tuple(run for run in runs if run.phase == "train"),
        tuple(run for run in runs if run.phase != "train"),
    )


def evaluate(
    predictor: Adaptive, training: Iterable[Run], rest: Iterable[Run], conditions: Conditions, level: float = 0.9
) -> Iterable[Outcome]:
    """Fit, then yield one outcome for each of the other runs, learning each run after it was predicted.

    Whatever the conditions of the prediction, the run is learned with the loads that it really met. A search that a
    run set off is waited for, so that results do not depend on the speed of the machine.
    """
    predictor.fit(training)
    for run in rest:
        yield Outcome(run, predict(predictor, conditions(run, predictor, level), level))
        predictor.learn(run)
        settle = getattr(predictor, "settle", None)
        if settle is not None:
            settle()
