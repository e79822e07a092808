"""Rules for one number of an action: from the number of processes, the rank and the steps of loops.

A rank is a relation in each dimension of a grid (shift, exchange of bits, place, mirror, change of coordinates), other
numbers are expressions; where neither holds, each step of a short loop has its own, or a power law in n stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError
from metasched.signature.computation.instruction_groups import Placement
from metasched.signature.equations.expressions import Env, Expression, power_in
from metasched.signature.equations.folds import place_in_fold, rank_in_fold
from metasched.signature.equations.open_partners import MOST_CHILDREN, NOBODY, NULL_STEP, OPEN_KINDS, open_place
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates, dimensions_of
from metasched.signature.equations.transforms import LARGEST_FACTOR, MOST_EXPONENT, PowerLaw

#: Longest loop whose steps may each have a rule of their own.
UNROLLED = 64


@dataclass(frozen=True, slots=True)
class Axis:
    """The peer's coordinate in one dimension.

    Parameters
    ----------
    kind : ``shift`` (own coordinate plus ``by``, round the side), ``bits`` (own, exclusive or ``by``), ``folded`` (as
        ``bits``, among those that are left of pairs: :mod:`metasched.signature.equations.folds`), ``place`` (``by``),
        ``mirror`` (side - 1 - own + ``by``, round the side), ``other`` (the own coordinate in dimension ``of``, plus
        ``by``); or a relation that may lead past the ends of the side, where nobody is
        (:mod:`metasched.signature.equations.open_partners`), with ``by`` as its label; of ``null step`` calls are also
        made where nobody is.
    by : an expression.
    of : another dimension, or the children of a process in a tree.
    """

    kind: str
    by: Expression
    of: int = 0

    def __call__(self, own: Sequence[Floats], dimension: int, side: Floats, env: Env) -> Floats:
        """The coordinate of the peer in one dimension, for processes at ``own``."""
        by = self.by(env)
        if self.kind in OPEN_KINDS or self.kind == NULL_STEP:
            kind = "step" if self.kind == NULL_STEP else self.kind
            at, label = own[dimension].astype(np.int64), by.astype(np.int64)
            places = open_place(kind, at, label, self.of, int(np.max(side)))
            return places.astype(np.float64)
        if self.kind == "bits":
            one, other = np.broadcast_arrays(own[dimension].astype(np.int64), by.astype(np.int64))
            return np.asarray(one ^ other, dtype=np.float64)
        if self.kind == "folded":
            left = np.asarray(side - power_in(side), dtype=np.int64)
            place = place_in_fold(own[dimension].astype(np.int64), left)
            return np.asarray(rank_in_fold(place ^ by.astype(np.int64), left), dtype=np.float64)
        start = {
            "shift": own[dimension],
            "place": np.zeros(1),
            "mirror": side - 1 - own[dimension],
            "other": own[self.of],
        }[self.kind]
        return np.asarray(np.mod(start + by, side))

    def __str__(self) -> str:
        by = str(self.by)
        if self.kind == "branch":
            return f"branch {by} of {self.of}"
        if self.kind == "other":
            return f"coordinate {self.of}" + ("" if by == "0" else f" + {by}")
        return f"{self.kind} {by}"


@dataclass(frozen=True)
class Attribute:
    """The rule of one number: a rank rule, an expression, a table over steps or groups, or a power law.

    Parameters
    ----------
    topology, axes : of a rank.
    expression : of another number, in the sides and coordinates of the topology.
    law : a regression, where no expression holds.
    loop, table : a number for each step of a loop, or of its steps modulo the table's length.
    turn : ``steps``; ``rounds`` (of as many steps as the table is long, whose rules count rounds in place of steps); or
        of two, ``first`` (the first step and the others), ``last`` (the others and the last step), ``halves`` (the
        first and the second half, each counted from 0).
    placement : whose number each of the table is, where it is one for each group of processes.
    """

    topology: str = ""
    axes: tuple[Axis, ...] = ()
    expression: Expression | None = None
    law: PowerLaw | None = None
    loop: int = -1
    table: tuple[Attribute, ...] = ()
    turn: str = "steps"
    placement: Placement | None = None

    @property
    def size(self) -> int:
        """The complexity of a rule; the simplest that holds is chosen."""
        by = self.expressions
        return (
            sum(each.size for each in self.table) + len(self.table) + 2 * sum(len(each.terms) for each in by) + len(by)
        )

    @property
    def product(self) -> tuple[float, str] | None:
        """The coefficient and the atom where these are all of the rule's expression; None where they are not."""
        return self.expression.product if self.expression is not None else None

    @property
    def ruled(self) -> bool:
        """Whether the number follows rules only, without a regression."""
        return self.law is None and all(each.ruled for each in self.table)

    @property
    def steps(self) -> tuple[int, str, int]:
        """The loop whose steps have rules of their own, how they are distinguished, and how many there are."""
        return self.loop, self.turn, len(self.table)

    @property
    def to_neighbour(self) -> bool:
        """Whether a partner is the next process along some sides of its grid, one way or the other."""
        return bool(self.axes) and all(
            axis.kind == "shift" and not axis.by.terms and abs(axis.by.constant) <= 1 for axis in self.axes
        )

    @property
    def statistical(self) -> bool:
        """Whether the values are known, but not which process has which."""
        return self.placement is not None and self.placement.kind == "spread"

    def along(self, peer: Attribute, turns: int) -> tuple[Attribute, ...] | None:
        """The rules at the steps that a peer has rules of its own at; None where they are distinguished otherwise.

        Parameters
        ----------
        peer : of the same action.
        turns : how often the loop runs whose steps these are; 0 where that differs.

        Examples
        --------
        >>> one, other = (Attribute(expression=Expression(each)) for each in (8.0, 96.0))
        >>> peer = Attribute(loop=0, table=(one,) * 3)
        >>> [str(each) for each in Attribute(loop=0, table=(one, other)).along(peer, 3)]
        ['8', '96', '8']
        """
        if not self.table or self.steps == peer.steps:
            return self.table or (self,) * max(len(peer.table), 1)
        alike = (self.loop, self.turn, peer.turn) == (peer.loop, "steps", "steps") and self.placement is None
        if not alike or turns != len(peer.table):
            return None
        return tuple(self.table[step % len(self.table)] for step in range(turns))

    def parts(self) -> Iterator[Attribute]:
        """The rule itself, and those of its table with all of theirs."""
        yield self
        for each in self.table:
            yield from each.parts()

    @property
    def expressions(self) -> list[Expression]:
        """Those of the rule itself, not of its table."""
        return [*(axis.by for axis in self.axes), *([] if self.expression is None else [self.expression])]

    def computable(self, names: Set[str]) -> bool:
        """Whether all that it asks for has one of the names that are known where it stands, or is of its own grid."""
        if self.axes and len(self.axes) != dimensions_of(self.topology):
            return False
        if self.table and self.placement is None and f"i{self.loop}" not in names:
            return False
        own = names | grid_names(self.topology) if self.topology else names
        return all(each.names <= own for each in self.expressions) and all(
            each.computable(names) for each in self.table
        )

    def at(self, count: int) -> int:
        """The number for so many processes, where it follows from how many they are."""
        return int(self({"n": np.full(1, float(count))}, count)[0])

    def __call__(self, env: Env, count: int, rounded: bool = True) -> Floats:
        """The numbers, of the shape that the names in ``env`` broadcast to."""
        if self.placement is not None:
            return _chosen(self.placement(env, count), [each(env, count, rounded) for each in self.table])
        if self.table:
            steps, inner = turned(env, self.loop, self.turn, len(self.table))
            return _chosen(steps, [each(inner, count, rounded) for each in self.table])
        if self.law is not None:
            return np.full(1, round(self.law(count)) if rounded else self.law(count))
        sides = TOPOLOGIES[self.topology](count) if self.topology else ()
        if self.expression is not None:
            named = with_grid(env, sides) if sides else env
            return self.expression(named) if rounded else self.expression.raw(named)
        own = [each.astype(np.float64) for each in coordinates(env["r"].astype(np.int64), sides)]
        inner = with_grid(env, sides)
        peer, nobody = np.zeros(1), np.zeros(1, dtype=np.bool_)
        for dimension, axis in enumerate(self.axes):
            place = axis(own, dimension, np.full(1, float(sides[dimension])), inner)
            peer, nobody = peer * sides[dimension] + place, nobody | (place == NOBODY)
        return np.where(nobody, float(NOBODY), peer)

    def __str__(self) -> str:
        if self.placement is not None:
            return f"{self.placement}: " + "; ".join(map(str, self.table[:8]))
        if self.table:
            return f"by {self.turn} of loop {self.loop}: " + "; ".join(map(str, self.table[:8]))
        if self.law is not None:
            return f"{self.law.factor:.6g} n^{self.law.exponent:.4g}, R^2 {self.law.r_squared:.4f}"
        if self.expression is not None:
            return str(self.expression)
        return f"{self.topology}: " + ", ".join(map(str, self.axes))

    def as_dict(self) -> dict[str, Any]:
        """The attribute as a JSON document, which :meth:`of` reads."""
        if self.placement is not None:
            return {"placement": self.placement.as_dict(), "groups": [each.as_dict() for each in self.table]}
        if self.table:
            return {"loop": self.loop, "turn": self.turn, "table": [each.as_dict() for each in self.table]}
        if self.law is not None:
            return {"law": {"factor": self.law.factor, "exponent": self.law.exponent, "r_squared": self.law.r_squared}}
        if self.expression is not None:
            return {"expression": self.expression.as_dict(), "topology": self.topology}
        axes = [{"kind": axis.kind, "by": axis.by.as_dict(), "of": axis.of} for axis in self.axes]
        return {"topology": self.topology, "axes": axes}

    @classmethod
    def of(cls, document: Any, depth: int = 0) -> Attribute:
        """The attribute of a document; InputError for what is none."""
        try:
            if depth > 4 or not isinstance(document, dict):
                raise ValueError
            if "placement" in document:
                groups = tuple(cls.of(each, depth + 1) for each in document["groups"])
                if not 0 < len(groups) <= UNROLLED:
                    raise ValueError
                placement = Placement.of(document["placement"], len(groups))
                return cls(placement.topology, table=groups, placement=placement)
            if "table" in document:
                table = tuple(cls.of(each, depth + 1) for each in document["table"])
                if not 0 < len(table) <= UNROLLED or not 0 <= int(document["loop"]) < 100:
                    raise ValueError
                if document["turn"] not in TURNS or (document["turn"] not in TURNS[:2] and len(table) != 2):
                    raise ValueError
                return cls(loop=int(document["loop"]), table=table, turn=document["turn"])
            if "law" in document:
                numbers = [float(document["law"][name]) for name in ("factor", "exponent", "r_squared")]
                if not all(abs(each) < LARGEST_FACTOR for each in numbers) or abs(numbers[1]) > MOST_EXPONENT:
                    raise ValueError
                return cls(law=PowerLaw(*numbers))
            if "expression" in document:
                if document["topology"] not in {"", *TOPOLOGIES}:
                    raise ValueError
                return cls(document["topology"], expression=Expression.of(document["expression"]))
            topology = document["topology"]
            axes = tuple(
                Axis(str(each["kind"]), Expression.of(each["by"]), int(each["of"])) for each in document["axes"]
            )
            kinds = {"shift", "bits", "folded", "place", "mirror", "other", NULL_STEP, *OPEN_KINDS}
            if topology not in TOPOLOGIES or not 0 < len(axes) <= 4 or any(axis.kind not in kinds for axis in axes):
                raise ValueError
            if any(not 0 <= axis.of < (MOST_CHILDREN + 1 if axis.kind == "branch" else len(axes)) for axis in axes):
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"rule {str(document)[:60]!r} is not valid") from None
        return cls(topology=topology, axes=axes)


