"""The samples of one number of an action in all runs, on which its rules are searched and checked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.signature.equations.expression_search import Rows, atoms
from metasched.signature.equations.expressions import Env
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates
from metasched.signature.rules.attributes import Attribute, turned, with_grid

#: Rows of each count on which a rule is tried first.
PROBED = 17


class Samples:
    """The samples of one action's numbers at all counts, on which rules are searched and checked.

    Parameters
    ----------
    counts : array of shape (rows,), the number of processes of each row.
    env : arrays of shape (rows,) by name: ``r``, the steps and counts of loops, ``j`` and ``m`` in lists.
    loops : how many loops are around the action.
    topology : the grid that stands for ``P`` and ``x`` in expressions.
    """

    def __init__(self, counts: Ints, env: Env, loops: int, topology: str) -> None:
        self.counts, self.env, self.loops, self.topology = counts, dict(env), loops, topology
        self.env["n"] = counts.astype(np.float64)
        self._rows: dict[tuple[str, bool], Rows] = {}
        self._grids: dict[str, dict[str, Floats]] = {}
        self._steps: dict[tuple[int, str, int], dict[int, tuple[Flags, Samples]]] = {}
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

    def fingerprint(self, values: Floats) -> bytes:
        """A hash of the rows and values, equal for equal rows and values."""
        names = sorted(self.env)
        made = blake2b(repr((self.topology, self.loops, names)).encode(), digest_size=32)
        for each in (*(self.env[name] for name in names), values):
            made.update(np.asarray(each, dtype=np.float64).tobytes())
        return made.digest()

    def alone(self) -> Flags:
        """A mask, shape (rows,), of the rows of the first process of each count."""
        ranks = self.env["r"]
        first = {n: ranks[self.counts == n].min() for n in self.distinct}
        return np.asarray(ranks == np.array([first[n] for n in self.counts.tolist()]))

    @cached_property
    def _turns(self) -> tuple[Ints, Ints]:
        """The first row of each turn at each count, whatever the process, and the turn of each row."""
        turns = np.stack([values for name, values in self.env.items() if name != "r"])
        _, first, which = np.unique(turns, axis=1, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    def one_for_all(self, values: Floats) -> bool:
        """Whether all processes of a count have the same value at each turn, as rules that do not ask for them give."""
        first, which = self._turns
        return bool(np.all(values[first][which] == values))

    def part(self, chosen: Flags, env: Env | None = None) -> Samples:
        """Some of the rows, perhaps with other names."""
        env = {name: values[chosen] for name, values in (env or self.env).items()}
        return Samples(self.counts[chosen], env, self.loops, self.topology)

    @cached_property
    def probe(self) -> tuple[Flags, Samples]:
        """A few rows of each count, on which most rules that do not hold fail: a mask, shape (rows,), and the rows."""
        picked = np.zeros(self.counts.size, dtype=np.bool_)
        for n in self.distinct:
            here = np.flatnonzero(self.counts == n)
            # A step that shares no factor with the sides of grids.
            step = max(here.size // PROBED, 1) | 1
            picked[here[::step]] = True
            picked[here[[0, -1]]] = True
        return picked, self.part(picked)

    def by_step(self, loop: int, turn: str, length: int) -> Iterator[tuple[Flags, Samples]]:
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
