"""Calls Grid Engine's commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from metasched.schedulers.commands import TIMEOUT, run

#: Control characters, which no XML may have: users choose names freely.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Commands:
    """Grid Engine's commands for one cell: ``root`` and ``cell`` as SGE_ROOT and SGE_CELL, empty for the usual ones.

    ``timeout`` is how long a command may take (s).
    """

    root: str = ""
    cell: str = ""
    timeout: float = TIMEOUT

    @property
    def environment(self) -> dict[str, str]:
        """What names the cell to its commands."""
        variables = {"SGE_ROOT": self.root, "SGE_CELL": self.cell}
        return {name: value for name, value in variables.items() if value}

    def run(self, *words: str) -> str:
        """Run a command and return what it prints; bytes that are not UTF-8 become surrogates.

        Raises
        ------
        RuntimeError
            When it is not there, fails, or takes too long.
        """
        return run(*words, environment={**self.environment, "SGE_LONG_QNAMES": "255"}, timeout=self.timeout)

    def xml(self, *words: str) -> ElementTree.Element:
        """Run a command that prints XML.

        Raises
        ------
        RuntimeError
            When it fails, or prints something else.
        """
        try:
            return parsed(self.run(*words))
        except ValueError as error:
            raise RuntimeError(f"{' '.join(words)} does not print XML: {error}") from None


def parsed(text: str) -> ElementTree.Element:
    """The document that qstat and qhost print, who spell ``<`` in names as ``%lt;``.

    Raises
    ------
    ValueError
        When it is none.

    Examples
    --------
    >>> parsed("<job><name>a%lt;b&gt;</name></job>").findtext("name")
    'a<b>'
    """
    if "<!DOCTYPE" in text:
        raise ValueError("it declares types of its own")
    try:
        return ElementTree.fromstring(_CONTROL.sub("?", text).replace("%lt;", "&lt;"))  # noqa: S314
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