def shifted(topology: str, dimensions: int, side: int, by: int) -> Attribute:
    """The partner so many places further along a side of a grid.

    Examples
    --------
    >>> print(shifted("grid 012", 3, 1, -1))
    grid 012: shift 0, shift -1, shift 0
    """
    axes = tuple(Axis("shift", Expression(float(by if place == side else 0))) for place in range(dimensions))
    return Attribute(topology, axes)


#: Partners of processes that are folded at the largest power of two: as far above or below.
FOLDED = tuple(Attribute("line", (Axis("shift", Expression(0.0, ((sign, "power(n)"),))),)) for sign in (1.0, -1.0))

#: A side, a coordinate or a share along a side, with its number.
_SIDED = re.compile(r"\b(P|x|floor|most|ceil|block|spread)(\d)")


#: Relations of partners so many steps along a side: round it, or up to its ends.
STEPS = ("shift", "step")


def turned_to(rule: Attribute, topology: str, one: int, other: int) -> Attribute:
    """The rule of a number along one side of a grid, transferred from another side.

    Examples
    --------
    >>> print(turned_to(Attribute("grid 012", expression=Expression(0.0, ((8.0, "1/P0*1/P1"),))), "grid 012", 0, 2))
    8 1/P2*1/P1
    """
    names = {str(one): str(other), str(other): str(one)}
    table = tuple(turned_to(each, topology, one, other) for each in rule.table)
    if rule.expression is None or rule.topology != topology:
        return replace(rule, table=table)
    terms = tuple(
        (factor, _SIDED.sub(lambda match: match[1] + names.get(match[2], match[2]), atom))
        for factor, atom in rule.expression.terms
    )
    return replace(rule, expression=replace(rule.expression, terms=terms))


