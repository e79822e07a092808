"""Programs of messages as SimGrid would record them, at any number of processes: what expansion is judged against.

Each yields the actions of one rank. They were written to design the rules with; ``counts`` says what each is learned
from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt

from metasched.signature.equations.topologies import as_simgrid, balanced
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
#: Sides of a grid from the number of processes and of dimensions.
Layout = Callable[[int, int], tuple[int, ...]]
#: The number that SimGrid writes for doubles.
DOUBLE = 0


def _flops(value: float) -> Action:
    return "compute", (float(f"{value:g}"),)


def _grid(n: int, dimensions: int) -> tuple[int, ...]:
    return balanced(n, dimensions)


def _at(rank: int, sides: tuple[int, ...]) -> list[int]:
    found = []
    for side in reversed(sides):
        found.append(rank % side)
        rank //= side
    return found[::-1]


def _rank(at: list[int], sides: tuple[int, ...]) -> int:
    rank = 0
    for place, side in zip(at, sides, strict=True):
        rank = rank * side + place % side
    return rank


def _exchange(peers: list[int], sources: list[int], size: int, tag: int) -> Iterator[Action]:
    for peer in peers:
        yield "isend", (peer, tag, size, DOUBLE)
    for peer in sources:
        yield "irecv", (peer, tag, size, DOUBLE)
    if peers or sources:
        yield "waitall", (len(peers) + len(sources),)


def multipartition(rank: int, n: int, steps: int = 2, cells: int = 102) -> Iterator[Action]:
    """Sweeps in three directions over diagonal cells, like BT and SP: n is a square."""
    side = isqrt(n)
    size = 5 * (-(-cells // side)) ** 2
    x, y = _at(rank, (side, side))
    neighbours = [((x, y + 1), (x, y - 1)), ((x + 1, y), (x - 1, y)), ((x - 1, y - 1), (x + 1, y + 1))]
    yield "bcast", (3, 0, DOUBLE)
    for _ in range(steps):
        peers = [_rank(list(each), (side, side)) for pair in neighbours for each in pair]
        yield from _exchange(peers, peers, 2 * size, 1)
        for forward, back in neighbours:
            to, source = _rank(list(forward), (side, side)), _rank(list(back), (side, side))
            for _stage in range(side - 1):
                yield _flops(4e9 / n / side)
                yield "isend", (to, 2, size, DOUBLE)
                yield "irecv", (source, 2, size, DOUBLE)
                yield "wait", (rank, to, 2)
                yield "wait", (source, rank, 2)
    yield "reduce", (5, 0, 0, DOUBLE)


def butterfly(rank: int, n: int, steps: int = 4) -> Iterator[Action]:
    """Sums along rows by halving and an exchange across the diagonal, like CG: n is a power of two."""
    power = n.bit_length() - 1
    rows = 1 << (power // 2)
    columns = n // rows
    row, column = divmod(rank, columns)
    wide = columns // rows
    across = wide * ((rank // wide % rows) * rows + rank // wide // rows) + rank % wide
    for _ in range(steps):
        yield _flops(3e10 / n)
        distance = columns // 2
        while distance:
            peer = row * columns + (column ^ distance)
            yield "irecv", (peer, 7, 75_000 * 2 // columns, DOUBLE)
            yield "send", (peer, 7, 75_000 * 2 // columns, DOUBLE)
            yield "wait", (peer, rank, 7)
            distance //= 2
        yield "irecv", (across, 8, 150_000 // columns, DOUBLE)
        yield "send", (across, 8, 150_000 // columns, DOUBLE)
        yield "wait", (across, rank, 8)
        for bit in range((columns).bit_length() - 1):
            peer = row * columns + (column ^ (1 << bit))
            yield "sendRecv", (1, peer, 1, peer, DOUBLE, DOUBLE)


def wavefront(
    rank: int, n: int, octants: int = 4, blocks: int = 6, size: int = 480, layout: Layout = balanced
) -> Iterator[Action]:
    """Sweeps from the corners of a grid, like LU and Sweep3D; borders have no upstream or no downstream."""
    sides = layout(n, 2)
    x, y = _at(rank, sides)
    for _step in range(2):
        for octant in range(octants):
            dx, dy = (1, -1)[octant & 1], (1, -1)[octant >> 1 & 1]
            for _block in range(blocks):
                if 0 <= x - dx < sides[0]:
                    yield "recv", (_rank([x - dx, y], sides), octant, size // sides[1], DOUBLE)
                if 0 <= y - dy < sides[1]:
                    yield "recv", (_rank([x, y - dy], sides), octant, size // sides[0], DOUBLE)
                yield _flops(1e8 / n)
                if 0 <= x + dx < sides[0]:
                    yield "send", (_rank([x + dx, y], sides), octant, size // sides[1], DOUBLE)
                if 0 <= y + dy < sides[1]:
                    yield "send", (_rank([x, y + dy], sides), octant, size // sides[0], DOUBLE)
        yield "allreduce", (1, 0, DOUBLE)


def ring(rank: int, n: int, steps: int = 2, bodies: int = 2**20) -> Iterator[Action]:
    """Bodies that go round, n - 1 times a step."""
    mine, theirs = (bodies // n + (each % n < bodies % n) for each in (rank, rank - 1))
    for _ in range(steps):
        for _stage in range(n - 1):
            yield _flops(1e12 / n / n)
            yield "sendRecv", (4 * mine, (rank + 1) % n, 4 * theirs, (rank - 1) % n, DOUBLE, DOUBLE)
        yield _flops(1e6)
    yield "reduce", (1, 0, 0, DOUBLE)


def halo(rank: int, n: int, dimensions: int = 2, around: bool = False, steps: int = 10) -> Iterator[Action]:
    """Neighbours in a grid of two or three dimensions, round it or with borders."""
    sides = _grid(n, dimensions)
    at = _at(rank, sides)
    cells = [960, 960] if dimensions == 2 else [240, 240, 240]
    mine = [size // side + (place < size % side) for size, side, place in zip(cells, sides, at, strict=True)]
    yield "bcast", (8, 0, DOUBLE)
    for step in range(steps):
        asked = []
        for dimension in range(dimensions):
            face = 1
            for other in range(dimensions):
                face *= mine[other] if other != dimension else 1
            for shift in (-1, 1):
                place = at[dimension] + shift
                if around or 0 <= place < sides[dimension]:
                    peer = _rank([*at[:dimension], place, *at[dimension + 1 :]], sides)
                    asked.append((peer, face, 10 + dimension))
        for peer, face, tag in asked:
            yield "irecv", (peer, tag, face, DOUBLE)
        for peer, face, tag in asked:
            yield "isend", (peer, tag, face, DOUBLE)
        yield "waitall", (2 * len(asked),)
        yield _flops(1e9 / n)
        if step % 5 == 4:
            yield "allreduce", (1, 0, DOUBLE)


def faces(rank: int, n: int, steps: int = 3, size: int = 240) -> Iterator[Action]:
    """Faces of blocks to the six neighbours round a grid, sent and received at once."""
    sides = _grid(n, 3)
    at = _at(rank, sides)
    for _ in range(steps):
        for dimension in range(3):
            face = 1
            for other in range(3):
                face *= size // sides[other] if other != dimension else 1
            near = [_rank([place + (each == dimension) * by for each, place in enumerate(at)], sides) for by in (-1, 1)]
            yield "sendRecv", (face, near[0], face, near[1], DOUBLE, DOUBLE)
            yield "sendRecv", (face, near[1], face, near[0], DOUBLE, DOUBLE)
        yield _flops(1e9 / n)


def transpose(rank: int, n: int, steps: int = 4, size: int = 1024) -> Iterator[Action]:
    """All to all, like FT and IS: among all, then with lists, then hand-written in n - 1 exchanges."""
    for _ in range(steps):
        yield _flops(5e9 / n)
        yield "alltoall", (size * size // n // n, size * size // n // n, DOUBLE, DOUBLE)
    counts = [size // n + (other < size % n) for other in range(n)]
    yield "alltoallv", (sum(counts), *counts, n * counts[rank], *([counts[rank]] * n), DOUBLE, DOUBLE)
    for stage in range(1, n):
        yield "sendRecv", (64, (rank + stage) % n, 64, (rank - stage) % n, DOUBLE, DOUBLE)


def panels(rank: int, n: int, panels_: int = 48, size: int = 96) -> Iterator[Action]:
    """Broadcasts whose root goes round rows and columns, like SUMMA and HPL; the trailing part shrinks."""
    sides = _grid(n, 2)
    for panel in range(panels_):
        yield "bcast", (size * (size - panel), panel % sides[1], DOUBLE)
        yield "bcast", (size * size // sides[1], panel % sides[0], DOUBLE)
        yield _flops(2e9 / n)
    for step in range(n):
        yield "bcast", (100, step, DOUBLE)


def strips(rank: int, n: int, steps: int = 6) -> Iterator[Action]:
    """A line of processes: blocking messages, even ranks first; rows that do not come out even."""
    rows = 1000 // n + (rank < 1000 % n)
    yield (
        "scatterv",
        (*([0] * n if rank else [8 * (1000 // n + (each < 1000 % n)) for each in range(n)]), 8 * rows, 0, 0, 0),
    )
    for _ in range(steps):
        order = (1, -1) if rank % 2 == 0 else (-1, 1)
        for shift in order:
            peer = rank + shift
            if 0 <= peer < n:
                pair = [("send", (peer, 3, 500, DOUBLE)), ("recv", (peer, 3, 500, DOUBLE))]
                yield from pair if rank % 2 == 0 else reversed(pair)
        yield _flops(rows * 1e5)


def farm(rank: int, n: int, rounds: int = 4) -> Iterator[Action]:
    """A master that sends to each worker in turn and gathers their answers."""
    for round_ in range(rounds):
        if rank == 0:
            for worker in range(1, n):
                yield "send", (worker, round_, 200, DOUBLE)
            for worker in range(1, n):
                yield "recv", (worker, 99, 20, DOUBLE)
        else:
            yield "recv", (0, round_, 200, DOUBLE)
            yield _flops(1e7)
            yield "send", (0, 99, 20, DOUBLE)


def cannon(rank: int, n: int, size: int = 720) -> Iterator[Action]:
    """Matrices that are skewed, then shifted round a square."""
    side = isqrt(n)
    block = (size // side) ** 2
    x, y = _at(rank, (side, side))

    def shifted(by_row: int, by_column: int) -> Action:
        to, source = (_rank([x + s * by_row, y + s * by_column], (side, side)) for s in (1, -1))
        return "sendRecv", (block, to, block, source, DOUBLE, DOUBLE)

    yield shifted(0, -x)
    yield shifted(-y, 0)
    for _ in range(side):
        yield _flops(2e8 / n)
        yield shifted(0, -1)
        yield shifted(-1, 0)


def open_halo(rank: int, n: int, steps: int = 5) -> Iterator[Action]:
    """A grid whose borders exchange with MPI_PROC_NULL."""
    sides = _grid(n, 2)
    at = _at(rank, sides)
    for _ in range(steps):
        for dimension in range(2):
            found = []
            for shift in (1, -1):
                place = at[dimension] + shift
                inside = 0 <= place < sides[dimension]
                found.append(_rank([*at[:dimension], place, *at[dimension + 1 :]], sides) if inside else -333)
            size = 840 // sides[1 - dimension]
            yield "sendRecv", (size, found[0], size, found[1], DOUBLE, DOUBLE)
            yield "sendRecv", (size, found[1], size, found[0], DOUBLE, DOUBLE)
        yield _flops(1e8 / n)


@dataclass(frozen=True)
class Judged:
    """A program, and the counts that it is learned from.

    Parameters
    ----------
    name : of the program and its variant.
    actions : of a rank among n processes.
    counts : to learn from.
    """

    name: str
    actions: Callable[[int, int], Iterator[Action]]
    counts: tuple[int, ...]

    def trace(self, n: int, work: float = 1.0) -> Trace:
        """The trace of n processes, with a share of the computation."""
        ends: tuple[Action, Action] = (("init", ()), ("finalize", ()))

        def done(rank: int) -> list[Action]:
            return [(name, (work * of[0],) if name == "compute" else of) for name, of in self.actions(rank, n)]

        return trace_of({rank: [ends[0], *done(rank), ends[1]] for rank in range(n)})


APPLICATIONS = (
    Judged("multipartition", multipartition, (16, 36, 64)),
    Judged("multipartition, powers", multipartition, (4, 16, 64)),
    Judged("butterfly", butterfly, (16, 32, 64)),
    Judged("butterfly, squares", butterfly, (4, 16, 64)),
    Judged("wavefront, 4 corners", wavefront, (16, 32, 64)),
    Judged("wavefront, squares", wavefront, (16, 36, 64)),
    Judged("wavefront, SimGrid's grid", lambda r, n: wavefront(r, n, size=5040, layout=as_simgrid), (16, 36, 64)),
    Judged("ring", ring, (16, 32, 64)),
    Judged("ring, any", ring, (12, 27, 50)),
    Judged("2-D halo, borders", lambda r, n: halo(r, n, 2), (16, 32, 64)),
    Judged("2-D halo, around", lambda r, n: halo(r, n, 2, True), (16, 32, 64)),
    Judged("3-D halo, borders", lambda r, n: halo(r, n, 3), (27, 48, 64)),
    Judged("3-D halo, powers", lambda r, n: halo(r, n, 3), (16, 32, 64)),
    Judged("3-D halo, around", lambda r, n: halo(r, n, 3, True), (16, 32, 64)),
    Judged("3-D halo, cubes", lambda r, n: halo(r, n, 3, True), (8, 27, 64)),
    Judged("faces around", faces, (16, 32, 64)),
    Judged("transpose", transpose, (16, 32, 64)),
    Judged("panels", panels, (16, 32, 64)),
    Judged("panels, squares", panels, (16, 36, 64)),
    Judged("strips", strips, (16, 32, 64)),
    Judged("strips, any", strips, (12, 24, 48)),
    Judged("farm", farm, (16, 32, 64)),
    Judged("cannon", cannon, (16, 36, 64)),
    Judged("open halo", open_halo, (16, 32, 64)),
)
