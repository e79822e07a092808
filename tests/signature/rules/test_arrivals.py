"""Requests that are waited for as they complete: their order is chance, and no rule of single processes explains it."""

from __future__ import annotations

import numpy as np
import pytest

from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.expanding import expanded, lines, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.actions import NULL
from metasched.signature.traces.trace import Trace, trace_of

COUNTS = (4, 8, 16)


def halo(n: int, steps: int, seed: int | None) -> Trace:
    """Exchanges with neighbours in a grid with borders; waits are drawn by lot, as after MPI_Waitany, or in order."""
    draw, (rows, columns) = np.random.default_rng([seed or 0, n]), TOPOLOGIES["grid 01"](n)

    def exchange(rank: int) -> list[tuple[str, tuple[float, ...]]]:
        row, column = divmod(rank, columns)
        near = [
            at * columns + to if 0 <= at < rows and 0 <= to < columns else NULL
            for at, to in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        ]
        size = [7680 // columns] * 2 + [7680 // rows] * 2
        there = [(tag, peer) for tag, peer in enumerate(near) if peer != NULL]
        waits = [(peer, rank, tag ^ 1) for tag, peer in there] + [(rank, peer, tag) for tag, peer in there]
        order = range(len(waits)) if seed is None else draw.permutation(len(waits)).tolist()
        return [
            *(("irecv", (peer, tag ^ 1, size[tag], 6)) for tag, peer in enumerate(near)),
            *(("isend", (peer, tag, size[tag], 6)) for tag, peer in enumerate(near)),
            *(("wait", waits[each]) for each in order),
            ("allreduce", (8, 0, 6)),
        ]

    return trace_of(
        {
            rank: [("init", ()), *(each for _ in range(steps) for each in exchange(rank)), ("finalize", ())]
            for rank in range(n)
        }
    )


@pytest.mark.parametrize(("steps", "seed"), [(1, 0), (2, 1)])
def test_waits_in_the_order_of_arrival_follow_no_rule(steps: int, seed: int) -> None:
    found = fit([halo(n, steps, seed) for n in COUNTS])
    assert {"irecv", "isend", "wait"} <= {*found.unruled}
    # All but the beginning, the sums and the end.
    assert found.calls_ruled < 0.2
    assert [each.where for each in found.irregular][:1] == ["between init and allreduce"]
    assert len(sound(found.application, 32).processes) == 32


def test_the_same_program_with_waits_in_order_follows_rules() -> None:
    found = fit([halo(n, 1, None) for n in COUNTS])
    assert found.calls_ruled == 1.0
    assert [*lines(expanded(found.application, 32))] == [*lines(halo(32, 1, None))]
