"""Which calls of a role's program a process makes: those whose partner exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.signature.equations.open_partners import NOBODY, OPEN_KINDS
from metasched.signature.rules.application import Application, Role, Rule
from metasched.signature.rules.attributes import Attribute, with_grid
from metasched.signature.traces.message_order import opened

#: The requests that are open; and the same of a call that is only made where there are some.
OPEN, OPEN_IF_ANY = "q", "some(q)"


def presence(
    application: Application, role: Role, ranks: Ints, count: int, shapes: Ints, tables: Mapping[int, Ints],
    sides: tuple[int, ...],
) -> Iterator[tuple[Ints, Flags, Floats]]:  # fmt: skip
    """Processes of a role that make the same calls, which of all calls these are, and the requests open before each.

    Parameters
    ----------
    ranks, count : the processes of the role, and how many there are of all.
    shapes : of each call of the program.
    tables : of each action of the program the positions of its calls, the steps and the counts of loops.
    sides : of the application's grid.
    """
    asked: list[tuple[Ints, Ints]] = []
    columns: list[Flags] = []
    if_any = np.zeros(shapes.size, dtype=np.bool_)
    for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
        table = tables.get(leaf.number)
        if table is None:
            continue
        if_any[table[:, 0]] = _if_any(rule)
        for attribute in (each for each in rule.numbers if _leads_out(each)):
            # Few of the steps make a difference to the partner.
            depth = (table.shape[1] - 1) // 2
            names = {name for part in attribute.parts() for each in part.expressions for name in each.names}
            names |= {f"i{part.loop}" for part in attribute.parts() if part.table}
            used = [1 + place for place in range(2 * depth) if f"{'ic'[place >= depth]}{place % depth}" in names]
            _, first, which = np.unique(table[:, used], axis=0, return_index=True, return_inverse=True)
            env = {"n": np.full((1, 1), float(count)), "r": ranks[:, None].astype(np.float64)}
            for place in range(depth):
                env[f"i{place}"] = table[None, first, 1 + place].astype(np.float64)
                env[f"c{place}"] = table[None, first, 1 + depth + place].astype(np.float64)
            partners = attribute(with_grid(env, sides), count)
            start = sum(each.shape[1] for each in columns)
            columns.append(np.broadcast_to(partners == NOBODY, (ranks.size, first.size)))
            asked.append((table[:, 0], which.reshape(-1) + start))
    if not columns and not if_any.any():
        yield ranks, np.ones(shapes.size, dtype=np.bool_), np.zeros(shapes.size)
        return
    missing = np.concatenate([np.zeros((ranks.size, 0), dtype=np.bool_), *columns], axis=1)
    kinds, alike = np.unique(missing, axis=0, return_inverse=True)
    names_of = [each.name.lower() for each in application.shapes]
    opens = np.array([opened(name) for name in names_of])[shapes]
    ends = np.flatnonzero(np.array([name == "waitall" for name in names_of])[shapes])
    for kind, lacks in enumerate(kinds):
        there = np.ones(shapes.size, dtype=np.bool_)
        for positions, which in asked:
            there[positions] &= ~lacks[which]
        started = np.cumsum(opens * there)
        requests = np.zeros(shapes.size)
        requests[ends] = np.diff(started[ends], prepend=0)
        there[ends] &= ~if_any[ends] | (requests[ends] > 0)
        yield ranks[alike.reshape(-1) == kind], there, requests


def _leads_out(attribute: Attribute) -> bool:
    """Whether a rule of partners has none for some processes."""
    return any(axis.kind in OPEN_KINDS for part in attribute.parts() for axis in part.axes)


def _if_any(rule: Rule) -> bool:
    """Whether a call is only made where requests are open."""
    return any(
        atom == OPEN_IF_ANY for each in rule.numbers if each.expression is not None for _, atom in each.expression.terms
    )
