"""The rule of a number for all its rows or, where there is none, for each step of a short loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.expressions import Expression
from metasched.signature.rules.attributes import UNROLLED, Attribute
from metasched.signature.rules.number_rules import number
from metasched.signature.rules.rank_rules import rank
from metasched.signature.rules.samples import Samples

#: Loops up to this many steps are neighbours in a list before they are steps that follow a rule.
FEW = 26
#: Finds one rule for rows and their values.
OneRule = Callable[[Samples, Floats], Attribute | None]


def attribute(
    samples: Samples,
    values: Floats,
    topologies: Sequence[str],
    peer: bool,
    tolerance: float = 0.0,
    grids: Sequence[str] = (),
    known: Sequence[Attribute] = (),
    beside: str = "",
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
    beside : the grid in which all partners are neighbours, if any; a step there comes before all but one on the line.
    """

    def believed(of: Samples, wanted: Floats) -> Attribute | None:
        return next((each for each in known if of.holds(each, wanted, tolerance)), None)

    def one_rule(of: Samples, wanted: Floats) -> Attribute | None:
        if (found := believed(of, wanted)) is not None:
            return found
        return rank(of, wanted, topologies) if peer else number(of, wanted, grids, tolerance)

    def quick_rule(of: Samples, wanted: Floats) -> Attribute | None:
        return rank(of, wanted, topologies[:2]) if peer else number(of, wanted, grids[:1], tolerance)

    def neighbour(of: Samples, wanted: Floats, among: Sequence[str]) -> Attribute | None:
        for topology in ("line", beside) if beside in among else ():
            found = rank(of, wanted, [topology], only_simple=True)
            if found is not None and found.to_neighbour:
                return found
        return None

    def simple_rule(of: Samples, wanted: Floats, among: Sequence[str], deeper: int = 2) -> Attribute | None:
        found = believed(of, wanted) or neighbour(of, wanted, among) or rank(of, wanted, among, only_simple=True)
        if found is not None or not deeper:
            return found
        return _by_step(of, wanted, lambda part, some: simple_rule(part, some, among, deeper - 1), few=True)

    # The neighbours of a grid stand in loops of a few steps, each with a direction of its own, in one grid if possible.
    found = simple_rule(samples, values, topologies) if peer else None
    if found is not None and len({each.topology for each in found.parts() if each.axes} - {"line"}) > 1:
        alone = (simple_rule(samples, values, ("line", topology)) for topology in topologies)
        found = next((each for each in alone if each is not None), found)
    if found is not None:
        return found
    found = one_rule(samples, values) or _by_step(samples, values, quick_rule, few=False)
    if found is None and not peer:
        # Faces along two sides, on the levels of a multigrid method, are steps of a short loop within another.
        found = _by_step(samples, values, lambda of, some: _by_step(of, some, quick_rule, few=True), few=True)
    return found


def constants(samples: Samples, values: Floats, deeper: int = 2) -> Attribute | None:
    """The same numbers at all counts and in all processes, one for each step of short loops; None where they differ."""
    if np.all(values == values[0]):
        return Attribute(expression=Expression(float(values[0])))
    if not deeper:
        return None
    return _by_step(samples, values, lambda of, some: constants(of, some, deeper - 1), few=True)


def like_table(of: Attribute, samples: Samples, values: Floats, rule: OneRule) -> Attribute | None:
    """A rule for each entry of another rule's table, such as for each way to a neighbour; None where one has none."""
    if not of.table or of.placement is not None:
        return rule(samples, values) if values.size else None
    rows = zip(of.table, samples.by_step(*of.steps), strict=True)
    found = [like_table(each, part, values[chosen], rule) for each, (chosen, part) in rows]
    table = tuple(each for each in found if each is not None)
    if len(table) < len(found):
        return None
    return replace(of, table=table) if len({*table}) > 1 else table[0]


def _by_step(samples: Samples, values: Floats, rule: OneRule, few: bool) -> Attribute | None:
    """A rule for every second, third or fourth step of a loop, for each of one length, or for its ends.

    Of ``few`` steps each has its own.
    """
    for loop in reversed(range(samples.loops)):
        steps, counts = samples.env[f"i{loop}"], samples.env[f"c{loop}"]
        if not steps.any():
            continue
        lengths = [int(counts[0])] if np.all(counts == counts[0]) and 1 < counts[0] <= UNROLLED else []
        lengths = [each for each in lengths if each <= FEW] if few else [2, 3, 4, *lengths]
        # Calls that differ in their numbers only are one in a loop of several times as many steps as there are rounds.
        tried = [
            (turn, length)
            for length in dict.fromkeys(lengths)
            for turn in ("steps", "rounds")
            if length <= steps.max() + 1 and (turn == "steps" or (np.ptp(counts) and not np.mod(counts, length).any()))
        ]
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
