"""Unfolds node names as ClusterShell folds them, from text that may be hostile."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from metasched.records import InputError

#: A folded name can stand for very many nodes: beyond this many it is a typing error or an attack.
MOST_NODES = 2_000_000
#: Digits of a number inside brackets.
LONGEST_NUMBER = 18
#: Characters of a folded name that an error message repeats.
LONGEST_SHOWN = 200
#: Nodes of the sets whose folded names are kept: a busy daemon advises the same few sets repeatedly.
LONGEST_KEPT = 64
#: The commonest forms, a plain name and one range, which need no set of nodes to be unfolded.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_RANGE = re.compile(r"([A-Za-z0-9_.-]*[A-Za-z_.-])\[(\d{1,9})(?:-(\d{1,9}))?\]([A-Za-z0-9_.-]*)", re.ASCII)


def unfold(names: str, *, where: str, most: int = MOST_NODES) -> list[str]:
    """Node names that a folded name stands for: in the order of its commas, ascending inside brackets.

    Parameters
    ----------
    names : the folded name.
    where : put in front of error messages.
    most : nodes that it may stand for.

    Examples
    --------
    >>> unfold("n[1-3],m1", where="names")
    ['n1', 'n2', 'n3', 'm1']
    """
    parts = _parts(names)
    if sum(_how_many(part) for part in parts) > most:
        raise InputError(f"{_short(names)!r} is more than {most} nodes", where=where)
    try:
        unfolded = [name for part in parts for name in _unfolded(part)]
    except NodeSetException as error:
        raise InputError(f"{_short(names)!r} is not a set of node names: {_short(str(error))}", where=where) from None
    if not unfolded:
        raise InputError(f"{_short(names)!r} names no node", where=where)
    return unfolded


def _short(text: str) -> str:
    """A text as a message shows it, cut off where it is long."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def names_one(name: str) -> bool:
    """Whether a text is the name of one node, and no folded name.

    >>> names_one("n1"), names_one("n[1-3]"), names_one("n1,")
    (True, False, False)
    """
    try:
        return unfold(name, where="node", most=1) == [name]
    except InputError:
        return False


def fold(names: Sequence[str]) -> str:
    """The short form of some node names.

    >>> fold(["n2", "n1", "n3"])
    'n[1-3]'
    """
    return (_folded if len(names) <= LONGEST_KEPT else _folded.__wrapped__)(tuple(names))


@lru_cache(maxsize=4096)
def _folded(names: tuple[str, ...]) -> str:
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


def first_twice(names: Sequence[str]) -> str | None:
    """The first name that is given twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _parts(names: str) -> list[str]:
    """The texts between commas that are in no bracket, found in one pass whatever the text is."""
    parts, group, inside = [], list[str](), False
    for piece in names.split(","):
        group.append(piece)
        if "[" in piece or "]" in piece:
            inside = piece.rfind("[") > piece.rfind("]")
        if not inside:
            parts.append(",".join(group))
            group = []
    return [*parts, ",".join(group)] if group else parts


def _unfolded(part: str) -> Iterable[str]:
    if _PLAIN.fullmatch(part):
        return [part]
    if found := _RANGE.fullmatch(part):
        before, low, high, after = found[1], found[2], found[3] or found[2], found[4]
        padded = any(len(bound) > 1 and bound.startswith("0") for bound in (low, high))
        if int(low) <= int(high) and (not padded or len(low) == len(high)):
            width = len(low) if padded else 1
            return [f"{before}{number:0{width}}{after}" for number in range(int(low), int(high) + 1)]
    # No group resolver: a group's name would run whatever command the site configured for it.
    return map(str, NodeSet(part, resolver=RESOLVER_NOGROUP))


def _how_many(part: str) -> int:
    """An upper bound of the nodes that a folded name stands for, found without unfolding it."""
    brackets = re.findall(r"\[([^\[\]]*)\]", part)
    if any(re.search(rf"\d{{{LONGEST_NUMBER + 1}}}", bracket) for bracket in brackets):
        return sys.maxsize
    return math.prod(
        sum(
            abs(int(last or first) - int(first)) + 1
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", re.sub(r"/\d+", "", bracket))
        )
        for bracket in brackets
    )
