"""The processes of each role in the runs that an application was learned from, and what rules say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import Attribute, with_grid
from metasched.signature.rules.roles import Cell, cells


def members_of(application: Application) -> dict[Cell, dict[int, list[int]]]:
    """The ranks of each role in each run that has it."""
    found: dict[Cell, dict[int, list[int]]] = {cell: {} for cell in application.roles}
    for n in application.learned:
        for rank, cell in enumerate(cells(application.features, application.topology, n)):
            if cell in found:
                found[cell].setdefault(n, []).append(rank)
    return found


def equal_in(one: Attribute, other: Attribute, application: Application, ranks: Mapping[int, Sequence[int]]) -> bool:
    """Whether two rules say the same in all runs; False where one depends on the step of a loop."""
    for n, own in ranks.items():
        named = with_grid(
            {"r": np.array(own, dtype=np.float64), "n": np.full(1, float(n))}, TOPOLOGIES[application.topology](n)
        )
        try:
            if not np.all(one(named, n) == other(named, n)):
                return False
        except KeyError:
            return False
    return True
