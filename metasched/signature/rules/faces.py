"""Shares that are faces of blocks of data: along which sides of a grid, and of which lengths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from metasched.arrays import Flags
from metasched.signature.equations.expressions import Expression, atom_value
from metasched.signature.equations.nearness import ROUNDING
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.attributes import STEPS, Attribute, with_grid
from metasched.signature.rules.samples import Samples
from metasched.signature.rules.shares import QUOTIENT, ROUNDED, Share, product_of, share_of, shares_of

#: Largest divisor of a product of lengths that the program shares out elsewhere too.
MOST_DIVIDED = 16


def off_the_way(
    rule: Attribute, peer: Attribute | None, samples: Samples, made: Flags, otherwise: Sequence[int] = ()
) -> Attribute:
    """A share along other sides than the one that a message goes along, where the runs do not tell them apart.

    What neighbours exchange is the face between them: across the direction that it is sent in.

    Parameters
    ----------
    rule : of a number of the message.
    peer : the rule of its partner.
    samples : the rows.
    made : which of them are messages; sides that are the same at all counts of these are not distinguished.
    otherwise : these counts, where none is.
    """
    if peer is None:
        return rule
    counts = np.unique(samples.counts[made]).tolist() or otherwise
    stepped = peer if peer.table and peer.placement is None else rule
    if stepped.table and stepped.placement is None:
        own, ways = (each.table if each.table and each.steps == stepped.steps else (each,) * len(stepped.table)
                     for each in (rule, peer))  # fmt: skip
        rows = samples.by_step(*stepped.steps)
        table = tuple(
            off_the_way(share, way, part, made[chosen], counts)
            for share, way, (chosen, part) in zip(own, ways, rows, strict=True)
        )
        if table == own:
            return rule
        return replace(stepped, table=table) if len({*table}) > 1 else table[0]
    return _across(rule, peer, rule.topology or samples.topology, counts)


def _across(rule: Attribute, peer: Attribute, topology: str, counts: Sequence[int]) -> Attribute:
    """A share without table along other sides than the message goes, where these have it as well at some counts."""
    last = len(TOPOLOGIES[topology](counts[0])) - 1
    along = {place for place, axis in enumerate(peer.axes)
             if axis.kind in STEPS and (axis.by.terms or axis.by.constant)}  # fmt: skip
    ways = along if peer.topology == topology else set()
    if peer.topology == "line" and any(not axis.by.terms and abs(axis.by.constant) == 1 for axis in peer.axes):
        # The next rank is the neighbour along the last side of every grid.
        ways = {last for _ in along}
    known = rule.expression
    if not ways or known is None or len(known.terms) != 1:
        return rule
    ((slope, atom),), constant = known.terms, known.constant
    shares = shares_of(atom)
    crossed, edges = ([each for each in shares if (each.side in ways) == across] for across in (True, False))
    sides = [TOPOLOGIES[topology](n) for n in counts]
    grids = [with_grid({"r": np.zeros(1)}, each) for each in sides]
    own, others = {each.side for each in shares}, [side for side in range(last + 1) if side not in ways]
    if not shares or len(own) < len(shares) or own == {*others}:
        return rule
    # All of the face, or the edge to a corner, or else one side in place of another.
    values = [slope * float(atom_value(atom, grid)[0]) for grid in grids]
    for like in dict.fromkeys(((crossed or shares)[0], Share(QUOTIENT, 0))):
        face = product_of([like.along(side) for side in others])
        made = [float(atom_value(face, grid)[0]) if face else 0.0 for grid in grids]
        each_has = np.array([value / each if each else 0.0 for value, each in zip(values, made, strict=True)])
        whole = float(np.round(each_has[0]))
        if whole and np.all(np.abs(each_has - whole) <= ROUNDING * whole):
            return Attribute(rule.topology, expression=Expression(constant, ((whole, face),)))
    if len(ways) > 1:
        # Along the sides that the message does not cross: of others the runs show one length.
        steady = all(each[way] == sides[0][way] for each in sides for way in ways & own)
        if not edges or not crossed or not steady:
            return rule
        slope *= float(atom_value(product_of(crossed), grids[0])[0])
        return Attribute(rule.topology, expression=Expression(constant, ((slope, product_of(edges)),)))
    (way,) = ways
    free = [side for side in others if side not in own and all(each[side] == each[way] for each in sides)]
    if way not in own or not free:
        return rule
    turned = product_of([each.along(free[0]) if each.side == way else each for each in shares])
    return Attribute(rule.topology, expression=Expression(constant, ((slope, turned),)))


def shared_lengths(rules: Iterable[Attribute]) -> dict[str, dict[int, set[int]]]:
    """The lengths that rules share out along each side of a grid, where a rule has several: edges of its data."""
    found: dict[str, dict[int, set[int]]] = {}
    for rule in (part for each in rules for part in (each, *each.table)):
        for _, atom in rule.expression.terms if rule.expression is not None else ():
            shares = shares_of(atom)
            if len(shares) > 1 and all(share.length for share in shares):
                for share in shares:
                    found.setdefault(rule.topology, {}).setdefault(share.side, set()).add(share.length)
    return found


def dealt_lengths(rules: Iterable[Attribute]) -> dict[str, set[tuple[int, Share]]]:
    """The lengths that do not come out even in all runs, by topology: how many bytes a piece has, and the share."""
    found: dict[str, set[tuple[int, Share]]] = {}
    for rule in (part for each in rules for part in each.parts()):
        piece, share = share_of(rule) or (0.0, None)
        if share is not None and share.kind != QUOTIENT and piece == int(piece) > 0:
            found.setdefault(rule.topology, set()).add((int(piece), share))
    return found


def dealt_alike(
    rule: Attribute, dealt: Mapping[str, Iterable[tuple[int, Share]]], counts: Sequence[int], roles: str
) -> Attribute:
    """A share along one side that came out even in all runs, dealt out as lengths are that did not.

    A program that shares out the rows of its data in one way does so with the columns. Of the same length, whatever a
    piece of it has; of other ones, in as large pieces.

    Parameters
    ----------
    rule : of a number that is no rank.
    dealt : of :func:`dealt_lengths`, by topology.
    counts : where both are the same.
    roles : the topology that rules without one of their own speak of.

    Examples
    --------
    >>> known = {"grid 01": {(8, Share("block", 0, 1000))}}
    >>> even = Attribute("grid 01", expression=Expression(0.0, ((24000.0, "1/P1"),)))
    >>> print(dealt_alike(even, known, [4, 8, 16], "line"))
    24 block1:1000
    """
    if rule.table:
        return replace(rule, table=tuple(dealt_alike(each, dealt, counts, roles) for each in rule.table))
    whole, even = share_of(rule) or (0.0, None)
    if even is None or even.kind != QUOTIENT or whole != int(whole):
        return rule
    sides = [TOPOLOGIES[rule.topology or roles](n)[even.side] for n in counts]
    known = dealt.get(rule.topology, ())
    for each, share in sorted(known, key=lambda known: (whole % known[1].length > 0, known[1].kind, known[0])):
        piece = whole // share.length if whole % share.length == 0 else each
        if whole % piece == 0 and all(whole // piece % many == 0 for many in sides):
            alike = Share(share.kind, even.side, int(whole // piece))
            return replace(rule, expression=Expression(0.0, ((float(piece), str(alike)),)))
    return rule


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
    _, share = share_of(rule) or (0.0, None)
    of_all = rule.product is not None and rule.product[1] == "1/n"
    if not of_all and (share is None or share.kind == QUOTIENT):
        return rule
    grid = {n: with_grid({"r": np.zeros(1), "n": np.full(1, float(n))}, TOPOLOGIES[roles](n)) for n in counts}
    values = [float(rule(grid[n], n)[0]) for n in counts]
    for topology, sides in lengths.items():
        if any(len(TOPOLOGIES[topology or roles](n)) != len(sides) for n in counts):
            continue
        for edges in product(*(sorted(sides[side]) for side in sorted(sides))):
            shares = product_of(Share(ROUNDED, side, edge) for side, edge in zip(sorted(sides), edges, strict=True))
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
