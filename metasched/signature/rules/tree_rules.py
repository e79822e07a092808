"""Rules of binomial trees: partners a power of two away, and how many of them a process has."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.expressions import Expression, atom_value
from metasched.signature.rules.attributes import Attribute, Axis
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
