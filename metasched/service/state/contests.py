"""Contests of what is assumed of an application and what was learned of it: by past predictions of the same runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.predictors.contract import Assumed, Predictor
from metasched.predictors.tournament import WINDOW, error_of
from metasched.records import Run
from metasched.service.state.fit_workers import Fit

Key = tuple[str, str]
#: Share of the runs that both are tried on where no predictions were made before.
TRIAL = 0.25


class Contests:
    """Errors of the last predictions, of what is assumed and of what was learned, by application and platform.

    Both predict each run before they learn it, as in a tournament (:mod:`metasched.predictors.tournament`).
    """

    def __init__(self) -> None:
        self._errors: dict[Key, tuple[tuple[float, float], ...]] = {}

    def note(self, key: Key, assumed: Predictor, known: Predictor, run: Run) -> None:
        """Remember how wrong both are on a run that neither has learned."""
        self._add(key, assumed, known, [run])

    def rehearse(self, key: Key, assumed: Assumed, runs: Sequence[Run]) -> None:
        """Try both on the last quarter of runs that were learned before, by those before; once for each model.

        Raises
        ------
        InputError : one of them cannot learn from the others.
        """
        held_back = int(len(runs) * TRIAL)
        if key in self._errors or not held_back:
            return
        before = runs[:-held_back]
        self._errors[key] = ()
        self._add(key, assumed.corrected(before), Fit(*key, before).fitted(), runs[-held_back:])

    def forget(self, key: Key) -> None:
        """Forget the predictions of an application on a platform."""
        self._errors.pop(key, None)

    def assumed_better(self, key: Key) -> bool:
        """Whether what is assumed has the smaller mean error."""
        errors = self._errors.get(key)
        if not errors:
            return False
        assumed, known = np.mean(errors, axis=0)
        return bool(assumed < known)

    def _add(self, key: Key, assumed: Predictor, known: Predictor, runs: Sequence[Run]) -> None:
        pairs = ((error_of(assumed, run), error_of(known, run)) for run in runs)
        both = [(first, second) for first, second in pairs if first is not None and second is not None]
        # Replaced as a whole: requests read it meanwhile.
        self._errors[key] = (*self._errors.get(key, ()), *both)[-WINDOW:]
