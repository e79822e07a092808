"""Rules for one number of an action: from the number of processes, the rank and the steps of loops.

A rank is a relation in each dimension of a grid (shift, exchange of bits, place, mirror, change of coordinates), other
numbers are expressions; where neither holds, each step of a short loop has its own, or a power law in n stands in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError
from metasched.signature.computation.instruction_groups import Placement
from metasched.signature.equations.expressions import MOST_FACTORS, ROUNDING, Env, Expression, Rows, atoms
from metasched.signature.equations.topologies import TOPOLOGIES, asks_for_squares, coordinates
from metasched.signature.equations.transforms import LARGEST_FACTOR, MOST_EXPONENT, PowerLaw, r_squared

Floats = NDArray[np.float64]

#: Longest loop whose steps may each have a rule of their own.
UNROLLED = 64
#: Loops up to this many steps are neighbours in a list before they are steps that follow a rule.
FEW = 8
#: Rows of each count on which a rule is tried first.
PROBED = 17
#: A share along one side.
_SHARE = re.compile(r"1/P(\d)|floor(\d):\d+")
#: Finds one rule for rows and their values.
OneRule = Callable[["Samples", Floats], "Attribute | None"]
#: How many times larger than those learned from the runs are in which sums of two terms may not fall below 0.
LARGER = (2, 4, 16)
#: Computations are written to six digits.
WRITTEN = 2e-5


@dataclass(frozen=True, slots=True)
class Axis:
    """The peer's coordinate in one dimension.

    Parameters
    ----------
    kind : ``shift`` (own coordinate plus ``by``, round the side), ``bits`` (own, exclusive or ``by``), ``place``
        (``by``),
        ``mirror`` (side - 1 - own + ``by``, round the side), ``other`` (the own coordinate in dimension ``of``, plus
        ``by``).
    by : an expression.
    of : another dimension.
    """

    kind: str
    by: Expression
    of: int = 0

    def __call__(self, own: Sequence[Floats], dimension: int, side: Floats, env: Env) -> Floats:
        """The coordinate of the peer in one dimension, for processes at ``own``."""
        by = self.by(env)
        if self.kind == "bits":
            one, other = np.broadcast_arrays(own[dimension].astype(np.int64), by.astype(np.int64))
            return np.asarray(one ^ other, dtype=np.float64)
        start = {
            "shift": own[dimension],
            "place": np.zeros(1),
            "mirror": side - 1 - own[dimension],
            "other": own[self.of],
        }[self.kind]
        return np.asarray(np.mod(start + by, side))

    def __str__(self) -> str:
        by = str(self.by)
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
    turn : ``steps``; or of two, ``first`` (the first step and the others), ``last`` (the others and the last step),
        ``halves`` (the first and the second half, each counted from 0).
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
        by = [axis.by for axis in self.axes] + ([self.expression] if self.expression is not None else [])
        return (
            sum(each.size for each in self.table) + len(self.table) + 2 * sum(len(each.terms) for each in by) + len(by)
        )

    @property
    def ruled(self) -> bool:
        """Whether the number follows rules only, without a regression."""
        return self.law is None and all(each.ruled for each in self.table)

    @property
    def statistical(self) -> bool:
        """Whether the values are known, but not which process has which."""
        return self.placement is not None and self.placement.kind == "spread"

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
        peer = np.zeros(1)
        for dimension, axis in enumerate(self.axes):
            peer = peer * sides[dimension] + axis(own, dimension, np.full(1, float(sides[dimension])), inner)
        return peer

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
                if document["turn"] not in TURNS or (document["turn"] != "steps" and len(table) != 2):
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
            kinds = {"shift", "bits", "place", "mirror", "other"}
            if topology not in TOPOLOGIES or not 0 < len(axes) <= 4 or any(axis.kind not in kinds for axis in axes):
                raise ValueError
            if any(not 0 <= axis.of < len(axes) for axis in axes):
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


#: A side, a coordinate or a share along a side, with its number.
_SIDED = re.compile(r"\b(P|x|floor|most|ceil|block|spread)(\d)")


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
TURNS = ("steps", "first", "last", "halves")


def turned(env: Env, loop: int, turn: str, length: int) -> tuple[NDArray[np.int64], Env]:
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
    return np.mod(steps, length).astype(np.int64), env


def _chosen(steps: NDArray[np.int64], parts: list[Floats]) -> Floats:
    together = np.stack(np.broadcast_arrays(*parts, np.zeros(steps.shape))[:-1])
    return np.asarray(np.take_along_axis(together, np.broadcast_to(steps, together.shape[1:])[None], axis=0)[0])


def with_grid(env: Env, sides: tuple[int, ...]) -> dict[str, Floats]:
    """The environment with the sides and coordinates of a grid at one number of processes."""
    ranks = coordinates(env["r"].astype(np.int64), sides)
    named = {f"x{place}": each.astype(np.float64) for place, each in enumerate(ranks)}
    return {**env, **named, **{f"P{place}": np.full(1, float(side)) for place, side in enumerate(sides)}}


class Samples:
    """The samples of one action's numbers at all counts, on which rules are searched and checked.

    Parameters
    ----------
    counts : array of shape (rows,), the number of processes of each row.
    env : arrays of shape (rows,) by name: ``r``, the steps and counts of loops, ``j`` and ``m`` in lists.
    loops : how many loops are around the action.
    topology : the grid that stands for ``P`` and ``x`` in expressions.
    """

    def __init__(self, counts: NDArray[np.int64], env: Env, loops: int, topology: str) -> None:
        self.counts, self.env, self.loops, self.topology = counts, dict(env), loops, topology
        self.env["n"] = counts.astype(np.float64)
        self._rows: dict[tuple[str, bool], Rows] = {}
        self._grids: dict[str, dict[str, Floats]] = {}
        self._steps: dict[tuple[int, str, int], dict[int, tuple[NDArray[np.bool_], Samples]]] = {}
        self.distinct = np.unique(counts).tolist()

    @property
    def in_list(self) -> bool:
        """Whether the numbers stand in lists."""
        return "j" in self.env

    def grid(self, topology: str) -> dict[str, Floats]:
        """Names with the sides and coordinates of a grid, arrays of shape (rows,)."""
        if topology not in self._grids:
            named = dict(self.env)
            dimensions = len(TOPOLOGIES[topology](self.distinct[0]))
            for each in range(dimensions):
                named[f"P{each}"] = np.zeros(self.counts.size)
                named[f"x{each}"] = np.zeros(self.counts.size)
            for n in self.distinct:
                here = self.counts == n
                sides = TOPOLOGIES[topology](n)
                for each, at in enumerate(coordinates(self.env["r"][here].astype(np.int64), sides)):
                    named[f"P{each}"][here], named[f"x{each}"][here] = sides[each], at
            self._grids[topology] = named
        return self._grids[topology]

    def rows(self, topology: str, ranks: bool) -> Rows:
        """Rows with the atoms of a grid."""
        if (topology, ranks) not in self._rows:
            env = self.grid(topology)
            dimensions = len(TOPOLOGIES[topology](self.distinct[0]))
            self._rows[topology, ranks] = Rows(env, atoms(dimensions, self.loops, self.in_list, ranks))
        return self._rows[topology, ranks]

    def fingerprint(self, values: Floats) -> tuple[object, ...]:
        """A hash of the rows and values, equal for equal rows and values."""
        rows = sorted((name, np.asarray(each, dtype=np.float64).tobytes()) for name, each in self.env.items())
        return self.topology, self.loops, *rows, values.tobytes()

    def alone(self) -> NDArray[np.bool_]:
        """A mask, shape (rows,), of the rows of the first process of each count."""
        ranks = self.env["r"]
        first = {n: ranks[self.counts == n].min() for n in self.distinct}
        return np.asarray(ranks == np.array([first[n] for n in self.counts.tolist()]))

    def part(self, chosen: NDArray[np.bool_], env: Env | None = None) -> Samples:
        """Some of the rows, perhaps with other names."""
        env = {name: values[chosen] for name, values in (env or self.env).items()}
        return Samples(self.counts[chosen], env, self.loops, self.topology)

    @cached_property
    def probe(self) -> tuple[NDArray[np.bool_], Samples]:
        """A few rows of each count, on which most rules that do not hold fail: a mask, shape (rows,), and the rows."""
        picked = np.zeros(self.counts.size, dtype=np.bool_)
        for n in self.distinct:
            here = np.flatnonzero(self.counts == n)
            # A step that shares no factor with the sides of grids.
            step = max(here.size // PROBED, 1) | 1
            picked[here[::step]] = True
            picked[here[[0, -1]]] = True
        return picked, self.part(picked)

    def by_step(self, loop: int, turn: str, length: int) -> Iterator[tuple[NDArray[np.bool_], Samples]]:
        """The rows of each rule of a table over a loop's steps: a mask, shape (rows,), and the rows."""
        known = self._steps.setdefault((loop, turn, length), {})
        which, inner = turned(self.env, loop, turn, length)
        for step in range(length):
            if step not in known:
                chosen = which == step
                known[step] = chosen, self.part(chosen, inner)
            yield known[step]

    def holds(self, attribute: Attribute, values: Floats, tolerance: float = 0.0) -> bool:
        """Whether an attribute gives back all values."""
        for n in self.distinct:
            here = self.counts == n
            env = with_grid({name: each[here] for name, each in self.env.items()}, TOPOLOGIES[self.topology](n))
            try:
                made = attribute(env, n, rounded=not tolerance)
            except (KeyError, ValueError, IndexError):
                return False
            if not np.all(np.abs(made - values[here]) <= tolerance * np.abs(values[here]) + 1e-7):
                return False
        return True