#: How steps of a loop are distinguished.
TURNS = ("steps", "rounds", "first", "last", "halves")


def turned(env: Env, loop: int, turn: str, length: int) -> tuple[Ints, Env]:
    """Which rule of a table each step has, and the names as that rule sees them."""
    steps, counts = env[f"i{loop}"], env[f"c{loop}"]
    if turn == "first":
        return (steps > 0).astype(np.int64), env
    if turn == "last":
        return (steps == counts - 1).astype(np.int64), env
    if turn == "halves":
        half = np.floor(counts / 2)
        later = steps >= half
        return later.astype(np.int64), {**env, f"i{loop}": np.where(later, steps - half, steps), f"c{loop}": half}
    if turn == "rounds":
        env = {**env, f"i{loop}": np.floor(steps / length), f"c{loop}": np.floor(counts / length)}
    return np.mod(steps, length).astype(np.int64), env


def _chosen(steps: Ints, parts: list[Floats]) -> Floats:
    together = np.stack(np.broadcast_arrays(*parts, np.zeros(steps.shape))[:-1])
    return np.asarray(np.take_along_axis(together, np.broadcast_to(steps, together.shape[1:])[None], axis=0)[0])


def grid_names(topology: str) -> set[str]:
    """The names that :func:`with_grid` adds.

    Examples
    --------
    >>> sorted(grid_names("grid 01"))
    ['P0', 'P1', 'x0', 'x1']
    """
    return {f"{letter}{place}" for letter in "Px" for place in range(dimensions_of(topology))}


def with_grid(env: Env, sides: tuple[int, ...]) -> dict[str, Floats]:
    """The environment with the sides and coordinates of a grid at one number of processes."""
    ranks = coordinates(env["r"].astype(np.int64), sides)
    named = {f"x{place}": each.astype(np.float64) for place, each in enumerate(ranks)}
    return {**env, **named, **{f"P{place}": np.full(1, float(side)) for place, side in enumerate(sides)}}
