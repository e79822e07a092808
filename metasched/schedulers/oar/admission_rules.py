"""The admission rules of a server of OAR that call metasched, as ``oaradmissionrules`` shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from metasched.schedulers.commands import Commands

#: How a rule of metasched begins to do its work.
_CALLS = re.compile(r"require '(/[^'\n]+)/metasched_oar\.pl'")
_HEAD = re.compile(r"(?m)^--- \((DISABLED/)?-?\d+\) RULE #(\d+)$")


@dataclass(frozen=True, slots=True)
class Rule:
    """An admission rule of metasched: its number, text, and whether OAR evaluates it."""

    number: str
    text: str
    enabled: bool

    @property
    def folder(self) -> Path:
        """Where the files are that it calls."""
        found = _CALLS.search(self.text)
        return Path(found[1] if found else "/etc/oar/metasched")


def rules(commands: Commands) -> list[Rule]:
    """The rules of the server on this host that call metasched.

    Raises
    ------
    RuntimeError : when OAR does not answer.
    """
    printed = commands.run("oaradmissionrules", "--show-all", "--full")
    heads = [*_HEAD.finditer(printed)]
    ends = [*(each.start() for each in heads[1:]), len(printed)]
    calling = [head for head, end in zip(heads, ends, strict=True) if _CALLS.search(printed[head.end() : end])]
    return [
        Rule(head[2], commands.run("oaradmissionrules", "--show", head[2], "--no-header"), head[1] is None)
        for head in calling
    ]