def number(
    samples: Samples, values: Floats, topologies: Sequence[str] = (), tolerance: float = 0.0
) -> Attribute | None:
    """The rule of a number that is no rank, in the sides of the roles' grid or of others; None where there is none."""
    # Grids that the partners of messages stand in come before the line of ranks.
    tried = list(dict.fromkeys([*topologies, samples.topology]))
    for topology in tried:
        found = samples.rows(topology, True).fitted(values, tolerance)
        if found is not None:
            if not tolerance:
                found = found.of_shares(samples.grid(topology), asks_for_squares(samples.distinct, [topology]))
            return Attribute("" if topology == samples.topology else topology, expression=found)
    # Two atoms fit few values too easily: shares along any grid come first.
    for search in (_harder, _paired):
        for topology in tried:
            found = search(samples, values, topology, tolerance)
            if found is not None:
                return Attribute("" if topology == samples.topology else topology, expression=found)
    return None


def _harder(samples: Samples, values: Floats, topology: str, tolerance: float) -> Expression | None:
    """Rules with remainders, and shares that do not divide evenly."""
    rows = samples.rows(topology, True)
    dimensions = len(TOPOLOGIES[topology](samples.distinct[0]))
    found = None
    if np.all(values == np.round(values)):
        moduli = ["n", *(f"P{each}" for each in range(dimensions) if dimensions > 1)]
        found = rows.modular(values, moduli)
    return rows.dealt_out(values, dimensions, tolerance) if found is None else found


