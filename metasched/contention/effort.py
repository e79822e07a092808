"""How much may be computed for an answer, counted in numbers: seconds would differ from one machine to the next."""

from __future__ import annotations


class EffortError(RuntimeError):
    """The effort allowed does not suffice."""


class Effort:
    """What is left to spend.

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
        EffortError
            When less effort is left.
        """
        self.left -= numbers
        if self.left < 0:
            raise EffortError(f"more than {self.limit:.3g} numbers would have to be computed")
