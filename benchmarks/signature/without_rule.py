"""Intervals for programs whose messages follow no rule, judged by replays on the simulated cluster.

They are traced on 16, 32 and 64 processes, timed there with some noise, and predicted on 128 and 256. How fast misses
grow was chosen on the first programs; the others have chosen nothing.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Sequence
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
DOUBLE = 6


def _exchanged(n: int, messages: Sequence[tuple[int, int]], size: int) -> list[Actions]:
    """All messages at once."""
    asked: list[Actions] = [[] for _ in range(n)]
    sent: list[Actions] = [[] for _ in range(n)]
    for source, target in messages:
        sent[source].append(("isend", (target, 1, size, DOUBLE)))
        asked[target].append(("irecv", (source, 1, size, DOUBLE)))
    waits: Actions = [("waitall", ())]
    return [[*a, *b, *waits] if a or b else [] for a, b in zip(asked, sent, strict=True)]


def _gathered(n: int, parents: Sequence[int | None], size: int) -> list[Actions]:
    """Each process sends to its parent what it has, once its children have sent."""
    turn: list[Actions] = [[] for _ in range(n)]
    for child, parent in enumerate(parents):
        if parent is not None:
            turn[parent].append(("recv", (child, 1, size, DOUBLE)))
    for child, parent in enumerate(parents):
        if parent is not None:
            turn[child].append(("send", (parent, 1, size, DOUBLE)))
    return turn


def _random_graph(n: int, turn: int) -> list[Actions]:
    draws = random.Random(7 * n + 1)
    return _exchanged(n, [(a, b) for a in range(n) for b in draws.sample(range(n), 4) if a != b], 20_000)


def _permutation(n: int, turn: int) -> list[Actions]:
    targets = random.Random(7 * n + turn).sample(range(n), n)
    return _exchanged(n, [(a, b) for a, b in enumerate(targets) if a != b], 100_000)


def _heap(n: int, turn: int) -> list[Actions]:
    return _gathered(n, [(rank - 1) // 2 if rank else None for rank in range(n)], 50_000)


def _leaders(n: int, turn: int) -> list[Actions]:
    return _gathered(n, [rank - rank % 8 if rank % 8 else 0 if rank else None for rank in range(n)], 50_000)


def _some_receivers(n: int, turn: int) -> list[Actions]:
    some = {*random.Random(n).sample(range(1, n), int(n**0.5) + 3)}
    return _gathered(n, [0 if rank in some else None for rank in range(n)], 40_000)


def _five_children(n: int, turn: int) -> list[Actions]:
    return _gathered(n, [(rank - 1) // 5 if rank else None for rank in range(n)], 60_000)


def _random_tree(n: int, turn: int) -> list[Actions]:
    draws = random.Random(n)
    return _gathered(n, [draws.randrange(rank) if rank else None for rank in range(n)], 30_000)


def _small_world(n: int, turn: int) -> list[Actions]:
    draws = random.Random(3 * n)
    near = [(rank, (rank + 1) % n) for rank in range(n)]
    return _exchanged(n, near + [(a, b) for a, b in (draws.sample(range(n), 2) for _ in range(n // 2))], 40_000)


def _hubs(n: int, turn: int) -> list[Actions]:
    hubs = random.Random(n).sample(range(n), int(math.log2(n)))
    return _exchanged(n, [(rank, hub) for rank in range(n) for hub in hubs if rank != hub], 10_000)


def _broken_chain(n: int, turn: int) -> list[Actions]:
    order = [0, *random.Random(n).sample(range(1, n), n - 1)]
    parents: list[int | None] = [None] * n
    for before, rank in pairwise(order[: n // 4]):
        parents[rank] = before
    return _gathered(n, parents, 20_000)


DESIGN = {each.__name__[1:]: each for each in (_random_graph, _permutation, _heap, _leaders, _some_receivers)}
JUDGED = {each.__name__[1:]: each for each in (_five_children, _random_tree, _small_world, _hubs, _broken_chain)}


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
                engine, ruled = by_blocks(found.application, Hardware(entry, entry)), not found.unruled
                for noise in NOISE:
                    right, widths, errors = [], [], []
                    for _ in range(DRAWS):
                        seen = {n: time * math.exp(draws.normal(0.0, noise)) for n, time in times.items()}
                        learned = {n: seen[n] for n in LEARNED}
                        for each in predictions(engine, "blocks", ASKED, learned, True, ruled):
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
    return [*lines, f"all that follow no rule in part: {np.mean([row['held'] for row in some]):.0%} held"]
