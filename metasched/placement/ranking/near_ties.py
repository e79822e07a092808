"""Which choices may after all complete a job first: near ties, between which a scheduler had better choose itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Choice = TypeVar("Choice", bound=Hashable)


class Reach(NamedTuple):
    """When a job may be completed (s): as expected, at the soonest and at the latest."""

    expected: float
    soonest: float
    latest: float

    @classmethod
    def of(cls, possibilities: Sequence[float]) -> Reach:
        """That of several times that are as likely as each other."""
        return cls(sum(possibilities) / len(possibilities), min(possibilities), max(possibilities))


def near_ties(completions: Mapping[Choice, Reach]) -> list[Choice]:
    """The choice that is expected to complete the job first, then those that reach below its latest completion.

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
