"""The protocol of the paper's section 4: fit on training runs, then predict, compare and learn, run by run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from metasched.predictors.abilities import energy_predictor, for_user, understood
from metasched.predictors.contract import Predictor
from metasched.predictors.judging.conditions import Conditions
from metasched.predictors.judging.groups import Group
from metasched.predictors.load_doubt import Expected, predict_expected
from metasched.records import InputError, Prediction, Run

#: The evaluated quantity: execution times (s), or energies (J) of the metered runs.
Quantity = Literal["time", "energy"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prediction and what really happened; a prediction of energy has joules in the place of seconds."""

    run: Run
    prediction: Prediction
    quantity: Quantity = "time"

    @property
    def measured(self) -> float:
        """Execution time (s) or energy (J) of the run."""
        return (self.run.energy or math.nan) if self.quantity == "energy" else self.run.execution_time

    @property
    def ppe(self) -> float:
        """Percentage prediction error: 100 |predicted - measured| / measured."""
        return 100.0 * abs(self.prediction.execution_time / self.measured - 1.0)

    @property
    def held(self) -> bool:
        """Whether the interval contained the outcome."""
        return self.prediction.interval.low <= self.measured <= self.prediction.interval.high


@dataclass(frozen=True)
class Evaluation:
    """All outcomes of one way to predict on one campaign, group by group in order of time.

    Parameters
    ----------
    outcomes : predictions, and what really happened.
    fit_seconds : seconds that fitting to the training runs took.

    Examples
    --------
    >>> from metasched.records import Interval
    >>> outcome = Outcome(Run("a", "c", 1, 1, 1, 1, 10.0), Prediction(11.0, Interval(9.0, 12.0, 0.9), "m"))
    >>> round(Evaluation((outcome,)).summary()["ppe_mean"], 6)
    10.0
    """

    outcomes: tuple[Outcome, ...]
    fit_seconds: float = 0.0

    def summary(self) -> dict[str, float]:
        """The summary of the outcomes.

        Returns
        -------
        Mean, deviation and median PPE (%), the shares of predictions under 30 % and held by their interval, the median
        of the upper over the lower ends of the intervals, and the seconds that fitting took.
        """
        ppe = np.array([outcome.ppe for outcome in self.outcomes])
        ends = np.array([(one.prediction.interval.low, one.prediction.interval.high) for one in self.outcomes])
        with np.errstate(divide="ignore"):
            width = float(np.median(ends[:, 1] / ends[:, 0]))
        return {
            "ppe_mean": float(ppe.mean()),
            "ppe_std": float(ppe.std()),
            "ppe_median": float(np.median(ppe)),
            "ppe_under_30": float((ppe < 30.0).mean()),
            "interval_coverage": float(np.mean([outcome.held for outcome in self.outcomes])),
            "interval_width_median": width,
            "fit_seconds": self.fit_seconds,
        }


def evaluate(
    make: Callable[[Group], Predictor],
    groups: Iterable[Group],
    conditions: Conditions,
    level: float = 0.9,
    *,
    learning: bool = True,
    quantity: Quantity = "time",
    progress: Callable[[Iterable[Outcome], int], Iterable[Outcome]] = lambda outcomes, _: outcomes,
) -> Evaluation:
    """Fit a predictor to the training runs of each group, then go through the others as :func:`follow` does.

    Parameters
    ----------
    make : makes an unfitted predictor for a group.
    groups : see ``metasched.predictors.judging.groups``.
    conditions, level, learning, quantity : see :func:`follow`.
    progress : shows how far the outcomes of a group are, of which it is given the number.
    """
    outcomes: list[Outcome] = []
    seconds = 0.0
    for group in groups:
        predictor = make(group)
        begin = time.perf_counter()
        predictor.fit(group.training)
        seconds += time.perf_counter() - begin
        outcomes += progress(
            follow(predictor, group.rest, conditions, level, learning=learning, quantity=quantity), len(group.rest)
        )
    return Evaluation(tuple(outcomes), seconds)


def follow(
    predictor: Predictor,
    runs: Iterable[Run],
    conditions: Conditions,
    level: float = 0.9,
    *,
    learning: bool = True,
    quantity: Quantity = "time",
) -> Iterator[Outcome]:
    """Yield one outcome for each run, learning it after it was predicted where ``learning``.

    With ``quantity`` "energy" runs that tell none are learned and not judged.

    Parameters
    ----------
    predictor : fitted already.
    runs : in the order in which they ended.
    conditions : makes the request that a run is predicted from.
    level : of the intervals.
    learning : whether each run is learned after it was predicted.
    quantity : what is judged, times or energies.
    """
    for (outcome,) in follow_under(predictor, runs, (conditions,), level, learning=learning, quantity=quantity):
        yield outcome


def follow_under(
    predictor: Predictor,
    runs: Iterable[Run],
    conditions: Sequence[Conditions],
    level: float = 0.9,
    *,
    learning: bool = True,
    quantity: Quantity = "time",
) -> Iterator[tuple[Outcome, ...]]:
    """Yield for each run an outcome under each of several conditions.

    Whatever the conditions of the prediction, the run is learned with the loads that it really met, so one predictor
    serves all of them. A search that a run set off is waited for, so that results do not depend on the speed of the
    machine.
    """
    for run in runs:
        asked = for_user(predictor, run.user)
        answering = asked if quantity == "time" else energy_predictor(asked)
        if answering is None:
            raise InputError(
                f"the {predictor.name} method has learned no energy, expected train rows with measured energy"
            )
        if quantity == "time" or run.energy is not None:
            # How long the loads count that are forecast is for the times to say, whatever is predicted with them.
            expected = [each(run, asked, level) for each in conditions]
            yield tuple(Outcome(run, _predicted(answering, each, level), quantity) for each in expected)
        if not learning:
            continue
        predictor.learn(run)
        settle = getattr(predictor, "settle", None)
        if settle is not None:
            settle()


def _predicted(predictor: Predictor, expected: Expected, level: float) -> Prediction:
    """The prediction of one run, without parameters that no run learned so far had, as a job would be predicted."""
    try:
        return predict_expected(predictor, expected, level)
    except InputError:
        settings, refused = understood(expected.request.settings, [predictor])
        if not refused:
            raise
    known = replace(expected, request=replace(expected.request, settings=settings))
    found = predict_expected(predictor, known, level)
    return replace(found, warnings=found.warnings + refused)
