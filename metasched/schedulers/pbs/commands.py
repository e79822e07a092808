"""Calls OpenPBS's commands, and reads their JSON also where a user's job makes it invalid.

Users choose the names and the variables of their jobs. Some versions print whatever strtod(3) reads as a bare number,
such as the variable ``RANK=007``, or a backslash before any character; later ones print a variable that is JSON itself
as its value, however deep. What one user chose must not hide the jobs of all.
"""

from __future__ import annotations

import json
import re
from typing import Any

from metasched.schedulers.commands import TIMEOUT, Commands

#: Values within each other that are read; what PBS itself prints has four.
DEEPEST = 16
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s",:\[\]{}]+|[,:\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9A-Fa-f]{4})|(.))', re.DOTALL)
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)


class PbsCommands(Commands):
    """qstat, pbsnodes and the others of one server; of their numbers the text is kept, since a name may be one."""

    __slots__ = ()

    @classmethod
    def of(cls, server: str = "", timeout: float = TIMEOUT) -> PbsCommands:
        """Those of a server.

        Parameters
        ----------
        server : its host as PBS_SERVER, empty for that of the usual pbs.conf.
        timeout : how long a command may take (s).
        """
        # Times in English, whatever the daemon's language is; without jobs some versions print nothing.
        return cls({"PBS_SERVER": server}, timeout, {"LC_ALL": "C"}, nothing={})

    def parsed(self, text: str) -> Any:
        """The document that a command printed; see :meth:`Commands.parsed`."""
        try:
            return _read(text)
        except (ValueError, RecursionError):
            return _read(repaired(text))


def _read(text: str) -> Any:
    return json.loads(text, strict=False, parse_int=str, parse_float=str, parse_constant=str)


def repaired(text: str) -> str:
    r"""The text as JSON: bare words are strings, a backslash before any character is none, depths are null.

    Examples
    --------
    >>> repaired('{"RANK":007,"LIST":"a\\,b","NUMBER":-1.5e3,"T":"\\t"}')
    '{"RANK":"007","LIST":"a,b","NUMBER":-1.5e3,"T":"\\t"}'
    """
    depth = 0

    def sound(found: re.Match[str]) -> str:
        nonlocal depth
        part = found[0]
        if part in ("[", "{"):
            depth += 1
            return part if depth <= DEEPEST else "null" if depth == DEEPEST + 1 else ""
        if part in ("]", "}"):
            depth -= 1
            return part if depth < DEEPEST else ""
        if depth > DEEPEST:
            return ""
        if part[0] == '"':
            return _ESCAPE.sub(lambda each: each[0] if each[1] else each[2], part)
        return part if part in ",:" or _WORD.fullmatch(part) else json.dumps(part)

    return _TOKEN.sub(sound, text)
