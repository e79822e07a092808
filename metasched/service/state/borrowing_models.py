"""Models that borrow the runs of their application on other platforms."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from metasched.predictors.contract import Predictor, Saved
from metasched.predictors.porting.platforms import borrower, lent_by
from metasched.records import Run
from metasched.service.state.model_cache import Key, ModelCache
from metasched.store.errors import StoreError

_log = logging.getLogger(__name__)

#: Models of platforms never used that are kept ready at most.
MOST_NEVER_USED = 64


class BorrowingModels:
    """What models of an application lend each other, and models for platforms where it never ran."""

    def __init__(self, models: ModelCache) -> None:
        self._models = models
        self._never_used: dict[Key, Predictor] = {}

    def predictor(self, key: Key) -> Predictor | None:
        """What predicts for an application on a platform where it never ran; None where the others know too little.

        Raises
        ------
        StoreError : a saved model cannot be read.
        """
        return self._never_used.get(key) or self._made(key)

    def lent(self, key: Key) -> tuple[Run, ...]:
        """The runs that an application can borrow for a platform.

        Raises
        ------
        StoreError : a saved model cannot be read.
        """
        application, platform = key
        return lent_by(self._of(application), platform)

    def renew(self, application: str) -> None:
        """Have what borrows for platforms never used know what was learned on the others."""
        for key in [key for key in dict(self._never_used) if key[0] == application]:
            try:
                borrows = key not in self._models and self._made(key) is not None
            except StoreError as error:
                _log.warning("what %s on %s borrows is read again when it is asked for: %s", *key, error)
                borrows = False
            if not borrows:
                self._never_used.pop(key, None)

    def _made(self, key: Key) -> Predictor | None:
        found = borrower(*key, self._of(key[0]))
        if found is None:
            return None
        if len(self._never_used) >= MOST_NEVER_USED:
            self._never_used.clear()
        self._never_used[key] = found.fit(())
        return found

    def _of(self, application: str) -> Mapping[str, Saved]:
        """The models of an application by platform."""
        found = {each: self._models.get((application, each)) for each in self._models.platforms(application)}
        return {platform: known for platform, known in found.items() if known is not None}