def _paired(samples: Samples, values: Floats, topology: str, tolerance: float) -> Expression | None:
    believed = _stays_above(samples, topology) if np.all(values >= 0) else lambda found: True
    return samples.rows(topology, True).paired(values, tolerance, believed)


def _stays_above(samples: Samples, topology: str) -> Callable[[Expression], bool]:
    """Whether an expression in the number of processes and their places is never below 0 in larger runs."""
    larger = [n * samples.distinct[-1] for n in LARGER if TOPOLOGIES[topology](n * samples.distinct[-1])]
    grids = [
        with_grid({"r": np.arange(n, dtype=np.float64), "n": np.full(1, float(n))}, TOPOLOGIES[topology](n))
        for n in larger
    ]

    def believed(found: Expression) -> bool:
        try:
            return all(float(found.raw(grid).min()) > -1.0 for grid in grids)
        except KeyError:  # it depends on steps of loops, too
            return True

    return believed


def rank(samples: Samples, values: Floats, topologies: Sequence[str], only_simple: bool = False) -> Attribute | None:
    """The rule of a rank; None where there is none.

    Relations without a parameter that grows are tried on every grid before any others, or alone.
    """
    if np.any(values < 0) or np.any(values >= samples.env["n"]):
        return number(samples, values, topologies[:2])
    picked, probe = samples.probe
    few = values[picked]
    for simply in (True,) if only_simple else (True, False):
        for topology in topologies:
            found = _ranked(probe, few, topology, simply)
            if found is None:
                continue
            if samples.holds(found, values):
                return found
            # The few rows may have been explained by something too simple.
            found = _ranked(samples, values, topology, simply)
            if found is not None and samples.holds(found, values):
                return found
    return None


