"""Whether messages of the roles found so far have both ends in larger runs, one role after another.

What a process of one known role sends to a process of another has to be received there whatever other roles do: rules
that the runs did not determine are refuted before those of all roles are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.arrays import Flags, Ints
from metasched.records import InputError
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application, Role
from metasched.signature.rules.attributes import with_grid
from metasched.signature.rules.expanding import positions
from metasched.signature.rules.roles import Cell, cells
from metasched.signature.traces.actions import Shape
from metasched.signature.traces.trace import places_of_ends


class BothEnds:
    """The ends of messages in larger runs, of which each role adds its own.

    Parameters
    ----------
    features, topology, shapes : of the roles, and of their actions, as in an application.
    counts : numbers of processes, at which the topology is possible.
    """

    def __init__(self, features: str, topology: str, shapes: Sequence[Shape], counts: Sequence[int]) -> None:
        self._application = Application(features, topology, tuple(shapes), {}, ())
        # The larger a run is, the less of it is as in those that rules were learned from.
        self._runs = [_Run(n, cells(features, topology, n)) for n in sorted(counts, reverse=True)]

    def with_role(self, role: Role) -> bool:
        """Add a role; whether all messages between the roles added so far have both ends in each run.

        Examples
        --------
        >>> from metasched.signature.rules.application import Rule
        >>> from metasched.signature.rules.attributes import shifted
        >>> from metasched.signature.traces.matching import program_of
        >>> ways = [Rule((shifted("line", 1, 0, by),)) for by in (1, -1, -2)]
        >>> ends = [BothEnds("", "line", [Shape("isend", 1), Shape("irecv", 1)], [8]) for _ in range(2)]
        >>> [each.with_role(Role((), program_of((0, 1)), (ways[0], back), ())) for each, back in zip(ends, ways[1:])]
        [True, False]
        """
        try:
            return all(self._added(run, role) and run.balanced() for run in self._runs)
        except InputError:
            return False

    def _added(self, run: _Run, role: Role) -> bool:
        """Whether all partners of a role's processes are processes, whose messages are added to a run."""
        ranks = np.array([rank for rank, cell in enumerate(run.cells) if cell == role.cell], dtype=np.int64)
        if not ranks.size:
            return True
        run.known[ranks] = True
        places, _ = positions(self._application, role, int(ranks[0]), run.count)
        sides = TOPOLOGIES[self._application.topology](run.count)
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            shape, table = self._application.shapes[leaf.shape], places.leaves[leaf.number]
            if not shape.peers or not len(table):
                continue
            env = {"n": np.full((1, 1), float(run.count)), "r": ranks[:, None].astype(np.float64)}
            depth = len(leaf.loops)
            for loop in range(depth):
                env[f"i{loop}"] = table[None, :, 1 + loop].astype(np.float64)
                env[f"c{loop}"] = table[None, :, 1 + depth + loop].astype(np.float64)
            env, signs = with_grid(env, sides), dict(places_of_ends(shape))
            for place in shape.peers:
                peers = np.atleast_2d(rule.numbers[place](env, run.count))
                if np.any(peers >= run.count) or np.any(peers != np.floor(peers)):
                    return False
                if place in signs:
                    # Partners that are the same at every turn are counted once for all.
                    turns = 1 if peers.shape[1] == len(table) else len(table)
                    run.add(ranks, peers.astype(np.int64), signs[place] * turns)
        return True


class _Run:
    """The messages of the known processes of a larger run.

    Parameters
    ----------
    count : number of processes.
    cells : of each of them.
    """

    def __init__(self, count: int, cells: Sequence[Cell]) -> None:
        self.count, self.cells = count, cells
        self.known: Flags = np.zeros(count, dtype=np.bool_)
        #: Pairs of sender and receiver, each as one number, and how many more messages are sent than received.
        self._pairs, self._left = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        #: How many messages each process receives from anywhere.
        self._anywhere = np.zeros(count, dtype=np.int64)

    def add(self, ranks: Ints, peers: Ints, many: int) -> None:
        """Add so many messages to each partner, or from each where it is below 0."""
        own, other = np.broadcast_arrays(ranks[:, None], peers)
        there = other >= 0
        if many < 0:
            np.add.at(self._anywhere, own[~there], -many)
        pairs = own[there] * self.count + other[there] if many > 0 else other[there] * self.count + own[there]
        pairs, times = np.unique(pairs, return_counts=True)
        self._pairs.append(pairs)
        self._left.append(times * many)

    def balanced(self) -> bool:
        """Whether all messages between known processes have both ends, if what is open is received from anywhere."""
        # Each role adds few pairs, however many turns its loops have.
        pairs, which = np.unique(np.concatenate(self._pairs), return_inverse=True)
        left = np.zeros(pairs.size, dtype=np.int64)
        np.add.at(left, which.reshape(-1), np.concatenate(self._left))
        self._pairs, self._left = [pairs], [left]
        source, to = np.divmod(pairs, self.count)
        both = self.known[source] & self.known[to]
        more = np.zeros(self.count, dtype=np.int64)
        np.add.at(more, to[both], np.maximum(left[both], 0))
        return not np.any(left[both] < 0) and not np.any(more > self._anywhere)
