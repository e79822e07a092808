"""The rules of ranks: a relation between own and partner in each dimension of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.expression_search import Rows
from metasched.signature.equations.expressions import Env, Expression, power_in
from metasched.signature.equations.folds import place_in_fold
from metasched.signature.equations.open_partners import NULL_STEP
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.attributes import Attribute, Axis
from metasched.signature.rules.number_rules import number
from metasched.signature.rules.samples import Samples


def rank(samples: Samples, values: Floats, topologies: Sequence[str], only_simple: bool = False) -> Attribute | None:
    """The rule of a rank; None where there is none.

    Relations without a parameter that grows are tried on every grid before any others, or alone.
    """
    if np.any(values < 0) or np.any(values >= samples.env["n"]):
        return _past_ends(samples, values) or number(samples, values, topologies[:2])
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


def _past_ends(samples: Samples, values: Floats) -> Attribute | None:
    """A distance along all processes, with no partner (-1) where it leads past the first or the last."""
    there = values >= 0
    if np.all(values[there] >= samples.env["n"][there]) or not there.any():
        return None
    found = samples.part(there)
    far = values[there] - found.env["r"]
    by = found.rows("line", False).fitted(far) if found.one_for_all(far) else None
    rule = Attribute("line", axes=(Axis(NULL_STEP, by),)) if by is not None else None
    return rule if rule is not None and samples.holds(rule, values) else None


def in_steps(rule: Attribute, samples: Samples, values: Floats) -> Attribute:
    """The rule of a partner by its steps along the sides of the roles' grid; as it is where it is no neighbour there.

    The next rank of a process at the end of a row is the neighbour along two sides that go round, not along one.

    Examples
    --------
    >>> from metasched.signature.rules.attributes import shifted
    >>> ends = Samples(np.array([8, 12, 12]), {"r": np.array([3.0, 3.0, 7.0])}, 0, "grid 10")
    >>> print(in_steps(shifted("line", 1, 0, 1), ends, ends.env["r"] + 1))
    grid 10: shift 1, shift 1
    """
    if rule.table and rule.placement is None:
        rows = samples.by_step(*rule.steps)
        return replace(
            rule,
            table=tuple(
                in_steps(each, part, values[chosen]) for each, (chosen, part) in zip(rule.table, rows, strict=True)
            ),
        )
    if rule.topology == samples.topology or not rule.axes or not values.size:
        return rule
    found = _ranked(samples, values, samples.topology, simply=True)
    stepped = found is not None and all(axis.kind == "shift" and not axis.by.terms for axis in found.axes)
    return found if found is not None and stepped else rule


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
    # As far as the shortest side is long, or further: what the longest one shows.
    longest = int(np.argmax(side))
    for by in (float(forward[longest]), float(forward[longest] - side[longest])):
        if abs(by) >= side.min() and np.all(np.mod(by - forward, side) == 0):
            return Axis("shift", Expression(by))
    # Half round a side that grows, before a step along a grid that happens to have a short side there.
    for half in (0.5, -0.5):
        if np.ptp(side) and np.all(forward == np.mod(np.trunc(half * side), side)):
            return Axis("shift", Expression(0.0, ((half, f"P{dimension}" if dimensions > 1 else "n"),)))
    return None


def _axis(samples: Samples, topology: str, peer: Floats, dimension: int, dimensions: int) -> Axis | None:
    env, rows = samples.grid(topology), samples.rows(topology, False)
    own, side = env[f"x{dimension}"], env[f"P{dimension}"]
    forward = np.mod(peer - own, side)

    def stepped(moved: Floats) -> Expression | None:
        """A distance round the side, in rows that do not tell processes apart."""
        return _stepped(rows, moved, moved - side, side) if samples.one_for_all(moved) else None

    if samples.one_for_all(forward):
        shift = _stepped(rows, forward, np.where(forward * 2 > side, forward - side, forward), side)
        if shift is not None:
            return Axis("shift", shift)
    bits = np.bitwise_xor(own.astype(np.int64), peer.astype(np.int64)).astype(np.float64)
    turned = rows.fitted(bits) if samples.one_for_all(bits) else None
    if turned is not None and _stays(turned, own, side, env):
        return Axis("bits", turned)
    if (folded := _folded(samples, rows, own, peer, side)) is not None:
        return Axis("folded", folded)
    place = stepped(peer) or _owner(samples.loops, env, peer, dimension, dimensions)
    if place is not None:
        return Axis("place", place)
    if (mirror := stepped(np.mod(peer - (side - 1 - own), side))) is not None:
        return Axis("mirror", mirror)
    for other in range(dimensions):
        if other != dimension and (by := stepped(np.mod(peer - env[f"x{other}"], side))) is not None:
            return Axis("other", by, other)
    # Partners that move by the coordinate in another dimension, as in the skewing of Cannon's algorithm.
    skewed = samples.rows(topology, True).modular(forward, [f"P{dimension}"])
    if skewed is not None:
        return Axis("shift", skewed)
    return None


def _owner(loops: int, env: Env, peer: Floats, dimension: int, dimensions: int) -> Expression | None:
    """Who has the block that a step of a loop is about, where steps are dealt out along a side one block after another.

    None where none of the runs deals more than one step to a process.
    """
    side = f"P{dimension}" if dimensions > 1 else "n"
    for loop in reversed(range(loops)):
        found = Expression(0.0, ((1.0, f"i{loop}*1/c{loop}*{side}"),))
        if np.any(env[f"c{loop}"] > env[side]) and np.array_equal(found(env), peer):
            return found
    return None


def _folded(samples: Samples, rows: Rows, own: Floats, peer: Floats, side: Floats) -> Expression | None:
    """Which bits are exchanged among those that are left of pairs; None where others take part, or no rule holds."""
    left = (side - power_in(side)).astype(np.int64)
    both = [each.astype(np.int64) for each in (own, peer)]
    if not left.any() or any(np.any((each < 2 * left) & (each % 2 == 0)) for each in both):
        return None
    one, other = (place_in_fold(each, left) for each in both)
    exchanged = (one ^ other).astype(np.float64)
    return rows.fitted(exchanged) if samples.one_for_all(exchanged) else None


def _stays(expression: Expression, own: Floats, side: Floats, env: Env) -> bool:
    made = np.bitwise_xor(own.astype(np.int64), expression(env).astype(np.int64))
    return bool(np.all(made < side))


def _stepped(rows: Rows, forward: Floats, short: Floats, side: Floats) -> Expression | None:
    """A distance round a side: as it is, the other way round, or by an expression modulo the side."""
    for values in (short, forward, forward - side):
        if np.all(values == values[0]):
            return Expression(float(values[0]))
    # The largest power of two below n, backwards, is a line in half of it forwards where n is one less than twice that.
    for search in (rows.multiple, rows.line):
        for values in (short, forward, forward - side):
            if (found := search(values)) is not None:
                return found
    return rows.stepped(forward, side)