def _ranked(samples: Samples, values: Floats, topology: str, simply: bool) -> Attribute | None:
    env = samples.grid(topology)
    dimensions = len(TOPOLOGIES[topology](samples.distinct[0]))
    left = values.astype(np.int64)
    peers: list[Floats] = []
    for each in reversed(range(dimensions)):
        side = env[f"P{each}"].astype(np.int64)
        peers.insert(0, (left % side).astype(np.float64))
        left = left // side
    axes: list[Axis] = []
    for each in range(dimensions):
        axis = _simple_axis(env, peers[each], each, dimensions)
        if axis is None and not simply:
            axis = _axis(samples, topology, peers[each], each, dimensions)
        if axis is None:
            return None
        axes.append(axis)
    return Attribute(topology=topology, axes=tuple(axes))


def _simple_axis(env: Env, peer: Floats, dimension: int, dimensions: int) -> Axis | None:
    """A relation whose parameter is the same at all rows."""
    own, side = env[f"x{dimension}"], env[f"P{dimension}"]
    forward = np.mod(peer - own, side)
    first = float(forward[0])
    for by in sorted((first, first - float(side[0])), key=abs):
        if np.all(np.mod(by - forward, side) == 0):
            return Axis("shift", Expression(by))
    bits = np.bitwise_xor(own.astype(np.int64), peer.astype(np.int64))
    if np.all(bits == bits[0]):
        return Axis("bits", Expression(float(bits[0])))
    if np.all(peer == peer[0]):
        return Axis("place", Expression(float(peer[0])))
    if np.all(peer == side - 1 - own):
        return Axis("mirror", Expression())
    for other in range(dimensions):
        if other != dimension and np.all(peer == env[f"x{other}"]):
            return Axis("other", Expression(), other)
    # Half round a side that grows, before a step along a grid that happens to have a short side there.
    for half in (0.5, -0.5):
        if np.ptp(side) and np.all(forward == np.mod(np.trunc(half * side), side)):
            return Axis("shift", Expression(0.0, ((half, f"P{dimension}" if dimensions > 1 else "n"),)))
    return None


def _axis(samples: Samples, topology: str, peer: Floats, dimension: int, dimensions: int) -> Axis | None:
    env, rows = samples.grid(topology), samples.rows(topology, False)
    own, side = env[f"x{dimension}"], env[f"P{dimension}"]
    forward = np.mod(peer - own, side)
    short = np.where(forward * 2 > side, forward - side, forward)
    shift = _stepped(rows, forward, short, side)
    if shift is not None:
        return Axis("shift", shift)
    bits = np.bitwise_xor(own.astype(np.int64), peer.astype(np.int64)).astype(np.float64)
    turned = rows.fitted(bits)
    if turned is not None and _stays(turned, own, side, env):
        return Axis("bits", turned)
    place = _stepped(rows, peer, peer - side, side)
    if place is not None:
        return Axis("place", place)
    mirrored = np.mod(peer - (side - 1 - own), side)
    if (mirror := _stepped(rows, mirrored, mirrored - side, side)) is not None:
        return Axis("mirror", mirror)
    for other in range(dimensions):
        if other != dimension:
            moved = np.mod(peer - env[f"x{other}"], side)
            if (by := _stepped(rows, moved, moved - side, side)) is not None:
                return Axis("other", by, other)
    # Partners that move by the coordinate in another dimension, as in the skewing of Cannon's algorithm.
    skewed = samples.rows(topology, True).modular(forward, [f"P{dimension}"])
    if skewed is not None:
        return Axis("shift", skewed)
    return None


