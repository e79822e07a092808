"""Programs of a few processes with calls of every kind, drawn by a seed."""

from __future__ import annotations

import random

Action = tuple[str, tuple[float, ...]]
Program = dict[int, list[Action]]
SENDS = ("send", "isend", "ssend", "issend", "bsend", "ibsend", "rsend")
#: SimGrid's number of doubles, and of what it counts in bytes.
DOUBLE, BYTES = 0, -1
NULL = -333


def drawn(seed: int) -> Program:
    """The actions of each rank; every message has both ends, and every operation takes place in all processes."""
    source = random.Random(seed)
    count = source.randint(2, 5)
    program: Program = {rank: [("init", ())] for rank in range(count)}
    for _ in range(source.randint(1, 3)):
        body = [_step(source, count) for _ in range(source.randint(1, 4))]
        for _ in range(source.choice((1, 2, 3, 7, 20))):
            for step in body:
                for rank, actions in step.items():
                    program[rank] += actions
    for actions in program.values():
        actions.append(("finalize", ()))
    return program


def _step(source: random.Random, count: int) -> Program:
    """What processes do together."""
    made = (_computed, _sent, _around, _shifted, _of_all, _listed, _of_some, _alone)
    return source.choice(made)(source, count)


def _computed(source: random.Random, count: int) -> Program:
    return {rank: [("compute", (float(source.randint(1, 9) * 10 ** source.randint(2, 8)),))] for rank in range(count)}


def _sent(source: random.Random, count: int) -> Program:
    """Some messages from one process to another, with waits of each kind for those that do not block."""
    one, other = source.sample(range(count), 2)
    sent: list[Action] = []
    received: list[Action] = []
    for _ in range(source.randint(1, 3)):
        tag, size, kind = source.randint(0, 3), source.randint(0, 10_000), source.choice((DOUBLE, 1, 4, 9, BYTES))
        numbers = (tag, size) if source.random() < 0.1 else (tag, size, kind)
        sent.append((source.choice(SENDS), (other, *numbers)))
        received.append((source.choice(("recv", "irecv")), (one, *numbers)))
    for mine in (sent, received):
        open_ = sum(name.startswith("i") for name, _ in mine)
        if not open_:
            continue
        tags = [int(numbers[1]) for name, numbers in mine if name.startswith("i")]
        waits: list[list[Action]] = [
            [("waitall", (open_,))],
            [("wait", (one, other, tag)) for tag in tags],
            [*[("waitany", (open_,))] * open_],
        ]
        mine += source.choice(waits)
    return {one: sent, other: received}


def _around(source: random.Random, count: int) -> Program:
    """Exchanges round a ring, or along a line whose ends have no partner on one side."""
    size, ring = source.randint(1, 5000), source.random() < 0.5
    made: Program = {}
    for rank in range(count):
        after, before = rank + 1, rank - 1
        to, back = (after % count, before % count) if ring else (after if after < count else NULL, before % (count + 9))
        back = back if back < count else NULL
        made[rank] = [("sendRecv", (size, to, size, back, DOUBLE, BYTES))]
    return made


def _shifted(source: random.Random, count: int) -> Program:
    """Messages to both sides, started in another order by each process."""
    made: Program = {}
    for rank in range(count):
        started: list[Action] = []
        for tag, shift in ((1, 1), (2, -1)):
            started.append(("isend", ((rank + shift) % count, tag, 100 * tag, DOUBLE)))
            started.append(("irecv", ((rank - shift) % count, tag, 100 * tag, DOUBLE)))
        source.shuffle(started)
        made[rank] = [*started, ("test", (rank, (rank + 1) % count, 1)), ("testany", (4,)), ("waitall", (4,))]
    return made


def _of_all(source: random.Random, count: int) -> Program:
    operations: list[Action] = [
        ("barrier", ()), ("bcast", (source.randint(1, 99), 0, DOUBLE)), ("allreduce", (source.randint(1, 99), 0, 1)),
        ("reduce", (8, 0, source.randrange(count), DOUBLE)), ("alltoall", (10, 10, BYTES, BYTES)), ("ibarrier", ()),
        ("ibcast", (16, 0, DOUBLE)),
    ]  # fmt: skip
    chosen = source.choice(operations)
    return {rank: [chosen] for rank in range(count)}


def _listed(source: random.Random, count: int) -> Program:
    """Operations with an amount for each process."""
    amounts = [source.choice((0, 7, 50, 12_345_678)) for _ in range(count)]
    total = sum(amounts)
    operations: list[Action] = [
        ("alltoallv", (total, *amounts, total, *amounts, DOUBLE, DOUBLE)), ("gatherv", (5, total, *amounts, 0, 1)),
        ("ialltoallv", (total, *amounts, total, *amounts, BYTES, BYTES)), ("reduceScatter", (*amounts, 0, DOUBLE)),
        ("scatterv", (*amounts, 5, 0, 0, 1)), ("allgatherv", (amounts[0], *amounts, DOUBLE, DOUBLE)),
    ]  # fmt: skip
    chosen = source.choice(operations)
    return {rank: [chosen] for rank in range(count)}


def _of_some(source: random.Random, count: int) -> Program:
    """Operations among the first processes, which the others do not see."""
    some = source.randint(1, count)
    operations: list[Action] = [
        ("barrier_on", (some,)), ("bcast_on", (some, 40, 0, BYTES)), ("reduce_on", (some, 16, 0, 0, BYTES)),
        ("allreduce_on", (some, 24, 0, DOUBLE)), ("reducescatter_on", (some, *[8.0] * some, 0, BYTES)),
        ("igather_on", (some, 4, 4, 0, DOUBLE, DOUBLE)),
    ]  # fmt: skip
    chosen = source.choice(operations)
    return {rank: [chosen] for rank in range(some)}


def _alone(source: random.Random, count: int) -> Program:
    """Calls that concern nobody else."""
    rank = source.randrange(count)
    alone: list[Action] = [("sleep", (0.25,)), ("send", (NULL, 1, 8, DOUBLE)), ("irecv", (NULL, 0, 9, BYTES))]
    return {rank: [source.choice(alone)]}
