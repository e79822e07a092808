"""Relations between a process and its partner that may lead past the ends of a line, where there is no partner.

Programs guard such messages (``if (rank + d < n)``), so that each process makes those calls whose partner exists: the
null communications of the paper's border processes. A relation tells partners by a label that is the same for all
processes at one place of the program; label 0 is the process itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from metasched.arrays import Flags, Ints

#: No partner.
NOBODY = -1


def _labels_of_branches(own: Ints, peer: Ints, of: int) -> tuple[Ints, Flags]:
    child = peer - of * own
    found = np.where(peer == own, 0, np.where(peer > own, child, -1))
    return found, np.where(peer > own, (child >= 1) & (child <= of), (peer == own) | (peer == (own - 1) // of))


def _at_branches(own: Ints, label: Ints, of: int) -> Ints:
    return np.where(label == 0, own, np.where(label < 0, (own - 1) // of, of * own + label))


def _all(found: Ints) -> tuple[Ints, Flags]:
    return found, np.ones(found.shape, dtype=np.bool_)


#: Most children of a process in a tree.
MOST_CHILDREN = 16
#: Labels by own place, partner's place and a number, with whether it has one; by the kind of relation.
LABELS: Mapping[str, Callable[[Ints, Ints, int], tuple[Ints, Flags]]] = {
    "step": lambda own, peer, of: _all(peer - own),
    "flip": lambda own, peer, of: _all(own ^ peer),
    "branch": _labels_of_branches,
}
#: The place of a partner by own place, label and number: ``step`` so many further along, ``flip`` with these bits
#: exchanged, ``branch`` the parent (below 0) or that child in a tree in which each process has ``of`` of them.
PLACES: Mapping[str, Callable[[Ints, Ints, int], Ints]] = {
    "step": lambda own, label, of: own + label,
    "flip": lambda own, label, of: own ^ label,
    "branch": _at_branches,
}

OPEN_KINDS = frozenset(PLACES)
#: As ``step``, for calls that are also made where there is no partner, with ``MPI_PROC_NULL``.
NULL_STEP = "null step"


def open_label(kind: str, own: Ints, peer: Ints, of: int) -> tuple[Ints, Flags]:
    """The labels of partners, and which partners have one.

    Examples
    --------
    >>> open_label("branch", np.array([0, 3, 3]), np.array([2, 1, 5]), 2)
    (array([ 2, -1, -1]), array([ True,  True, False]))
    """
    return LABELS[kind](own, peer, of)


def open_place(kind: str, own: Ints, label: Ints, of: int, side: int) -> Ints:
    """The places of partners along a line of ``side`` processes; :data:`NOBODY` beyond its ends.

    Examples
    --------
    >>> open_place("step", np.arange(4), np.array([2]), 0, 4).tolist()
    [2, 3, -1, -1]
    >>> open_place("branch", np.array([0, 1, 2]), np.array([2]), 2, 6).tolist()
    [2, 4, -1]
    """
    own, label = np.broadcast_arrays(own, label)
    place = PLACES[kind](own, label, of)
    return np.where((place >= 0) & (place < side), place, NOBODY)
