"""A budget of computation, counted in numbers computed, so that it does not depend on the machine's speed."""

from __future__ import annotations


class EffortError(RuntimeError):
    """Raised when a computation exceeds its budget."""


class Effort:
    """The remaining budget of a computation.

    Parameters
    ----------
    limit : numbers that may be computed; some hundred million of them take a second on one core.

    Examples
    --------
    >>> effort = Effort(10)
    >>> effort.spend(8)
    >>> effort.spend(8)
    Traceback (most recent call last):
    metasched.contention.effort.EffortError: more than 10 numbers would have to be computed
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.left = limit

    def spend(self, numbers: float) -> None:
        """Spend the effort of computing ``numbers`` numbers.

        Raises
        ------
        EffortError : when less effort is left.
        """
        self.left -= numbers
        if self.left < 0:
            raise EffortError(f"more than {self.limit:.3g} numbers would have to be computed")
