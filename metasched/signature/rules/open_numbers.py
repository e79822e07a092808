"""Numbers whose rules have as many terms as few runs can tell: what else the same runs would bear out.

A rule of one term is borne out by three runs. With two terms, or one and a constant, many rules hold in them by chance,
above all where the sides of a grid have few lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.expression_search import MOST_PAIRED, Rows, atoms
from metasched.signature.equations.expressions import BY_POWERS, Expression, atom_value
from metasched.signature.equations.nearness import exact, tidy
from metasched.signature.equations.share_search import LEVEL_SHARES
from metasched.signature.equations.topologies import TOPOLOGIES, dimensions_of
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import Attribute, with_grid
from metasched.signature.rules.shares import Share
from metasched.signature.traces.actions import AMOUNTS

#: How many terms of a rule three runs bear out.
CERTAIN = 1
#: What rounding may leave of a difference.
NEAR = 1e-7


def uncertain_numbers(application: Application) -> set[tuple[str, Attribute]]:
    """Numbers that runs may bear out by chance: of two terms, or of a side of a grid in which no messages go.

    Returns
    -------
    Those that follow from how many processes there are, each with the name of its action, on a grid that it states.
    """
    gone = {part.topology for each in application.attributes() for part in each.parts() if part.axes}
    found: set[tuple[str, Attribute]] = set()
    for part in application.each():
        for role in part.roles.values():
            for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
                shape = part.shapes[leaf.shape]
                for column, number in enumerate(rule.numbers if shape.name not in AMOUNTS else ()):
                    if column in shape.peers or column == shape.root:
                        continue
                    for one in number.parts():
                        stated = _stated(one, part.topology)
                        terms = _terms(stated, application.learned)
                        if terms > CERTAIN or (terms and stated.topology not in gone and _side(stated)):
                            found.add((shape.name, stated))
    return found


def passes_on(application: Application) -> bool:
    """Whether messages go as far as powers of two, as where processes pass on what they hold in rounds."""
    atoms_of = (
        atom
        for each in application.attributes()
        for part in each.parts()
        for axis in part.axes
        for _, atom in axis.by.terms
    )
    return any(atom.startswith(("2^", "power(")) for atom in atoms_of)


def to_itself(application: Application, count: int) -> bool:
    """Whether all processes send as far as the largest power of two, where that is all round a number of them."""
    return 2 ** (count.bit_length() - 1) == count and any(
        part.topology == "line" and axis.kind == "shift" and [atom for _, atom in axis.by.terms] == ["power(n)"]
        for each in application.attributes() if not each.placement
        for part in each.parts()
        for axis in part.axes
    )  # fmt: skip


def left_over(rule: Attribute, learned: Sequence[int]) -> Attribute | None:
    """A number that follows how many processes there are, as what the last round leaves of them; None where it differs.

    Examples
    --------
    >>> print(left_over(Attribute(expression=Expression(0.0, ((8.0, "n"),))), [12, 24, 48]))
    24 left(n)
    """
    known = rule.expression
    if known is None or known.names != {"n"} or any("left" in atom for _, atom in known.terms):
        return None
    env = {"n": np.array(learned, dtype=np.float64)}
    values, left = known(env), atom_value("left(n)", env)
    slope = float(values[-1] / left[-1])
    same = slope > 0 and slope == round(slope) and np.array_equal(values, slope * left)
    return replace(rule, expression=Expression(0.0, ((slope, "left(n)"),))) if same else None


def rounds_along(turns: Attribute, grids: Iterable[str]) -> list[Attribute]:
    """The rounds along each side of grids, for a loop that runs a part of the rounds of all processes.

    Examples
    --------
    >>> half = Attribute(expression=Expression(0.0, ((0.5, "rounds(n)"),)))
    >>> [str(each) for each in rounds_along(half, ["grid 01", "line"])]
    ['rounds(P0)', 'rounds(P1)']
    """
    slope, atom = turns.product or (1.0, "")
    if slope == 1.0 or atom not in ("rounds(n)", "doublings(n)", "log2(n)"):
        return []
    function = "rounds" if atom == "log2(n)" else atom.partition("(")[0]
    return [
        Attribute(grid, expression=Expression(0.0, ((1.0, f"{function}(P{side})"),)))
        for grid in sorted(grids)
        if dimensions_of(grid) > 1
        for side in range(dimensions_of(grid))
    ]


def _stated(rule: Attribute, topology: str) -> Attribute:
    """A rule that says which grid it speaks of."""
    return rule if rule.topology else replace(rule, topology=topology)


def _terms(rule: Attribute, learned: Sequence[int]) -> int:
    """How many numbers of a rule were chosen so that it holds; none where it does not follow from n and sides alone."""
    known = rule.expression
    if known is None or known.modulus or not known.terms:
        return 0
    factors = [factor for _, atom in known.terms for factor in atom.split("*")]
    shares = [share for share in map(Share.of, factors) if share and share.kind in LEVEL_SHARES]
    places = {f"x{share.side}" for share in shares}
    if any(name[0] not in "nP" for name in known.names - places):
        return 0
    sides = [TOPOLOGIES[rule.topology](n) for n in learned]
    # The length of what does not come out even was chosen, too.
    uneven = any(share.length % each[share.side] for share in shares for each in sides)
    return len(known.terms) + (known.constant != 0) + uneven


def _side(rule: Attribute) -> str:
    """The one side of its grid that a rule depends on; empty where it depends on none or several."""
    names = {name for each in rule.expressions for name in each.names if name[0] == "P"}
    return names.pop() if len(names) == 1 else ""


def other_numbers(rule: Attribute, learned: Sequence[int], grids: Iterable[str]) -> Iterator[Attribute]:
    """Other rules of as many terms that come to the same in all runs, simplest first: of one, those of other sides.

    Parameters
    ----------
    rule : that states its grid, in n and its sides.
    learned : the numbers of processes of the runs.
    grids : whose sides other rules may depend on.
    """
    values = np.array([float(rule({"r": np.zeros(1), "n": np.full(1, float(n))}, n)[0]) for n in learned])
    for topology in grids:
        sides = [TOPOLOGIES[topology](n) for n in learned]
        if not all(sides) or np.ptp(values) == 0:
            continue
        each = [with_grid({"r": np.zeros(1), "n": np.full(1, float(n))}, of)
                for n, of in zip(learned, sides, strict=True)]  # fmt: skip
        sides_of = [name for name in each[0] if name[0] == "P"]
        if rule.expression is not None and _terms(rule, learned) == CERTAIN:
            for side in sides_of:
                terms = tuple((slope, atom.replace(_side(rule), side)) for slope, atom in rule.expression.terms)
                made = Attribute(topology, expression=replace(rule.expression, terms=terms))
                if all(float(made(env, n)[0]) == value for env, n, value in zip(each, learned, values, strict=True)):
                    yield made
            continue
        # Of what programs send in rounds, and in tiles; searches that tried these, too, would find them by chance.
        tried = (*filter(_divides, atoms(dimensions_of(topology), 0, False, False)[:MOST_PAIRED]),
                 "1/n*log2(n)", *(f"1/{side}*1/{side}" for side in sides_of))  # fmt: skip
        rows = Rows({name: np.concatenate([env[name] for env in each]) for name in each[0]}, tried)
        names, columns = ["", *rows.names], np.concatenate([np.ones((1, values.size)), rows.matrix])
        for at, beside in _near(columns, values):
            one, other = names[at], names[beside]
            if (found := _both(columns[at], columns[beside], values)) is None:
                continue
            slope, another = found
            terms = tuple((each, name) for each, name in ((slope, one), (another, other)) if each and name)
            made = Attribute(topology, expression=Expression(0.0 if one else slope, terms))
            if str(made) != str(rule):
                yield made


def _divides(atom: str) -> bool:
    """Whether amounts often follow an atom: no powers of two, and no products of sides, which all but are n."""
    return re.fullmatch(r"P\d\*P\d", atom) is None and atom.partition("(")[0] not in BY_POWERS


def _near(columns: Floats, values: Floats) -> list[tuple[int, int]]:
    """The pairs of columns of which values are a sum of multiples, but for what rounding may hide."""
    lengths = np.linalg.norm(columns, axis=1)
    scaled, wanted = columns / lengths[:, None], values / np.linalg.norm(values)
    one, other = np.triu_indices(len(columns), 1)
    together, along = np.sum(scaled[one] * scaled[other], axis=1), scaled @ wanted
    apart = 1.0 - together**2
    # The share of the values that lies in the plane of both columns.
    within = along[one] ** 2 + along[other] ** 2 - 2 * together * along[one] * along[other]
    good = (apart > NEAR) & (np.abs(within - apart) <= NEAR * apart)
    return [*zip(one[good].tolist(), other[good].tolist(), strict=True)]


def _both(first: Floats, second: Floats, values: Floats) -> tuple[float, float] | None:
    """The whole multiples of two columns whose sum values are, none below 0; None where there are none."""
    columns = np.stack([first, second], axis=1)
    if np.linalg.matrix_rank(columns) < 2:
        return None
    multiples = np.linalg.lstsq(columns, values, rcond=None)[0]
    # What rounding leaves of a column that is not asked for is no term.
    multiples[np.abs(multiples) * np.abs(columns).max(axis=0) < NEAR * np.abs(values).max()] = 0.0
    slope, other = map(tidy, multiples.tolist())
    sound = slope >= 0 and other >= 0 and slope == round(slope) and other == round(other)
    return (slope, other) if sound and exact(columns @ (slope, other), values, 0.0) else None
