"""Local equations: the pattern of one communication of a phase in one run (section 3.2.1).

EC1 describes an exchange by the bits of the rank that it turns over, EC2 a static pattern by the distances from source
to destination and how often their list repeats. A process that does not take part has a null communication, written X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: A destination, or none: a null communication.
Peer = int | None


@dataclass(frozen=True, slots=True)
class LocalEquation:
    """EC1 or EC2 of one communication.

    Parameters
    ----------
    kind : ``EC1`` or ``EC2``.
    pattern : of EC1, ``exchange`` (all turn over the same bits) or ``permutation`` (each its own place by bits moved).
    bits : of EC1, the bits involved: turned over, or where each bit of the source stands in the destination.
    distances : of EC2, destination minus source of one repetition; None where there is none.
    repetitions : of EC2, how often the list stands in a row.
    """

    kind: str
    pattern: str = ""
    bits: tuple[int, ...] = ()
    distances: tuple[Peer, ...] = ()
    repetitions: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The equation as the document of an application has it."""
        if self.kind == "EC1":
            return {"kind": "EC1", "pattern": self.pattern, "bits": list(self.bits)}
        return {"kind": "EC2", "distances": list(self.distances), "repetitions": self.repetitions}


def local_equation(destinations: Sequence[Peer]) -> LocalEquation:
    """The local equation of one communication.

    Parameters
    ----------
    destinations : of each process in the order of ranks; None for a null communication.

    Examples
    --------
    A mesh of 4 x 2, its first communication (Fig. 4), and an exchange:

    >>> equation = local_equation([1, 2, 3, 0, 5, 6, 7, 4])
    >>> equation.distances, equation.repetitions
    ((1, 1, 1, -3), 2)
    >>> local_equation([4, 5, 6, 7, 0, 1, 2, 3]).bits
    (2,)
    """
    count = len(destinations)
    dynamic = _bits_involved(destinations)
    if dynamic is not None:
        return dynamic
    distances = tuple(None if to is None else to - rank for rank, to in enumerate(destinations))
    period = next(
        period
        for period in range(1, count + 1)
        if count % period == 0 and distances == distances[:period] * (count // period)
    )
    return LocalEquation("EC2", distances=distances[:period], repetitions=count // period)


def _bits_involved(destinations: Sequence[Peer]) -> LocalEquation | None:
    """EC1, if the destinations follow from the bits of the ranks."""
    count = len(destinations)
    width = count.bit_length() - 1
    if count < 2 or count != 1 << width or any(to is None or not 0 <= to < count for to in destinations):
        return None
    to = [int(each) for each in destinations if each is not None]
    if to[0] and all(each == rank ^ to[0] for rank, each in enumerate(to)):
        return LocalEquation("EC1", "exchange", tuple(bit for bit in range(width) if to[0] >> bit & 1))
    images = [to[1 << bit] for bit in range(width)]
    if to[0] or any(each & (each - 1) or not each for each in images) or sorted(images) == images:
        return None
    moved = tuple(each.bit_length() - 1 for each in images)
    made = [sum((rank >> bit & 1) << moved[bit] for bit in range(width)) for rank in range(count)]
    return LocalEquation("EC1", "permutation", moved) if made == to else None
