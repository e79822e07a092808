"""The page of the simulator: the hardware database, a system and an application to edit, and what came of them.

After the three editors of MERPSYS. Nothing is simulated in the daemon itself, see ``metasched.service.simulations``.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import parse_qs

from metasched.service.simulations import Asked, Kept, Wrong
from metasched.store.files.hardware import names, read_entry

#: What the editors hold at first.
SYSTEM = """\
processes = { master = 1, slave = 100 }

[[network]]
name = "lan"
entry = "ethernet-1g"

[[node]]
name = "node"
count = 101
network = "lan"
device = "i7-2600k"
slots = { master = 1, slave = 1 }
lambda = 1e-9
"""
APPLICATION = """\
rounds = 10
operations = 1e12

def master():
    for i in range(rounds):
        bcast(1e6, master, slave)
        gather(1e8, master, slave)

def slave():
    for i in range(rounds):
        bcast(1e6, master, slave)
        compute(operations / len(slave))
        gather(1e8, master, slave)
"""


def read_form(body: bytes) -> Asked:
    """What a form asks for, with the ends of lines as files have them."""
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)

    def text(name: str) -> str:
        return fields.get(name, [""])[0].replace("\r\n", "\n")

    return Asked(
        text("system"), text("application"), tuple(text("processes").split()), tuple(text("variables").split())
    )


@cache
def entries() -> tuple[tuple[str, str, str], ...]:
    """Name, kind and title of each entry of the hardware database."""
    found = (read_entry(name) for name in names())
    return tuple((each.name, str(each.kind), each.title) for each in found)


def content(asked: Asked | None, came: Kept | Wrong | None, past: list[Kept]) -> dict[str, Any]:
    """All that the page shows.

    Parameters
    ----------
    asked : what was asked for; what the editors hold at first where None.
    came : what came of it, or what is wrong with it.
    past : simulations that are kept, newest first.
    """
    shown = asked or Asked(SYSTEM, APPLICATION)
    wrong = came if isinstance(came, Wrong) else None
    return {
        "asked": shown,
        "entries": entries(),
        "wrong": wrong,
        "marked": _marked(shown, wrong),
        "kept": came if isinstance(came, Kept) else None,
        "past": past,
    }


def _marked(asked: Asked, wrong: Wrong | None) -> list[tuple[int, str, bool]]:
    """The lines around the one that is wrong: number, text, and whether it is that one."""
    if wrong is None or not wrong.line:
        return []
    lines = (asked.system if wrong.text == "system" else asked.application).removesuffix("\n").split("\n")
    first, last = max(wrong.line - 3, 1), min(wrong.line + 2, len(lines))
    return [(number, lines[number - 1], number == wrong.line) for number in range(first, last + 1)]
