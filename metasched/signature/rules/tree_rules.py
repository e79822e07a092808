"""Rules of binomial trees: partners a power of two away, and how many of them a process has."""

from __future__ import annotations

import math

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.signature.equations.expressions import LARGEST_NUMBER, Expression, atom_value
from metasched.signature.equations.share_search import roundness
from metasched.signature.rules.attributes import Attribute, Axis
from metasched.signature.rules.number_rules import number
from metasched.signature.rules.samples import Samples


def children(samples: Samples, values: Floats) -> Attribute | None:
    """How often a loop runs that visits the children of a process; None where it visits others.

    Examples
    --------
    >>> rows = Samples(np.full(6, 6), {"r": np.arange(6.0)}, 0, "line")
    >>> print(children(rows, np.array([3.0, 0.0, 1.0, 0.0, 1.0, 0.0])))
    under(r)
    """
    for atom in ("under(r)", "over(r)"):
        if np.array_equal(np.broadcast_to(atom_value(atom, samples.env), values.shape), values):
            return Attribute(expression=Expression(0.0, ((1.0, atom),)))
    return None


def by_powers(samples: Samples, values: Floats) -> Attribute | None:
    """A number that doubles, or halves down to the same, with each step of a loop; None for others.

    Examples
    --------
    >>> rows = Samples(np.full(3, 6), {"r": np.zeros(3), "i0": np.arange(3.0), "c0": np.full(3, 3.0)}, 1, "line")
    >>> print(by_powers(rows, np.array([-4.0, -2.0, -1.0])))
    -0.5 2^c0*1/2^i0
    """
    steps = [atom for loop in reversed(range(samples.loops)) for atom in (f"2^i{loop}", f"2^c{loop}*1/2^i{loop}")]
    for atom in steps if np.ptp(values) else ():
        of_each = values / atom_value(atom, samples.env)
        if np.all(of_each == of_each[0]):
            return Attribute(expression=Expression(0.0, ((float(of_each[0]), atom),)))
    return None


def of_subtrees(samples: Samples, values: Floats, partners: Floats) -> Attribute | None:
    """What a message holds for all processes below a process of a tree, or its partner; None for others.

    It is a block for each of them, which may be a share of something that is divided among all processes.

    Parameters
    ----------
    samples, values : the rows.
    partners : of each row the other end of the message.

    Examples
    --------
    >>> rows = Samples(np.full(5, 6), {"r": np.arange(1.0, 6.0)}, 0, "line")
    >>> print(of_subtrees(rows, np.array([8.0, 16.0, 8.0, 16.0, 8.0]), np.zeros(5)))
    8 tree(r)
    """
    # What is always as long is no share that happens to divide all numbers of processes.
    if not np.ptp(values):
        return None
    env = {**samples.env, "p": partners}
    for below in ("tree(r)", "tree(p)"):
        many = np.broadcast_to(atom_value(below, env), values.shape)
        if not np.ptp(many) or np.any(np.mod(values, np.maximum(many, 1.0))):
            continue
        blocks = values / np.maximum(many, 1.0)
        if any(np.ptp(blocks[samples.counts == n]) for n in samples.distinct):
            continue
        each = np.array([blocks[samples.counts == n][0] for n in samples.distinct])
        found = _share(np.array(samples.distinct), each.astype(np.int64))
        if found is None:
            rows = Samples(np.array(samples.distinct), {"r": np.zeros(each.size)}, 0, samples.topology)
            other = number(rows, each)
            found = other.expression if other is not None else None
        if found is None or found.modulus:
            continue
        terms = [*found.terms, *([(found.constant, "")] if found.constant else [])]
        of_all = tuple((slope, f"{atom}*{below}".lstrip("*")) for slope, atom in terms)
        return Attribute(expression=Expression(0.0, of_all))
    return None


def _share(counts: Ints, blocks: Ints) -> Expression | None:
    """The share that each process has of something; None where blocks are no such shares.

    >>> print(_share(np.array([5, 11, 23]), np.array([19200, 8727, 4173])))
    floor0:96000
    """
    # What comes out even in all runs tells nothing of the pieces.
    even = bool(np.all(blocks * counts == blocks[0] * counts[0]))
    piece = 1 if even else math.gcd(LARGEST_NUMBER, *blocks.tolist())
    totals = range(int((blocks // piece * counts).max()), int(((blocks // piece + 1) * counts).min()))
    if not totals or np.ptp(blocks) == 0:
        return None
    return Expression(0.0, ((float(piece), f"floor0:{totals[0] if even else min(totals, key=roundness)}"),))


def parent_or_child(samples: Samples, values: Floats) -> Attribute | None:
    """The rule of a partner that is the parent of a process, or its child at a step of a loop; None for others.

    Examples
    --------
    >>> rows = Samples(np.full(5, 6), {"r": np.arange(1.0, 6.0)}, 0, "line")
    >>> print(parent_or_child(rows, np.array([0.0, 0.0, 2.0, 0.0, 4.0])))
    line: shift -1 low(r)
    """
    steps = [(f"2^i{loop}", f"2^c{loop}*1/2^i{loop}") for loop in reversed(range(samples.loops))]
    up, down = [(1.0, each) for each, _ in steps], [(0.5, each) for _, each in steps]
    to_children = [(slope, f"{first}{step}") for first in ("", "above(r)*") for slope, step in (*up, *down)]
    for slope, atom in ((-1.0, "low(r)"), (-0.5, "above(r)"), *to_children):
        if np.array_equal(samples.env["r"] + slope * atom_value(atom, samples.env), values):
            return Attribute("line", (Axis("shift", Expression(0.0, ((slope, atom),))),))
    return None
