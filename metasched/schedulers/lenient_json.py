"""Reads the JSON of schedulers' commands, also where a user's job makes it invalid: :func:`read`.

Users choose the names, the variables and, in HTCondor, the attributes of their jobs. Some versions of OpenPBS print
whatever strtod(3) reads as a bare number, such as the variable ``RANK=007``, or a backslash before any character; later
ones print a variable that is JSON itself as its value, however deep, as HTCondor does with lists. What one user chose
must not hide the jobs of all.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Values within each other that are read; what schedulers print of their own has fewer.
DEEPEST = 16
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s",:\[\]{}]+|[,:\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9A-Fa-f]{4})|(.))', re.DOTALL)
#: Escapes, among them pairs of surrogates, which are one character, and surrogates alone, which are none.
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES = re.compile(rf"{_PAIR}|(?P<alone>\\u[dD][89a-fA-F][0-9a-fA-F]{{2}})|\\.", re.DOTALL)
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)


def read(text: str, *, texts: bool = False) -> Any:
    r"""The document in a text that is JSON, or meant to be.

    Parameters
    ----------
    text : what a command printed; its strings may contain control characters.
    texts : whether numbers are read as texts, since a name that a user typed may be printed as one.

    Raises
    ------
    ValueError : when it is none.

    Examples
    --------
    >>> read('{"Job_Name":1e5,"Variable_List":{"RANK":007}}', texts=True)
    {'Job_Name': '1e5', 'Variable_List': {'RANK': '007'}}
    >>> read('{"Job_Name":"a\\ud800b"}') == {"Job_Name": "a\ufffdb"}
    True
    """
    numbers: dict[str, Any] = {"parse_int": str, "parse_float": str, "parse_constant": str} if texts else {}
    try:
        return json.loads(_whole(text), strict=False, **numbers)
    except (ValueError, RecursionError):
        return json.loads(_whole(repaired(text)), strict=False, **numbers)


def _whole(text: str) -> str:
    """The text with the sign for an unknown character in place of each half of one, which nobody can store."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPES.sub(lambda found: r"\ufffd" if found["alone"] else found[0], text)


def repaired(text: str) -> str:
    r"""The text as JSON: bare words are strings, a backslash before any character is none, depths are null.

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