def _stays(expression: Expression, own: Floats, side: Floats, env: Env) -> bool:
    made = np.bitwise_xor(own.astype(np.int64), expression(env).astype(np.int64))
    return bool(np.all(made < side))


def _stepped(rows: Rows, forward: Floats, short: Floats, side: Floats) -> Expression | None:
    """A distance round a side: as it is, the other way round, or by an expression modulo the side."""
    for values in (short, forward, forward - side):
        if np.all(values == values[0]):
            return Expression(float(values[0]))
    for values in (short, forward, forward - side):
        if (found := rows.fitted(values)) is not None:
            return found
    return rows.stepped(forward, side)


def attribute(
    samples: Samples,
    values: Floats,
    topologies: Sequence[str],
    peer: bool,
    tolerance: float = 0.0,
    grids: Sequence[str] = (),
    known: Sequence[Attribute] = (),
) -> Attribute | None:
    """The rule of a number, by steps of short loops where there is none for all of them; None where there is none.

    Parameters
    ----------
    samples, values : the rows.
    topologies : grids that ranks may be in, simplest first.
    peer : whether the number is a rank.
    tolerance : relative, of amounts.
    grids : whose sides other numbers may depend on, besides those of the roles.
    known : rules that hold elsewhere and are believed before any that the rows alone would tell.
    """

    def believed(of: Samples, wanted: Floats) -> Attribute | None:
        return next((each for each in known if of.holds(each, wanted, tolerance)), None)

    def one_rule(of: Samples, wanted: Floats) -> Attribute | None:
        if (found := believed(of, wanted)) is not None:
            return found
        return rank(of, wanted, topologies) if peer else number(of, wanted, grids, tolerance)

    def quick_rule(of: Samples, wanted: Floats) -> Attribute | None:
        return rank(of, wanted, topologies[:2]) if peer else number(of, wanted, grids[:1], tolerance)

    def simple_rule(of: Samples, wanted: Floats, deeper: int = 2) -> Attribute | None:
        found = believed(of, wanted) or rank(of, wanted, topologies, only_simple=True)
        if found is not None or not deeper:
            return found
        return _by_step(of, wanted, lambda part, some: simple_rule(part, some, deeper - 1), few=True)

    # The neighbours of a grid stand in loops of a few steps, each with a direction of its own.
    if peer and (found := simple_rule(samples, values)) is not None:
        return found
    return one_rule(samples, values) or _by_step(samples, values, quick_rule, few=False)


def _by_step(samples: Samples, values: Floats, rule: OneRule, few: bool) -> Attribute | None:
    """A rule for each step of a loop of one length, for every second, third or fourth of them, or for its ends."""
    for loop in reversed(range(samples.loops)):
        steps, counts = samples.env[f"i{loop}"], samples.env[f"c{loop}"]
        if not steps.any():
            continue
        lengths = [int(counts[0])] if np.all(counts == counts[0]) and 1 < counts[0] <= UNROLLED else []
        lengths = [each for each in lengths if each <= FEW] if few else [*lengths, 2, 3, 4]
        tried = [("steps", length) for length in dict.fromkeys(lengths) if length <= steps.max() + 1]
        if not few and np.all(counts > 1):
            tried += [("last", 2), ("first", 2), *([("halves", 2)] if np.all(counts % 2 == 0) else [])]
        for turn, length in tried:
            if few and _same(values, samples, loop):
                continue
            parts: list[Attribute] = []
            for chosen, part in samples.by_step(loop, turn, length):
                one = rule(part, values[chosen]) if chosen.any() else None
                if one is None:
                    break
                parts.append(one)
            if len(parts) == length:
                return Attribute(loop=loop, table=tuple(parts), turn=turn)
    return None


