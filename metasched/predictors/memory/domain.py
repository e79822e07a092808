"""The ranges that a model has learned, and the warning for a request far outside of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from metasched.plain_numbers import number_of
from metasched.records import Request, Run

#: Factor outside the learned range from which on a request is called far.
FAR = 2.0


@dataclass(frozen=True, slots=True)
class Domain:
    """The smallest and largest problem size and processor count learned.

    >>> Domain.of([Run("cg", "c8", n, 4, 1.0, 90.0, 1.0) for n in (100, 200)]).warnings(Request(900, 4, 1.0, 90.0))
    ('problem_size 900 is 4.5 times the largest learned (200)',)
    """

    smallest_size: float = float("inf")
    largest_size: float = 0.0
    fewest_processors: int = 0
    most_processors: int = 0

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Domain:
        """The ranges of problem sizes and processors that runs cover."""
        domain = cls()
        for run in runs:
            domain = domain.learned(run)
        return domain

    def learned(self, run: Run) -> Domain:
        """The domain with one more run in it."""
        return Domain(
            min(self.smallest_size, run.problem_size),
            max(self.largest_size, run.problem_size),
            min(self.fewest_processors or run.processors, run.processors),
            max(self.most_processors, run.processors),
        )

    def warnings(self, request: Request) -> tuple[str, ...]:
        """Warnings about a request; usually empty."""
        found = []
        if request.problem_size > FAR * self.largest_size:
            factor = request.problem_size / self.largest_size
            largest = f"the largest learned ({self.largest_size:g})"
            found.append(f"problem_size {request.problem_size:g} is {factor:.3g} times {largest}")
        if request.problem_size * FAR < self.smallest_size:
            found.append(
                f"problem_size {request.problem_size:g} is far below the smallest learned ({self.smallest_size:g})"
            )
        if request.processors > FAR * self.most_processors:
            found.append(
                f"{request.processors} processors are more than twice the most learned ({self.most_processors})"
            )
        if request.processors < self.fewest_processors:
            asked = f"{number_of(request.processors, 'processor')} {'is' if request.processors == 1 else 'are'}"
            found.append(f"{asked} fewer than the fewest learned ({self.fewest_processors})")
        return tuple(found)
