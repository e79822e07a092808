"""The learned state of a predictor: immutable and replaced as a whole, so that readers never see a part of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from metasched.records import InputError, Run

State = TypeVar("State")


class LearnedState(Generic[State]):
    """A predictor with a ``state`` once it was fitted.

    >>> class Mean(LearnedState[float]):
    ...     def fit(self, times):
    ...         self.state = sum(times) / len(times)
    >>> mean = Mean()
    >>> mean.fit([1.0, 3.0])
    >>> mean.state
    2.0
    """

    #: The error message for a request before the first fit.
    unfitted = "the model has learned nothing yet, expected it to be fitted to at least one run"
    _state: State | None = None

    @property
    def state(self) -> State:
        """The learned state; InputError before the first fit."""
        if self._state is None:
            raise InputError(self.unfitted)
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state


def at_least_one(runs: Iterable[Run], refusal: str = "no runs, expected at least one to learn from") -> tuple[Run, ...]:
    """The runs to learn from; InputError with the line ``refusal`` if there are none."""
    found = tuple(runs)
    if not found:
        raise InputError(refusal)
    return found