def _same(values: Floats, samples: Samples, loop: int) -> bool:
    """Whether the steps of a loop make no difference, as far as a look at the first and the last tells."""
    steps = samples.env[f"i{loop}"]
    first, last = values[steps == 0], values[steps == steps.max()]
    return first.size == last.size and bool(np.all(first == last)) and bool(np.ptp(values) == np.ptp(first))


def off_the_way(rule: Attribute, peer: Attribute | None, samples: Samples) -> Attribute:
    """A share along other sides than the one that a message goes along, where the runs do not tell them apart.

    What neighbours exchange is the face between them: across the direction that it is sent in.

    Parameters
    ----------
    rule : of a number of the message.
    peer : the rule of its partner.
    samples : the rows; sides that are the same at all their counts are not distinguished.
    """
    topology = rule.topology or samples.topology
    if peer is not None and peer.table and peer.placement is None and not rule.table:
        table = tuple(off_the_way(rule, each, samples) for each in peer.table)
        return replace(peer, table=table) if len({*table}) > 1 else table[0]
    last = len(TOPOLOGIES[topology](samples.distinct[0])) - 1
    # The next rank is the neighbour along the last side of every grid.
    ways = (
        {
            last if peer.topology == "line" else place
            for place, axis in enumerate(peer.axes)
            if peer.topology in (topology, "line") and axis.kind == "shift" and (axis.by.terms or axis.by.constant)
        }
        if peer is not None
        else set()
    )
    terms = rule.expression.terms if rule.expression is not None else ()
    factors = [factor for _, atom in terms for factor in atom.split("*")]
    if len(ways) != 1 or len(terms) != 1 or not all(_SHARE.fullmatch(each) for each in factors):
        return rule
    (way,) = ways
    sides = [TOPOLOGIES[topology](n) for n in samples.distinct]
    used = {int(_SHARE.sub(r"\1\2", each)) for each in factors}
    free = [at for at in range(len(sides[0])) if at not in used and all(each[at] == each[way] for each in sides)]
    if way not in used or not free:
        return rule
    turned = [each.replace(f"P{way}", f"P{free[0]}").replace(f"floor{way}:", f"floor{free[0]}:") for each in factors]
    (slope, _), constant = terms[0], rule.expression.constant if rule.expression is not None else 0.0
    return Attribute(rule.topology, expression=Expression(constant, ((slope, "*".join(turned)),)))


def shared_out(samples: Samples, values: Floats, steady: float) -> Attribute:
    """Instructions whose total is shared out again among more processes and steps (Eq. 4), or a power law.

    Parameters
    ----------
    samples, values : the rows.
    steady : how far totals may be from their mean, relative to it; those that drift more are outside the method.

    Examples
    --------
    >>> rows = Samples(np.array([4, 8, 16]), {"r": np.zeros(3)}, 0, "line")
    >>> print(shared_out(rows, np.array([25.1, 12.5, 6.2]), 0.05))
    99.8667 1/n
    >>> print(shared_out(rows, np.array([25.0, 20.0, 16.0]), 0.05))
    39.0625 n^-0.3219, R^2 1.0000
    """
    around = [f"1/c{loop}" for loop in range(min(samples.loops, MOST_FACTORS - 1))]
    tried = ["1/n", ""] + (["*".join(["1/n", *around])] if around else [])
    for atom in tried:
        totals = values.copy()
        for factor in filter(None, atom.split("*")):
            totals = totals * samples.env[factor[2:]]
        means = np.array([float(totals[samples.counts == n].mean()) for n in samples.distinct])
        if means.mean() > 0 and np.all(np.abs(means - means.mean()) <= steady * means.mean()):
            whole = float(f"{means.mean():.12g}")
            return Attribute(expression=Expression(0.0, ((whole, atom),)) if atom else Expression(whole))
    return regression(samples, values)


