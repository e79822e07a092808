"""Intervals for programs whose messages follow no rule, judged by replays on the simulated cluster.

A seed draws one program of each family. They are traced on 16, 32 and 64 processes, timed there with some noise, and
predicted on 128 and 256. How fast misses grow was chosen on the programs of one seed; those of the other chose nothing.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.signature.machine import replayed
from benchmarks.signature.times import MACHINE
from metasched.signature.rules.fitting import fit
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import predictions
from metasched.signature.traces.trace import Trace, trace_of
from metasched.store.files.hardware import read_entry

Actions = list[tuple[str, tuple[float, ...]]]
#: The actions of each process in one turn of a program on n processes.
Turn = Callable[[int, int], list[Actions]]

LEARNED, ASKED, TURNS = (16, 32, 64), (128, 256), 6
#: Flops of all processes in a turn, deviation of the logarithm of measured times, and draws of it.
WORK, NOISE, DRAWS = (2e9, 2.5e8), (0.003, 0.01, 0.03), 40
BYTE = 6
#: The seeds of the programs on which the growth of misses was chosen, and of those it is judged on.
DESIGN, JUDGED = 1, 20261129


def _exchanged(n: int, messages: Sequence[tuple[int, int]], size: int) -> list[Actions]:
    """All messages at once."""
    asked: list[Actions] = [[] for _ in range(n)]
    sent: list[Actions] = [[] for _ in range(n)]
    for source, target in messages:
        sent[source].append(("isend", (target, 1, size, BYTE)))
        asked[target].append(("irecv", (source, 1, size, BYTE)))
    waits: Actions = [("waitall", ())]
    return [[*a, *b, *waits] if a or b else [] for a, b in zip(asked, sent, strict=True)]


def _gathered(n: int, parents: Sequence[int | None], size: int) -> list[Actions]:
    """Each process sends to its parent what it has, once its children have sent."""
    return _in_order(n, [*enumerate(parents)], size)


def _in_order(n: int, parents: Sequence[tuple[int, int | None]], size: int) -> list[Actions]:
    """The same with the children in the order in which their messages are asked for."""
    turn: list[Actions] = [[] for _ in range(n)]
    for child, parent in parents:
        if parent is not None:
            turn[parent].append(("recv", (child, 1, size, BYTE)))
    for child, parent in parents:
        if parent is not None:
            turn[child].append(("send", (parent, 1, size, BYTE)))
    return turn


def _size(draws: random.Random) -> int:
    """Bytes of a message."""
    return int(math.exp(draws.uniform(math.log(1_000), math.log(100_000))))


def _graph(draws: random.Random) -> Turn:
    """Each process sends to some drawn ones, to the same in every turn."""
    many, size, seed = draws.randint(1, 6), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        own = random.Random(f"{seed} {n}")
        return _exchanged(n, [(a, b) for a in range(n) for b in own.sample(range(n), many) if a != b], size)

    return turn


def _permutation(draws: random.Random) -> Turn:
    """Each process sends to one, to another one in every turn."""
    size, seed = _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        targets = random.Random(f"{seed} {n} {number}").sample(range(n), n)
        return _exchanged(n, [(a, b) for a, b in enumerate(targets) if a != b], size)

    return turn


def _tree(draws: random.Random) -> Turn:
    """Each process sends to a drawn one before it, or to one of as many of the first as a power of them says."""
    power, size, seed = draws.uniform(0.3, 1.0), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        own = random.Random(f"{seed} {n}")
        return _gathered(n, [own.randrange(math.ceil(rank**power)) if rank else None for rank in range(n)], size)

    return turn


def _leaders(draws: random.Random) -> Turn:
    """Groups send to their leaders, and these to the first."""
    group, size = draws.randint(3, 12), _size(draws)

    def turn(n: int, number: int) -> list[Actions]:
        return _gathered(n, [rank - rank % group if rank % group else 0 if rank else None for rank in range(n)], size)

    return turn


def _some_senders(draws: random.Random) -> Turn:
    """Drawn processes send to the first, as many as a power of all."""
    power, size, seed = draws.uniform(0.3, 0.9), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        some = {*random.Random(f"{seed} {n}").sample(range(1, n), int(n**power) + 2)}
        return _gathered(n, [0 if rank in some else None for rank in range(n)], size)

    return turn


def _small_world(draws: random.Random) -> Turn:
    """A ring, with some drawn messages across."""
    share, size, seed = draws.uniform(0.1, 1.0), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        own = random.Random(f"{seed} {n}")
        across = [(a, b) for a, b in (own.sample(range(n), 2) for _ in range(int(share * n)))]
        return _exchanged(n, [(rank, (rank + 1) % n) for rank in range(n)] + across, size)

    return turn


def _hubs(draws: random.Random) -> Turn:
    """All, or a share of them, send to a few drawn processes, as many as a power of all."""
    power, share, size, seed = draws.uniform(0.0, 0.5), draws.uniform(0.3, 1.0), _size(draws) / 4, draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        own = random.Random(f"{seed} {n}")
        hubs = own.sample(range(n), math.ceil(n**power))
        return _exchanged(
            n, [(rank, hub) for rank in range(n) for hub in hubs if rank != hub and own.random() < share], int(size)
        )

    return turn


def _chain(draws: random.Random) -> Turn:
    """A part of the processes in a drawn order, each of which waits for the one before."""
    share, size, seed = draws.uniform(0.1, 0.6), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        order = [0, *random.Random(f"{seed} {n}").sample(range(1, n), n - 1)]
        parents: list[int | None] = [None] * n
        for before, rank in pairwise(order[: max(int(share * n), 3)]):
            parents[rank] = before
        return _in_order(n, [(rank, parents[rank]) for rank in order[::-1]], size)

    return turn


def _chains(draws: random.Random) -> Turn:
    """Several chains at once, as many as a power of the processes."""
    power, size, seed = draws.uniform(0.2, 0.7), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        order = random.Random(f"{seed} {n}").sample(range(n), n)
        many = math.ceil(n**power)
        parents: list[int | None] = [None] * n
        for place, rank in enumerate(order[many:]):
            parents[rank] = order[place]
        return _in_order(n, [(rank, parents[rank]) for rank in order[::-1]], size)

    return turn


def _waves(draws: random.Random) -> Turn:
    """Each process waits for some drawn ones that come before it in a drawn order."""
    many, size, seed = draws.randint(1, 3), _size(draws), draws.random()

    def turn(n: int, number: int) -> list[Actions]:
        own = random.Random(f"{seed} {n}")
        order = own.sample(range(n), n)
        made: list[Actions] = [[] for _ in range(n)]
        for place, rank in enumerate(order):
            for source in own.sample(order[:place], min(many, place)):
                made[rank].append(("recv", (source, 1, size, BYTE)))
                made[source].append(("send", (rank, 1, size, BYTE)))
        return made

    return turn


FAMILIES = (
    _graph, _permutation, _tree, _leaders, _some_senders, _small_world, _hubs, _chain, _chains, _waves,
)  # fmt: skip


def drawn(seed: int) -> dict[str, Turn]:
    """A program of each family, with the numbers that a seed draws."""
    return {family.__name__[1:]: family(random.Random(f"{seed} {family.__name__}")) for family in FAMILIES}


def traced(turn: Turn, n: int, work: float) -> Trace:
    """A program's trace on n processes, whose work is shared evenly; all meet after each turn."""
    actions: list[Actions] = [[("init", ())] for _ in range(n)]
    for number in range(TURNS):
        for own, made in zip(actions, turn(n, number), strict=True):
            own += [("compute", (work / n,)), *made, ("allreduce", (1, 0, 0))]
    return trace_of({rank: [*own, ("finalize", ())] for rank, own in enumerate(actions)})


