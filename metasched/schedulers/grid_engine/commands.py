"""Calls Grid Engine's commands."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from metasched.schedulers.commands import TIMEOUT, Commands

#: Control characters, which no XML may have: users choose names freely.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class GridEngineCommands(Commands):
    """qstat, qhost, qconf and the others of one cell, whose XML is read though names in it are misspelt."""

    __slots__ = ()

    @classmethod
    def of(cls, root: str = "", cell: str = "", timeout: float = TIMEOUT) -> GridEngineCommands:
        """Those of a cell.

        Parameters
        ----------
        root, cell : SGE_ROOT and SGE_CELL, empty for those of the environment, else the usual ones.
        timeout : how long a command may take (s).
        """
        return cls({"SGE_ROOT": root, "SGE_CELL": cell}, timeout, {"SGE_LONG_QNAMES": "255"})

    def xml(self, *words: str) -> ElementTree.Element:
        """Run a command that prints XML.

        Raises
        ------
        RuntimeError : when it fails, or prints something else.
        """
        try:
            return parsed(self.run(*words))
        except ValueError as error:
            raise RuntimeError(f"{' '.join(words)} does not print XML: {error}") from None


def parsed(text: str) -> ElementTree.Element:
    """The document that qstat and qhost print, who spell ``<`` in names as ``%lt;``.

    Raises
    ------
    ValueError : when it is none.

    Examples
    --------
    >>> parsed("<job><name>a%lt;b&gt;</name></job>").findtext("name")
    'a<b>'
    """
    if "<!DOCTYPE" in text:
        raise ValueError("it declares its own types")
    try:
        return ElementTree.fromstring(_CONTROL.sub("?", text).replace("%lt;", "&lt;"))  # noqa: S314
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
