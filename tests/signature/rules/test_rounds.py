"""Sums and barriers that programs write themselves in rounds, each with partners twice as far away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.reporting import valid_counts
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]


def exchanged(to: int, source: int) -> Action:
    """A message there, and one from elsewhere at once."""
    return "sendRecv", (800, to, 800, source, 6, 6)


def powers_below(limit: int) -> list[int]:
    """1, 2, 4, ... below a limit."""
    return [1 << bit for bit in range((limit - 1).bit_length())]


def disseminated(rank: int, n: int) -> list[Action]:
    """A barrier by dissemination: as many rounds as powers of two are below n."""
    return [exchanged((rank + far) % n, (rank - far) % n) for far in powers_below(n)]


def in_rows(rank: int, n: int) -> list[Action]:
    """The same in each row of a square."""
    side = round(n**0.5)
    row = rank - rank % side
    return [exchanged(row + (rank + far) % side, row + (rank - far) % side) for far in powers_below(side)]


def largest_power(n: int) -> int:
    """The largest power of two up to n."""
    return 1 << (n.bit_length() - 1)


def folded_in_pairs(rank: int, n: int) -> list[Action]:
    """A sum by recursive doubling as in MPICH: the first processes are paired, and only one of each pair goes on."""
    power = largest_power(n)
    left = n - power
    if rank < 2 * left and rank % 2 == 0:
        return [("send", (rank + 1, 1, 800, 6)), ("recv", (rank + 1, 3, 800, 6))]
    place = rank // 2 if rank < 2 * left else rank - left
    others = [place ^ far for far in powers_below(power)]
    partners = [2 * other + 1 if other < left else other + left for other in others]
    rounds = [exchanged(each, each) for each in partners]
    if rank < 2 * left:
        return [("recv", (rank - 1, 1, 800, 6)), *rounds, ("send", (rank - 1, 3, 800, 6))]
    return rounds


def folded_from_above(rank: int, n: int) -> list[Action]:
    """The other way to fold: the processes from the largest power of two on are paired with the first ones."""
    power = largest_power(n)
    if rank >= power:
        return [("send", (rank - power, 1, 800, 6)), ("recv", (rank - power, 3, 800, 6))]
    rounds = [exchanged(rank ^ far, rank ^ far) for far in powers_below(power)]
    if rank + power < n:
        return [("recv", (rank + power, 1, 800, 6)), *rounds, ("send", (rank + power, 3, 800, 6))]
    return rounds


def run(program: Callable[[int, int], list[Action]], n: int) -> Trace:
    """Four turns with some work and a sum."""
    turns = {rank: [("compute", (1e8 / n,)), *program(rank, n), ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *4 * turn, ("finalize", ())] for rank, turn in turns.items()})


def lines(trace: Trace) -> list[list[str]]:
    """The calls of each process, without the amounts of computation."""
    each = [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]
    return [[line for line in process if not line.startswith("compute")] for process in each]


@pytest.mark.parametrize("counts", [(12, 24, 48), (11, 23, 47), (6, 10, 20), (16, 32, 64), (9, 20, 48)])
@pytest.mark.parametrize("program", [disseminated, folded_in_pairs, folded_from_above])
def test_rounds_are_as_many_as_powers_of_two(
    program: Callable[[int, int], list[Action]], counts: tuple[int, ...]
) -> None:
    found = fit([run(program, n) for n in counts])
    assert found.ruled == 1.0
    larger = (128, 1024) if counts == (16, 32, 64) else (97, 192, 200)
    assert valid_counts(found.application) == ("powers of two" if counts == (16, 32, 64) else "any")
    for n in larger:
        assert lines(sound(found.application, n)) == lines(run(program, n))


def test_rounds_in_rows_follow_the_length_of_rows() -> None:
    found = fit([run(in_rows, n) for n in (9, 25, 81)])
    assert found.ruled == 1.0
    for n in (36, 144, 289):
        assert lines(sound(found.application, n)) == lines(run(in_rows, n))
