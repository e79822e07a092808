"""An answer of Slurm that changes seldom, and so is not asked for each time."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

#: For how long Slurm's configuration is remembered (s): it changes rarely.
CONFIGURED_FOR = 600.0

_log = logging.getLogger(__name__)


class Remembered(Generic[Answer]):
    """A cached answer, which is renewed after some time.

    Parameters
    ----------
    ask : asks Slurm; RuntimeError when it does not answer.
    seconds : how long an answer holds (s).

    Examples
    --------
    >>> answers = iter([1, 2])
    >>> remembered = Remembered(lambda: next(answers), 60.0)
    >>> remembered.now(), remembered.now()
    (1, 1)
    """

    def __init__(self, ask: Callable[[], Answer], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._asked_at, self._known = -math.inf, list[Answer]()

    def now(self) -> Answer:
        """The answer.

        Raises
        ------
        RuntimeError : when it is not remembered, and Slurm does not answer.
        """
        if time.monotonic() - self._asked_at > self._seconds:
            self._known = [self._ask()]
            self._asked_at = time.monotonic()
        return self._known[0]

    def last(self, otherwise: Answer, what: str) -> Answer:
        """The answer, or while Slurm gives none the one before, tried again when that would have been due.

        Parameters
        ----------
        otherwise : the answer where none was ever given.
        what : is not known, for the log.
        """
        try:
            return self.now()
        except RuntimeError as error:
            _log.info("%s is unknown at the moment: %s", what, error)
            self._known = self._known or [otherwise]
            self._asked_at = time.monotonic()
            return self._known[0]
