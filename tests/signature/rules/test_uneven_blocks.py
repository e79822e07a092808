"""Blocks of a grid whose lengths differ by a row or a column, where few runs show it."""

from __future__ import annotations

import pytest

from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.traces.trace import Trace, trace_of


def block(length: int, parts: int, at: int) -> int:
    """The length of a block: the first ones get one more."""
    return length // parts + (at < length % parts)


def halo(n: int, lengths: tuple[int, int], grid: str, variables: int = 1) -> Trace:
    """Rows and columns of a grid exchanged with the neighbours around it, of numbers of eight bytes."""
    (rows, columns), each = TOPOLOGIES[grid](n), 8 * variables

    def step(rank: int) -> list[tuple[str, tuple[float, ...]]]:
        x, y = divmod(rank, columns)
        up, down = ((x + by) % rows * columns + y for by in (1, -1))
        right, left = (x * columns + (y + by) % columns for by in (1, -1))
        wide, high = each * block(lengths[1], columns, y), each * block(lengths[0], rows, x)
        return [
            ("compute", (1e8 / n,)),
            ("sendRecv", (wide, up, wide, down, 6, 6)),
            ("sendRecv", (high, right, high, left, 6, 6)),
            ("allreduce", (1, 0, 0)),
        ]

    return trace_of({rank: [("init", ()), *4 * step(rank), ("finalize", ())] for rank in range(n)})


def texts(trace: Trace) -> list[list[str]]:
    """The messages of each process."""
    each = [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]
    return [[line for line in process if line.startswith(("send", "isend", "irecv"))] for process in each]


@pytest.mark.parametrize(
    ("lengths", "counts", "grid"),
    [
        ((1000, 1000), (16, 36, 64), "simgrid 01"),
        ((1000, 1000), (4, 8, 12), "grid 01"),
        ((1800, 1001), (8, 12, 32), "grid 01"),
        ((700, 400), (4, 8, 24), "grid 01"),
    ],
)
@pytest.mark.parametrize("variables", [1, 3])
def test_what_one_side_shows_of_blocks_holds_along_the_other(
    lengths: tuple[int, int], counts: tuple[int, ...], grid: str, variables: int
) -> None:
    found = fit([halo(n, lengths, grid, variables) for n in counts])
    assert found.ruled == 1.0
    for n in (60, 144, 256):
        assert texts(sound(found.application, n)) == texts(halo(n, lengths, grid, variables))


def test_blocks_that_came_out_even_everywhere_are_said_to_be_open() -> None:
    application = fit([halo(n, (1000, 1000), "grid 01") for n in (16, 32, 64)]).application
    assert not open_rules(application, [100])
    asked = [line for line in open_rules(application, [256]) if "rounded" in line]
    assert len(asked) == 2


def rounded_down(n: int, apart: bool = False) -> Trace:
    """Rows and columns of a grid with borders, without what is left over of 4,608 numbers of eight bytes.

    All is received before anything is sent where they are ``apart``.
    """
    rows, columns = TOPOLOGIES["grid 01"](n)

    def step(rank: int) -> list[tuple[str, tuple[float, ...]]]:
        x, y = divmod(rank, columns)
        found: list[tuple[str, tuple[float, ...]]] = [("compute", (1e8 / n,))]
        for by, along in ((columns, columns), (1, rows), (-1, rows), (-columns, columns)):
            there = 0 <= x + by // columns < rows if along == columns else 0 <= y + by < columns
            found += [(name, (rank + by, 3, 4608 // along * 8, 6)) for name in ("irecv", "isend") if there]
        if apart:
            sent = [each for each in found if each[0] == "isend"]
            received = [("irecv", numbers) for _, numbers in reversed(sent)]
            found = [found[0], *received, *sent]
        return [*found, ("waitall", (len(found) - 1,)), ("allreduce", (1, 0, 0))]

    return trace_of({rank: [("init", ()), *4 * step(rank), ("finalize", ())] for rank in range(n)})


def test_a_length_is_the_same_for_all_roles_and_the_pieces_that_it_may_have_are_said() -> None:
    # Shares of 1,536 pieces of 24 bytes come to the same in all runs as those of 4,608 of eight.
    application = fit([rounded_down(n) for n in (12, 20, 30)]).application
    shares = {atom for each in application.attributes() for part in each.parts() if part.expression is not None
              for _, atom in part.expression.terms if ":" in atom}  # fmt: skip
    assert {share.partition(":")[2] for share in shares} == {"1536"}
    assert open_rules(application, [30]) == []
    assert any("from 8 floor0:4608" in line for line in open_rules(application, [42]))


def test_a_length_is_dealt_out_in_one_way_in_all_roles() -> None:
    # Where nothing is left over but for the first, blocks of one more are what is rounded down.
    found = fit([rounded_down(n, apart=True) for n in (6, 12, 20)])
    assert (found.ruled, found.unruled) == (1.0, {})
    assert texts(sound(found.application, 30)) == texts(rounded_down(30, apart=True))


def sent_round(n: int) -> Trace:
    """Each process sends its part of 1,000 numbers of eight bytes round a ring; parts end at rounded places."""
    of = [8 * ((rank + 1) * 1000 // n - rank * 1000 // n) for rank in range(n)]
    calls = {
        rank: [("irecv", ((rank - 1) % n, 1, of[rank - 1], 6)), ("isend", ((rank + 1) % n, 1, of[rank], 6))]
        for rank in range(n)
    }
    turns = {rank: [("compute", (1e8 / n,)), *own, ("waitall", (2,))] for rank, own in calls.items()}
    return trace_of({rank: [("init", ()), *4 * own, ("finalize", ())] for rank, own in turns.items()})


def test_roles_whose_shares_no_one_way_gives_are_not_believed() -> None:
    # Of 16 processes each second one has one number more, as odd ones of 32 have not.
    found = fit([sent_round(n) for n in (4, 8, 16)])
    assert found.calls_ruled < 0.9
