"""The state of the robust method at one time, and its predictions from this state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.memory.calibration import Calibration
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState
from metasched.predictors.robust.drift import Drift, Surprise
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.tabulated import Tabulated
from metasched.records import DEFAULT_SETTINGS, Settings

#: Largest number of settings whose predictors are cached.
MOST_VIEWS = 64


@dataclass(frozen=True)
class RobustState:
    """The state of the robust method at one time.

    Parameters
    ----------
    model : formula and process.
    calibration : scores of past predictions.
    domain : the learned ranges.
    notes : assumptions that a user of the predictions should know.
    since_search : runs learned since the last search for scales.
    doubted : distrusted users, whose runs are only used to predict for themselves.
    surprises : errors of the last predictions, oldest first.
    drift : the last one.
    asked : the settings for which it predicts.
    """

    model: Model
    calibration: Calibration
    domain: Domain
    notes: tuple[str, ...]
    since_search: int = 0
    asked: Settings = DEFAULT_SETTINGS
    doubted: frozenset[str] = frozenset()
    surprises: tuple[Surprise, ...] = ()
    drift: Drift | None = None

    @cached_property
    def own(self) -> dict[str, LearnedState[RobustState]]:
        """Predictors of each distrusted user's runs alone, as far as they were requested."""
        return {}

    @cached_property
    def tabulated(self) -> Tabulated:
        """Predictions for many requests at once, from tables that are filled on demand."""
        return Tabulated(self.model)

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Log times and their spreads, for arrays of one shape (n,)."""
        time, spread = self.tabulated.predict(n, p, cpu, bw)
        return np.log(np.maximum(time, np.finfo(np.float64).tiny)), spread

    def under(self, settings: Settings) -> RobustState:
        """The same state, predicting for other settings; InputError if it does not know these."""
        if settings is DEFAULT_SETTINGS or settings == DEFAULT_SETTINGS:
            return self
        view = self._views.get(settings)
        if view is None:
            view = replace(self, model=self.model.under(settings), asked=settings)
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            self._views[settings] = view
        return view

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Warnings about the settings for which it predicts."""
        return self.model.formula.effects.columns.doubts(self.asked)

    @cached_property
    def _views(self) -> dict[Settings, RobustState]:
        return {}
