"""Calls a scheduler's commands, and reads the documents that they print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from metasched.schedulers import lenient_json
from monitors.bounded_commands import run

Found = TypeVar("Found")

#: Time limit of a command (s).
TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of one cluster's scheduler.

    Parameters
    ----------
    environment : variables that name the cluster to its commands; an empty one is left to our own environment.
    timeout : how long a command may take (s).
    spelling : further variables that say how they print.
    nothing : the document that they mean where they print none at all; None where they always print one.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    spelling: Mapping[str, str] = field(default_factory=dict)
    nothing: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", {name: value for name, value in self.environment.items() if value})

    def run(self, *words: str) -> str:
        """Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

        Raises
        ------
        RuntimeError : when it is not there, fails, or takes too long.
        """
        return run(*words, environment={**self.environment, **self.spelling}, timeout=self.timeout)

    def json(self, *words: str) -> Any:
        """Run a command that prints JSON.

        Raises
        ------
        RuntimeError : when it fails, or prints something else.
        """
        text = self.run(*words)
        if self.nothing is not None and not text.strip():
            return self.nothing
        try:
            return self.parsed(text)
        except ValueError as error:
            raise RuntimeError(f"{' '.join(words)} does not print JSON: {error}") from None

    def parsed(self, text: str) -> Any:
        """The document that a command printed; ValueError where it is none."""
        return lenient_json.read(text)

    def read(self, parse: Callable[[Any], Found], *words: str) -> Found:
        """Run a command that prints JSON, and parse the output.

        Parameters
        ----------
        parse : makes of the document what is asked for; whatever it stumbles on, the command printed something else.
        words : the command.

        Raises
        ------
        RuntimeError : when it fails, or prints something else.
        """
        document = self.json(*words)
        try:
            return parse(document)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            raise RuntimeError(f"{' '.join(words)} prints unexpected output: {error}") from None


def count(value: Any) -> int:
    """A number of things, as a command prints it.

    Raises
    ------
    ValueError : when it is none that can be.

    Examples
    --------
    >>> count(4), count("12")
    (4, 12)
    """
    if not isinstance(value, bool) and isinstance(value, int | str) and str(value).isdecimal() and len(str(value)) < 10:
        return int(value)
    raise ValueError(f"{str(value)[:40]!r} is not a whole number")


def seconds(value: Any) -> float | None:
    """A time or a duration (s) in a document; None if it is missing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return None
    return float(value)
