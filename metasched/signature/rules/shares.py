"""Shares of lengths that programs deal out along the sides of a grid, as the atoms of expressions have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from metasched.signature.rules.attributes import Attribute

_SHARE = re.compile(r"1/P(\d)|(floor|most|ceil|block|spread)(\d):(\d+)")
#: The kinds of shares that all processes along a side have alike: a quotient, and one that is rounded down.
QUOTIENT, ROUNDED = "", "floor"


@dataclass(frozen=True, slots=True)
class Share:
    """A share along one side of a grid, printed as a factor of an atom.

    Parameters
    ----------
    kind : :data:`QUOTIENT`, or as :func:`part_of <metasched.signature.equations.expressions.part_of>` calls it.
    side : of the grid.
    length : in pieces; 0 for a quotient, which stands before any.
    """

    kind: str
    side: int
    length: int = 0

    @classmethod
    def of(cls, factor: str) -> Share | None:
        """The share that a factor is; None for any other factor.

        Examples
        --------
        >>> Share.of("block1:960"), Share.of("P0")
        (Share(kind='block', side=1, length=960), None)
        """
        known = _SHARE.fullmatch(factor)
        if known is None:
            return None
        quotient, kind, side, length = known.groups()
        return cls(kind, int(side), int(length)) if kind else cls(QUOTIENT, int(quotient))

    def along(self, side: int) -> Share:
        """The same share of a length along side ``side`` in place of its own."""
        return replace(self, side=side)

    def __str__(self) -> str:
        return f"{self.kind}{self.side}:{self.length}" if self.kind else f"1/P{self.side}"


def share_of(rule: Attribute) -> tuple[float, Share] | None:
    """How many times which share along one side a number is; None where it is anything else."""
    known = rule.product
    share = Share.of(known[1]) if known is not None else None
    return None if known is None or share is None else (known[0], share)


def shares_of(atom: str) -> list[Share]:
    """The shares, alike for all processes along each side, that an atom is the product of; none for any other atom.

    Examples
    --------
    >>> shares_of("1/P0*floor1:96"), shares_of("1/P0*n"), shares_of("block1:96")
    ([Share(kind='', side=0, length=0), Share(kind='floor', side=1, length=96)], [], [])
    """
    found = [share for share in map(Share.of, atom.split("*")) if share and share.kind in (QUOTIENT, ROUNDED)]
    return found if len(found) == atom.count("*") + 1 else []


def product_of(shares: Iterable[Share]) -> str:
    """The atom that is the product of shares."""
    return "*".join(map(str, shares))
