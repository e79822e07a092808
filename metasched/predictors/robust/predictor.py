"""The robust method, the default: predictions by one formula and one process; ``learning`` has how they are learned."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.abilities import Plan, PowerTerm, UsualLoad
from metasched.predictors.columns import ByColumns, Columns, broadcast, columns_of
from metasched.predictors.contract import Learned, Part, Predictions, Term
from metasched.predictors.formulas.searched import searched_list
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.learning import RobustLearner
from metasched.predictors.robust.notes import assumed_effects
from metasched.predictors.robust.planning import plan
from metasched.records import Interval, Prediction, Request, Settings


class RobustPredictor(RobustLearner, ByColumns):
    """The robust method.

    Parameters
    ----------
    application, cluster : of the model, for its record.
    capacity : number of past runs that it stores.
    revisit : runs between two searches.

    Examples
    --------
    >>> from metasched.records import Run
    >>> runs = [
    ...     Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**1.5 / (0.9 * p) + 1e-3 * n * (p - 1))
    ...     for n in range(100, 900, 50) for p in (1, 2, 4, 8)
    ... ]
    >>> predictor = RobustPredictor("cg", "c8").fit(runs)
    >>> prediction = predictor.predict(Request(500, 4, 0.9, 90.0))
    >>> abs(prediction.execution_time / (1e-3 * 500**1.5 / 3.6 + 1.5) - 1) < 0.05
    True
    """

    name = "robust"

    def under(self, settings: Settings) -> Self:
        """The predictor in its present state, predicting for other settings.

        Raises
        ------
        InputError : a parameter is unknown, or a word where numbers were.
        """
        view = copy.copy(self)
        view._state = self.state.under(settings)
        return view

    def plan(self, asked: Sequence[Request], candidates: Sequence[Request], budget: float) -> Plan:
        """Choose runs to make next, see :func:`metasched.predictors.robust.planning.plan`.

        Raises
        ------
        InputError : when the time of a placement that is asked about cannot be predicted.
        """
        for request in asked:
            self.predict(request)
        return plan(self.state.model, asked, candidates, budget)

    def widths(self, spreads: Floats, level: float) -> Floats:
        """Upper over lower ends of intervals, from standard deviations of log time, both of shape (t,)."""
        return np.asarray(np.exp(np.minimum(2.0 * self.state.calibration.reach(level) * spreads, 50.0)))

    @property
    def layouts(self) -> frozenset[tuple[int | None, int]]:
        """Processes per node and threads of the runs learned, where they differ, or all had several threads."""
        if not self.state.model.formula.effects.columns.laid_out:
            return frozenset()
        return frozenset((run.settings.processes_per_node, run.settings.threads) for run in (*self.lent, *self.window))

    @property
    def usual_loads(self) -> tuple[UsualLoad, UsualLoad]:
        """CPU and bandwidth with which runs are learned where they were not measured.

        If no run's was, its effect is part of the scatter of the runs, and no doubt is added for it.
        """
        loads = self.state.model.loads
        spreads = np.where(loads.known, (loads.cpu_spread, loads.bandwidth_spread), 0.0).tolist()
        return UsualLoad(loads.cpu, spreads[0]), UsualLoad(loads.bandwidth, spreads[1])

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict the execution time (s) of one run, with its interval at ``level``."""
        state = self.state.under(request.settings)
        seconds, spread = state.model.predict_one(
            request.problem_size, request.processors, request.available_cpu, request.available_bandwidth
        )
        factor = math.exp(min(state.calibration.reach(level) * spread, 50.0))
        if seconds * factor == math.inf:
            seconds = math.inf
        interval = Interval(seconds / factor, seconds * factor, level)
        notes = state.notes + self.notices + state.doubts + state.domain.warnings(request)
        return Prediction(seconds, interval, state.model.text, notes)

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        state = self.state
        return state.calibration.around(*state.tabulated.predict(*columns), level)

    def _expected(self, columns: Columns) -> Floats:
        return self.state.tabulated.expect(*columns)

    def expect_few(self, problem_size: float, points: Sequence[tuple[int, float, float]]) -> list[float]:
        """See :func:`metasched.predictors.abilities.expect_few`."""
        return self.state.tabulated.expect_few(problem_size, points)

    def power_terms(self, problem_size: float, processors: ArrayLike) -> tuple[PowerTerm, ...]:
        """Computation and communication, whose sum :meth:`expect_many` tells."""
        return self.state.tabulated.power_terms(problem_size, np.asarray(processors, dtype=np.float64))

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the expected times that are computation, shape (n,)."""
        terms = self.state.model.formula.terms(*broadcast(problem_size, processors, available_cpu, available_bandwidth))
        return terms.computation / terms.time

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """Both terms of the formula, and what the process makes of each."""
        model, columns = self.state.under(request.settings).model, columns_of(request)
        terms = model.formula.terms(*columns)
        bend = float(model.predict(*columns)[0][0] / terms.time[0])
        parts = zip(
            ("computation", "communication"), model.texts, (terms.computation, terms.communication), strict=True
        )
        return tuple(
            Term(name, f"{text}, {bend - 1.0:+.1%} by the runs near it", bend * float(seconds[0]))
            for name, text, seconds in parts
        )

    def learned(self) -> Learned:
        """The formula, and the combinations of Eq. (1) that come nearest to the runs by the exhaustive search."""
        state = self.state
        runs = measured(self._teaching(state.doubted))
        whole, *_ = state.model.loads.filled(runs)
        part = Part("", searched_list(whole) if len(runs) else None, {"formula": state.model.text})
        return Learned((part,), state.notes + self.notices + (assumed_effects(runs) if len(runs) else ()))