def held(programs: dict[str, Turn]) -> list[dict[str, Any]]:
    """One row for each program, work and noise: the mean error, and the share of the intervals that hold."""
    entry, draws = read_entry(str(MACHINE)), np.random.default_rng(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, turn in programs.items():
            for work in WORK:
                times = {n: replayed(Path(folder), traced(turn, n, work))[0] for n in (*LEARNED, *ASKED)}
                found = fit([traced(turn, n, work) for n in LEARNED])
                engine = cache(by_blocks(found.application, Hardware(entry, entry)))
                for noise in NOISE:
                    right, widths, errors = [], [], []
                    for _ in range(DRAWS):
                        seen = {n: time * math.exp(draws.normal(0.0, noise)) for n, time in times.items()}
                        learned = {n: seen[n] for n in LEARNED}
                        for each in predictions(engine, "blocks", ASKED, learned, True, not found.unruled):
                            right.append(each.interval[0] <= seen[each.processes] <= each.interval[1])
                            widths.append(each.interval[1] / each.interval[0])
                            errors.append(abs(each.execution_time / seen[each.processes] - 1.0))
                    rows.append(
                        {
                            "program": name, "work": work, "noise": noise, "without_rule": sum(found.unruled.values()),
                            "error": float(np.mean(errors)), "held": float(np.mean(right)),
                            "width": float(np.median(widths)),
                        }
                    )  # fmt: skip
    return rows


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rows, and the share of the intervals that hold where a part follows no rule."""
    lines = [
        f"{row['program']:15} work {row['work']:7g} noise {row['noise']:5.1%} without rule {row['without_rule']:4.0%} "
        f"error {row['error']:5.1%} held {row['held']:4.0%} width {row['width']:.2f}"
        for row in rows
    ]
    some = [row for row in rows if row["without_rule"] > 0.0]
    coverage, width = np.mean([row["held"] for row in some]), np.median([row["width"] for row in some])
    return [*lines, f"all that follow no rule in part: {coverage:.0%} held, median width {width:.2f}"]
