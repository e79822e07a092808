"""Unfolds node names as ClusterShell folds them, from text that may be hostile."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from metasched.records import InputError

#: A folded name can stand for very many nodes: beyond so many it is a slip of the pen or an attack.
MOST_NODES = 2_000_000


def unfold(names: str, *, where: str) -> list[str]:
    """Node names that a folded name stands for: in the order of its commas, ascending inside brackets.

    Examples
    --------
    >>> unfold("n[1-3],m1", where="names")
    ['n1', 'n2', 'n3', 'm1']
    """
    parts = re.split(r",(?![^\[]*\])", names)
    if sum(_how_many(part) for part in parts) > MOST_NODES:
        raise InputError(f"{names!r} is more than {MOST_NODES} nodes", where=where)
    try:
        # No group resolver: a group's name would run whatever command the site configured for it.
        unfolded = [str(name) for part in parts for name in NodeSet(part, resolver=RESOLVER_NOGROUP)]
    except NodeSetException as error:
        raise InputError(f"{names!r} is not a set of node names: {error}", where=where) from None
    if not unfolded:
        raise InputError(f"{names!r} names no node", where=where)
    return unfolded


def fold(names: Sequence[str]) -> str:
    """The short form of some node names.

    Examples
    --------
    >>> fold(["n2", "n1", "n3"])
    'n[1-3]'
    """
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


def first_twice(names: Sequence[str]) -> str | None:
    """The first name that stands there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _how_many(part: str) -> int:
    """An upper bound of the nodes that a folded name stands for, found without unfolding it."""
    return math.prod(
        sum(
            abs(int(last or first) - int(first)) + 1
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", re.sub(r"/\d+", "", bracket))
        )
        for bracket in re.findall(r"\[([^\]]*)\]", part)
    )