#: Largest divisor of a product of lengths that the program shares out elsewhere too.
MOST_DIVIDED = 16
_SHARED = re.compile(r"floor(\d):(\d+)")
#: What is dealt out among all, one way or another.
_DEALT = re.compile(r"(?:floor|most|ceil|block|spread)\d:\d+")


def shared_lengths(rules: Iterable[Attribute]) -> dict[str, dict[int, set[int]]]:
    """The lengths that rules share out along each side of a grid, where a rule has several: edges of its data."""
    found: dict[str, dict[int, set[int]]] = {}
    for rule in (part for each in rules for part in (each, *each.table)):
        for _, atom in rule.expression.terms if rule.expression is not None else ():
            factors = [_SHARED.fullmatch(each) for each in atom.split("*")]
            if len(factors) > 1 and all(factors):
                for factor in filter(None, factors):
                    found.setdefault(rule.topology, {}).setdefault(int(factor[1]), set()).add(int(factor[2]))
    return found


def of_known_lengths(
    rule: Attribute, lengths: Mapping[str, Mapping[int, set[int]]], counts: Sequence[int], roles: str
) -> Attribute:
    """A share of a whole as a part of a face or block, where the whole is one of lengths that the program shares out.

    Messages of half a face, or of a face and a half, look like a share of all; they are rounded down once the lengths
    have been.

    Parameters
    ----------
    rule : of a number that is no rank.
    lengths : of :func:`shared_lengths`, by topology and side.
    counts : where both have to be the same.
    roles : the topology that rules without one of their own speak of.
    """
    if rule.table:
        return replace(rule, table=tuple(of_known_lengths(each, lengths, counts, roles) for each in rule.table))
    terms = rule.expression.terms if rule.expression is not None and not rule.expression.constant else ()
    if len(terms) != 1 or rule.expression is None or rule.expression.modulus:
        return rule
    ((_, atom),) = terms
    if not (atom == "1/n" or _DEALT.fullmatch(atom)):
        return rule
    grid = {n: with_grid({"r": np.zeros(1), "n": np.full(1, float(n))}, TOPOLOGIES[roles](n)) for n in counts}
    values = [float(rule(grid[n], n)[0]) for n in counts]
    for topology, sides in lengths.items():
        if any(len(TOPOLOGIES[topology or roles](n)) != len(sides) for n in counts):
            continue
        for edges in product(*(sorted(sides[side]) for side in sorted(sides))):
            shares = "*".join(f"floor{side}:{edge}" for side, edge in zip(sorted(sides), edges, strict=True))
            whole = Attribute(topology, expression=Expression(0.0, ((1.0, shares),)))
            faces = [float(whole(grid[n], n)[0]) for n in counts]
            if min(faces) < 1.0:
                continue
            # A part of the face that is rounded down lies between these.
            low = max(value / face for value, face in zip(values, faces, strict=True))
            high = min((value + 1.0) / face for value, face in zip(values, faces, strict=True))
            for below in range(1, MOST_DIVIDED + 1):
                over = math.ceil(low * below - ROUNDING)
                if 0 < over < high * below - ROUNDING:
                    return Attribute(topology, expression=Expression(0.0, ((over / below, shares),)))
    return rule


def regression(samples: Samples, values: Floats) -> Attribute:
    """The fallback if no rule holds: a power law through the means at each count, or their mean."""
    means = [float(values[samples.counts == n].mean()) for n in samples.distinct]
    if len(means) > 1 and min(means) > 0:
        law = PowerLaw.fitted(samples.distinct, means)
        fitted = np.array([law(int(n)) for n in samples.counts])
        return Attribute(law=PowerLaw(law.factor, law.exponent, r_squared(values, fitted)))
    return Attribute(law=PowerLaw(float(np.mean(means)), 0.0, 0.0))
