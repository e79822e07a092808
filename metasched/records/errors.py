"""Input that a user can mend, and the checks of numbers that raise it."""

from __future__ import annotations

import sys


class InputError(ValueError):
    """Input that a user can mend: the message is one line saying what, where, and what was expected.

    Parameters
    ----------
    message : what was expected, for example ``"execution_time is -1.0, expected a number above 0"``.
    where : file, row, column or option it was found in; put in front of the message.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)


def check_above_zero(name: str, value: float) -> None:
    """Refuse, by InputError, what is not a finite number above 0."""
    if not 0.0 < value <= sys.float_info.max:
        raise InputError(f"{name} is {_shown(value)}, expected a finite number above 0")


def check_seconds(name: str, value: float) -> None:
    """Refuse, by InputError, what is not a finite number of at least 0."""
    if not 0.0 <= value <= sys.float_info.max:
        raise InputError(f"{name} is {_shown(value)}, expected a finite number of seconds of at least 0")


def check_fraction(name: str, value: float) -> None:
    """Refuse, by InputError, what is not above 0 and at most 1."""
    if not 0.0 < value <= 1.0:
        raise InputError(f"{name} is {_shown(value)}, expected a fraction in (0, 1]")


def check_level(name: str, value: float) -> None:
    """Refuse, by InputError, what is no level of an interval: a number between 0 and 1, both excluded."""
    if not 0.0 < value < 1.0:
        raise InputError(f"{name} is {_shown(value).removesuffix('.0')}, expected a number between 0 and 1")


def check_count(name: str, value: float, least: int = 1, most: int | None = None) -> None:
    """Refuse, by InputError, what is not a whole number between two ends; not a number and infinity included.

    Parameters
    ----------
    name : of the value, for the message.
    value : to be checked.
    least, most : ends, both allowed; the largest number of double precision where there is no upper end.

    Examples
    --------
    >>> check_count("servers", 2.5)
    Traceback (most recent call last):
    metasched.records.errors.InputError: servers is 2.5, expected a whole number of at least 1
    """
    largest = sys.float_info.max if most is None else most
    if isinstance(value, bool) or value != value // 1 or not least <= value <= largest:
        ends = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} is {_shown(value)}, expected a whole number {ends}")


def _shown(value: float) -> str:
    """A number as messages name it: a whole number of hundreds of digits by what it is."""
    return str(value) if abs(value) <= sys.float_info.max or not isinstance(value, int) else "too large a number"
