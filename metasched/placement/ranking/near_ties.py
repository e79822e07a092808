"""Near ties: choices that may complete a job first, too, so that the scheduler should choose between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Choice = TypeVar("Choice", bound=Hashable)


class Reach(NamedTuple):
    """The completion of a job (s): expected, earliest and latest."""

    expected: float
    soonest: float
    latest: float

    @classmethod
    def of(cls, possibilities: Sequence[float]) -> Reach:
        """The completion as the mean and the range of several equally likely times."""
        return cls(sum(possibilities) / len(possibilities), min(possibilities), max(possibilities))


def near_ties(completions: Mapping[Choice, Reach]) -> list[Choice]:
    """The choice with the earliest expected completion, then those that may be earlier than its latest completion.

    Parameters
    ----------
    completions : of each choice; among equals the first one is preferred.

    Examples
    --------
    >>> near_ties({"a": Reach(200, 100, 300), "b": Reach(125, 50, 200), "c": Reach(300, 200, 400)})
    ['b', 'a']
    """
    in_order = sorted(completions, key=lambda choice: completions[choice].expected)
    latest = completions[in_order[0]].latest
    return [choice for choice in in_order if choice == in_order[0] or completions[choice].soonest < latest]
