"""Programs on process grids at any number of processes, drawn by a seed: partners, bytes, computation and loops."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
DOUBLE, BYTES = 0, -1
#: Numbers of processes that runs are made of, with grids that they allow.
COUNTS = {
    (8, 16, 32): ("line", "grid 01", "grid 10", "grid 012", "2 rows", "4 columns"),
    (4, 16, 64): ("line", "grid 01", "equal sides 012", "2 at 1 of 3"),
    (9, 16, 25): ("line", "grid 01"),
    (6, 12, 24): ("line", "grid 01", "greedy 012", "3 columns"),
}


@dataclass(frozen=True)
class Place:
    """A process: its rank, the number of processes, the sides of the grid and its coordinates."""

    rank: int
    n: int
    sides: tuple[int, ...]
    at: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, n: int, sides: tuple[int, ...]) -> Place:
        found, left = [], rank
        for side in reversed(sides):
            left, coordinate = divmod(left, side)
            found.insert(0, coordinate)
        return cls(rank, n, sides, tuple(found))

    def beside(self, dimension: int, shift: int, around: bool) -> int:
        """The rank of a neighbour, or none (-1) beyond a border."""
        moved = self.at[dimension] + shift
        if not around and not 0 <= moved < self.sides[dimension]:
            return -1
        at = [*self.at[:dimension], moved % self.sides[dimension], *self.at[dimension + 1 :]]
        rank = 0
        for side, coordinate in zip(self.sides, at, strict=True):
            rank = rank * side + coordinate
        return rank


Step = Callable[[Place], list[Action]]


@dataclass(frozen=True)
class Drawn:
    """A program, the numbers of processes to learn it from, and its run on any number."""

    name: str
    counts: tuple[int, ...]
    trace: Callable[[int], Trace]


def drawn(seed: int) -> Drawn:
    """The program of a seed."""
    source = random.Random(seed)
    counts = source.choice([*COUNTS])
    sides = TOPOLOGIES[source.choice(COUNTS[counts])]
    dimensions = len(sides(counts[0]))
    parts = []
    for _ in range(source.randint(1, 3)):
        turns = source.choice(TURNS)
        parts.append((turns, [source.choice(STEPS)(source, dimensions) for _ in range(source.randint(1, 3))]))

    def process(place: Place) -> list[Action]:
        found: list[Action] = [("init", ())]
        for turns, steps in parts:
            for _ in range(turns(place)):
                found += [action for step in steps for action in step(place)]
        return [*found, ("finalize", ())]

    def run(n: int) -> Trace:
        return trace_of({rank: process(Place.of(rank, n, sides(n))) for rank in range(n)})

    return Drawn(f"drawn by {seed}", counts, run)


TURNS: tuple[Callable[[Place], int], ...] = (
    lambda place: 1, lambda place: 5, lambda place: place.sides[0], lambda place: place.n - 1,
    lambda place: 2 * place.sides[-1] + 1, lambda place: place.n.bit_length() - 1,
)  # fmt: skip


def _bytes(source: random.Random, dimensions: int) -> Callable[[Place], int]:
    """An amount of data that grows in one of the ways that programs have."""
    size, dimension = source.choice((960, 1000, 7200)), source.randrange(dimensions)
    ways: tuple[Callable[[Place], int], ...] = (
        lambda place: size,
        lambda place: size * 576 // place.n,
        lambda place: size // place.sides[dimension],
        lambda place: size // place.sides[dimension] + (place.at[dimension] < size % place.sides[dimension]),
        lambda place: 8 * place.n + 16,
        lambda place: 8 * (place.sides[dimension] + 2),
        lambda place: size * (1 + place.at[dimension] % 2),
    )
    return source.choice(ways)


def _neighbours(source: random.Random, dimensions: int) -> Step:
    """Exchanges with neighbours along a dimension, round the grid or with borders."""
    dimension, by, around = source.randrange(dimensions), source.choice((1, 1, 2)), source.random() < 0.5
    tag, size = source.randint(0, 9), source.choice((64, 4096))

    def step(place: Place) -> list[Action]:
        found: list[Action] = []
        for shift in (by, -by):
            to, back = (place.beside(dimension, each, around) for each in (shift, -shift))
            found += [("irecv", (back, tag, size, DOUBLE))] * (back >= 0)
            found += [("isend", (to, tag, size, DOUBLE))] * (to >= 0)
        return [*found, ("waitall", (len(found),))] if found else []

    return step


def _ring(source: random.Random, dimensions: int) -> Step:
    dimension, size = source.randrange(dimensions), _bytes(random.Random(source.random()), 1)

    def step(place: Place) -> list[Action]:
        to, back = (place.beside(dimension, each, True) for each in (1, -1))
        amounts = [size(Place(rank, place.n, (place.n,), (rank,))) for rank in (place.rank, back)]
        return [("sendRecv", (amounts[0], to, amounts[1], back, DOUBLE, DOUBLE))]

    return step


def _mirrored(source: random.Random, dimensions: int) -> Step:
    """Messages to the process on the other side, of half of the processes first."""
    size = source.choice((8, 800))

    def step(place: Place) -> list[Action]:
        other = place.n - 1 - place.rank
        both: list[Action] = [("send", (other, 5, size, BYTES)), ("recv", (other, 5, size, BYTES))]
        return [] if other == place.rank else both if place.rank < other else both[::-1]

    return step


def _halved(source: random.Random, dimensions: int) -> Step:
    """Exchanges with the process half of all away."""

    def step(place: Place) -> list[Action]:
        half = place.n // 2
        if place.rank >= 2 * half:
            return []
        other = (place.rank + half) % (2 * half)
        return [("irecv", (other, 1, 16, DOUBLE)), ("send", (other, 1, 16, DOUBLE)), ("wait", (other, place.rank, 1))]

    return step


def _computed(source: random.Random, dimensions: int) -> Step:
    """Computation that is shared out, evenly, by halves, or with more at a border."""
    total, dimension, kind = source.choice((1e9, 7.2e10)), source.randrange(dimensions), source.randrange(4)

    def step(place: Place) -> list[Action]:
        more = (
            1.0, 1.0 + (place.rank < place.n // 2), 1.0 + 0.5 * (place.at[dimension] == 0), float(place.n) ** 0.5,
        )[kind]  # fmt: skip
        return [("compute", (float(f"{more * total / place.n:.6g}"),))]

    return step


def _of_all(source: random.Random, dimensions: int) -> Step:
    """An operation of all, whose bytes or root may depend on how many they are."""
    size, kind = _bytes(source, dimensions), source.randrange(7)

    def step(place: Place) -> list[Action]:
        amount = size(Place(0, place.n, place.sides, (0,) * len(place.sides)))
        each = [amount // 8 + other % 2 for other in range(place.n)]
        operations: tuple[Action, ...] = (
            ("bcast", (amount, 0, DOUBLE)), ("reduce", (amount, 0, place.n - 1, DOUBLE)),
            ("allreduce", (amount, 0, DOUBLE)), ("alltoall", (amount, amount, DOUBLE, DOUBLE)), ("barrier", ()),
            ("allgather", (amount, amount, BYTES, BYTES)),
            ("alltoallv", (sum(each), *each, sum(each), *each, DOUBLE, DOUBLE)),
        )  # fmt: skip
        return [operations[kind]]

    return step


def _rotating(source: random.Random, dimensions: int) -> Step:
    """Broadcasts of each process in turn."""
    size = source.choice((8, 1000))
    return lambda place: [("bcast", (size, root, DOUBLE)) for root in range(place.n)]


def _of_rows(source: random.Random, dimensions: int) -> Step:
    """Operations among the processes of a row."""
    name = source.choice(("allreduce_on", "bcast_on"))
    last = (0, DOUBLE)
    return lambda place: [(name, (place.sides[-1], 24, *last))]


STEPS: tuple[Callable[[random.Random, int], Step], ...] = (
    _neighbours, _neighbours, _ring, _mirrored, _halved, _computed, _computed, _of_all, _of_all, _rotating, _of_rows,
)  # fmt: skip
