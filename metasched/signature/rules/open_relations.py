"""Relations between processes and partners along the sides of a grid, where some calls have no partner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Flags, Ints
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.open_partners import NOBODY, open_label, open_place
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates, dimensions_of
from metasched.signature.rules.attributes import Attribute, Axis

#: Most children of the trees that are tried.
MOST_TRIED_CHILDREN = 8
#: Distances round each side, where every process has a partner.
ROUND = "shift"
#: Labels along the sides of a grid are one number, with this base.
BASE = 1 << 20


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between partners along the sides of a grid.

    Parameters
    ----------
    topology : the grid.
    kind, of : one of :mod:`metasched.signature.equations.open_partners`, and its number; or :data:`ROUND`.
    around : the sides along which labels are distances round them, whatever the kind is.
    """

    topology: str
    kind: str
    of: int = 0
    around: tuple[int, ...] = ()

    def kinds(self) -> list[str]:
        """The kind of labels along each side: :data:`ROUND` along those that are gone round."""
        sides = range(dimensions_of(self.topology))
        return [ROUND if side in self.around else self.kind for side in sides]

    def labels(self, ranks: Ints, peers: Ints, count: int) -> tuple[Ints, Flags]:
        """The labels of partners, and which partners have one."""
        sides = TOPOLOGIES[self.topology](count)
        found, known = np.zeros(ranks.shape, dtype=np.int64), np.ones(ranks.shape, dtype=np.bool_)
        places = zip(self.kinds(), coordinates(ranks, sides), coordinates(peers, sides), sides, strict=True)
        for kind, own, peer, side in places:
            if kind == ROUND:
                found = found * BASE + _round(peer - own, side)
                continue
            label, has = open_label(kind, own, peer, self.of)
            found, known = found * BASE + label, known & has
        return found, known

    def exists(self, ranks: Ints, label: int, count: int) -> Flags:
        """Which processes have a partner with a label."""
        sides = TOPOLOGIES[self.topology](count)
        there = np.ones(ranks.shape, dtype=np.bool_)
        for kind, own, side, part in zip(
            self.kinds(), coordinates(ranks, sides), sides, self.parts(label), strict=True
        ):
            if kind != ROUND:
                there &= open_place(kind, own, np.array(int(part)), self.of, side) != NOBODY
        return there

    def at(self, label: int, count: int) -> int:
        """The label that a partner has where sides are as short as those of some number of processes.

        Along a side of two processes the neighbours on both sides are one.

        Examples
        --------
        >>> relation = Relation("grid 01", "step", around=(1,))
        >>> [relation.at(label, 4) for label in (1, -1, BASE, -BASE)] == [-1, -1, BASE, -BASE]
        True
        """
        found = 0
        for kind, side, part in zip(
            self.kinds(), TOPOLOGIES[self.topology](count), map(int, self.parts(label)), strict=True
        ):
            found = found * BASE + (int(_round(np.array(part), side)) if kind == ROUND else part)
        return found

    @property
    def steps(self) -> bool:
        """Whether labels are steps along sides."""
        return self.kind == "step"

    def beside(self, labels: Iterable[int]) -> bool:
        """Whether labels are those of the next processes along sides, corners included."""
        return self.steps and all(abs(part) <= 1 for label in labels for part in self.parts(label))

    def parts(self, label: float) -> list[float]:
        """What a label, or a coefficient of one, holds for each side."""
        parts: list[float] = []
        for _ in range(dimensions_of(self.topology) - 1):
            rest = label - BASE * round(label / BASE)
            parts.insert(0, rest)
            label = (label - rest) / BASE
        return [label, *parts]

    def rule(self, label: Attribute) -> Attribute | None:
        """The rule of a partner from that of its label; None where labels depend on the process, or on another grid."""
        if label.table:
            table = [self.rule(each) for each in label.table]
            return replace(label, table=tuple(filter(None, table))) if all(table) and not label.placement else None
        by = label.expression
        # Sides are those of the label's own grid, and nothing else in it may differ from process to process.
        sided = label.topology not in ("", self.topology) and any(name[0] == "P" for name in by.names) if by else False
        if by is None or by.modulus or sided or any(name[0] in "rx" for name in by.names):
            return None
        constants = self.parts(by.constant)
        slopes = [self.parts(slope) for slope, _ in by.terms]
        axes = [
            Axis(
                kind,
                Expression(
                    constant,
                    tuple((own[side], atom) for own, (_, atom) in zip(slopes, by.terms, strict=True) if own[side]),
                ),
                self.of,
            )
            for side, (kind, constant) in enumerate(zip(self.kinds(), constants, strict=True))
        ]
        return Attribute(self.topology, tuple(axes))


def _round(distances: Ints, side: int) -> Ints:
    """Distances the short way round a side, backwards where both are as short."""
    return np.asarray(np.mod(distances + side // 2, side) - side // 2, dtype=np.int64)


def relations(topology: str) -> list[Relation]:
    """Those that are tried, simplest first."""
    trees = [Relation("line", "branch", of) for of in range(2, MOST_TRIED_CHILDREN + 1)]
    return [Relation(topology, "step"), Relation(topology, ROUND), Relation("line", "flip"), *trees]
