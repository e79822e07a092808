"""Folding: loops in a sequence, as a repeated part with its number of repetitions.

A folded sequence is a list of nodes; a node is a number of the sequence, or a :class:`Loop` over nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Flags, Ints

#: Longest periods of loops between which something is seen to stand twice.
BETWEEN = 8
#: Periods up to this are always tried; longer ones where some number comes again just so much later.
ALWAYS = 16


@dataclass(frozen=True, slots=True)
class Loop:
    """Nodes that repeat ``count`` times in a row."""

    count: int
    body: tuple[Node, ...]


Node = int | Loop


def folded(sequence: Sequence[int] | Ints) -> tuple[Node, ...]:
    """The sequence with its repetitions folded, short periods first.

    What only stands twice in a row because one loop ends and another one begins there is left to those loops.

    >>> folded([7, 1, 2, 2, 1, 2, 2, 9])
    (7, Loop(count=2, body=(1, Loop(count=2, body=(2,)))), 9)
    >>> folded([1, 2, 1, 2, 1, 2, 2, 1, 2, 1, 2, 1])
    (Loop(count=3, body=(1, 2)), Loop(count=3, body=(2, 1)))
    """
    symbols = np.asarray(sequence, dtype=np.int64)
    if not symbols.size:
        return ()
    first = int(symbols.max()) + 1
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    meaning: list[tuple[int, tuple[int, ...]]] = []
    tried = 0
    while True:
        for period in _periods(symbols):
            if period <= tried:
                continue
            shorter = _fold_period(symbols, period, first, known, meaning)
            if shorter is not None:
                symbols, tried = shorter, 0
                break
        else:
            break
    made: dict[int, Loop] = {}
    for place, (count, body) in enumerate(meaning):
        made[first + place] = Loop(count, tuple(made.get(each, each) for each in body))
    return tuple(made.get(each, each) for each in symbols.tolist())


def _periods(symbols: Ints) -> list[int]:
    """Periods that may repeat somewhere, shortest first."""
    if symbols.size < 2:
        return []
    order = np.argsort(symbols, kind="stable")
    same = symbols[order][1:] == symbols[order][:-1]
    gaps = (order[1:] - order[:-1])[same]
    found, times = np.unique(gaps, return_counts=True)
    # A period repeats only where some number comes again just so much later; rare and long ones are chance.
    some = {*found.tolist()} if found.size <= 4 * ALWAYS else {*found[times >= 2].tolist()}
    some |= {*range(1, ALWAYS + 1)}
    return sorted(period for period in some if period <= symbols.size // 2)


def _fold_period(
    symbols: Ints,
    period: int,
    first: int,
    known: dict[tuple[int, tuple[int, ...]], int],
    meaning: list[tuple[int, tuple[int, ...]]],
) -> Ints | None:
    """The sequence with all repetitions of one period folded; None where there are none."""
    same = np.concatenate([[False], symbols[:-period] == symbols[period:], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    long_enough = edges[1::2] - edges[::2] >= period
    starts, ends = edges[::2][long_enough], edges[1::2][long_enough]
    if starts.size:
        taken = _between_loops(symbols, starts, ends, period)
        starts, ends = starts[~taken], ends[~taken]
    pieces: list[Ints] = []
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        begin = max(start, done)
        if end - begin < period:
            continue
        count = (end - begin) // period + 1
        key = count, tuple(symbols[begin : begin + period].tolist())
        if key not in known:
            known[key] = first + len(meaning)
            meaning.append(key)
        pieces += [symbols[done:begin], np.array([known[key]], dtype=np.int64)]
        done = begin + count * period
    return np.concatenate([*pieces, symbols[done:]]) if pieces else None


def _between_loops(symbols: Ints, starts: Ints, ends: Ints, period: int) -> Flags:
    """Which repetitions of a period are two halves of longer ones: one ends within them, and another one begins.

    Parameters
    ----------
    starts, ends : of each repetition, of its first symbol and of the last but the period.
    """
    behind, before = np.zeros((2, starts.size), dtype=np.bool_)
    stops = ends + period
    for longer in range(period + 1, min(BETWEEN, symbols.size // 2) + 1):
        same = np.concatenate([[False], symbols[:-longer] == symbols[longer:], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        often = edges[1::2] - edges[::2] >= 2 * longer
        first, last = edges[::2][often], edges[1::2][often] + longer
        if not first.size:
            continue
        # The last of the longer ones that begin before the repetition ends within it; the next begins within it.
        at = np.searchsorted(first, starts, side="left") - 1
        ending = (at >= 0) & (last[at] > starts) & (last[at] < stops)
        nearest = np.minimum(np.searchsorted(first, starts, side="right"), first.size - 1)
        beginning = (first[nearest] > starts) & (first[nearest] < stops) & (last[nearest] > stops)
        behind |= ending
        before |= beginning
    return behind & before


def unfolded(nodes: Sequence[Node]) -> Ints:
    """The original sequence of a folded one.

    >>> unfolded(folded([7, 1, 2, 2, 1, 2, 2, 9])).tolist()
    [7, 1, 2, 2, 1, 2, 2, 9]
    """
    parts = [
        np.tile(unfolded(node.body), node.count) if isinstance(node, Loop) else np.array([node], dtype=np.int64)
        for node in nodes
    ]
    return np.concatenate(parts) if parts else np.array([], dtype=np.int64)


def length(nodes: Sequence[Node]) -> int:
    """The length of the original sequence of a folded one."""
    return sum(node.count * length(node.body) if isinstance(node, Loop) else 1 for node in nodes)
