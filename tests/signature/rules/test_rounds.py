"""Sums and barriers that programs write themselves in rounds, each with partners twice as far away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
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


def gathered(rank: int, n: int) -> list[Action]:
    """Bruck's allgather: each passes on all blocks that it holds, and in the last round those that are left."""
    return [passed_on(min(far, n - far), (rank - far) % n, (rank + far) % n) for far in powers_below(n)]


def passed_on(blocks: int, to: int, source: int) -> Action:
    """So many blocks there, and as many from elsewhere at once."""
    return "sendRecv", (800 * blocks, to, 800 * blocks, source, 6, 6)


def gathered_without_blocking(rank: int, n: int) -> list[Action]:
    """The same by messages that are started."""
    return [
        action
        for far in powers_below(n)
        for action in (
            ("irecv", ((rank + far) % n, 1, 800 * min(far, n - far), 6)),
            ("isend", ((rank - far) % n, 1, 800 * min(far, n - far), 6)),
            ("waitall", (2,)),
        )
    ]


def exchanged_by_bits(rank: int, n: int) -> list[Action]:
    """Bruck's exchange of all with all: the blocks whose number has a bit set go as far as it says."""
    return [
        passed_on(sum(block & far > 0 for block in range(n)), (rank + far) % n, (rank - far) % n)
        for far in powers_below(n)
    ]


def gathered_in_rows(rank: int, n: int) -> list[Action]:
    """Bruck's allgather in each row of a square."""
    side = round(n**0.5)
    row = rank - rank % side
    return [
        passed_on(min(far, side - far), row + (rank - far) % side, row + (rank + far) % side)
        for far in powers_below(side)
    ]


def the_rest_last(rank: int, n: int) -> list[Action]:
    """Bruck's allgather with the last round behind the loop, after some work."""
    *before, last = powers_below(n)
    rounds = [passed_on(far, (rank - far) % n, (rank + far) % n) for far in before]
    return [*rounds, ("compute", (1e5,)), passed_on(n - last, (rank - last) % n, (rank + last) % n)]


def to_nobody(rank: int, n: int) -> list[Action]:
    """The prefix sums of Hillis and Steele, with MPI_PROC_NULL past the first process and the last."""
    return [
        exchanged(rank + far if rank + far < n else -1, rank - far if rank >= far else -1) for far in powers_below(n)
    ]


def along_a_chain(rank: int, n: int) -> list[Action]:
    """Messages to both neighbours, and to nobody at the ends."""
    right, left = rank + 1 if rank + 1 < n else -1, rank - 1
    return [exchanged(right, left), exchanged(left, right)]


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


@pytest.mark.parametrize("counts", [(12, 24, 48), (11, 23, 47), (6, 10, 20), (16, 32, 64), (9, 20, 48)])
@pytest.mark.parametrize("program", [gathered, gathered_without_blocking, exchanged_by_bits])
def test_blocks_are_passed_on_until_all_have_all(
    program: Callable[[int, int], list[Action]], counts: tuple[int, ...]
) -> None:
    found = fit([run(program, n) for n in counts])
    assert found.ruled == 1.0
    larger = (128, 1024) if counts == (16, 32, 64) else (97, 128, 192, 200)
    assert valid_counts(found.application) == ("powers of two" if counts == (16, 32, 64) else "any")
    again = Application.of(found.application.as_dict())
    for n in larger:
        assert lines(sound(again, n)) == lines(run(program, n))


def test_blocks_are_passed_on_in_rows_until_the_row_has_all() -> None:
    found = fit([run(gathered_in_rows, n) for n in (9, 25, 81)])
    assert found.ruled == 1.0
    for n in (36, 144, 289):
        assert lines(sound(found.application, n)) == lines(run(gathered_in_rows, n))


def test_rounds_in_rows_that_are_half_of_all_rounds_are_open() -> None:
    found = fit([run(gathered_in_rows, n) for n in (9, 36, 64)])
    assert open_rules(found.application, [144]) == []
    assert lines(sound(found.application, 144)) == lines(run(gathered_in_rows, 144))
    (said,) = open_rules(found.application, [81])
    assert "loops run 0.5 rounds(n) (grid 01) or rounds(P0) times" in said


def test_what_the_last_round_leaves_is_open_where_it_is_a_part_of_all() -> None:
    found = fit([run(the_rest_last, n) for n in (12, 24, 48)])
    assert open_rules(found.application, [96]) == []
    assert lines(sound(found.application, 96)) == lines(run(the_rest_last, 96))
    (said,) = open_rules(found.application, [99])
    assert said == (
        "the runs do not tell 266.667 n of sendRecv from 800 left(n): the first is taken, a run of 9 processes would "
        "decide"
    )


def test_messages_as_far_as_the_largest_power_of_two_are_open_where_these_are_all() -> None:
    found = fit([run(the_rest_last, n) for n in (11, 23, 47)])
    *_, said = open_rules(found.application, [128])
    assert said.endswith("to the sender itself, a run of 4 processes would decide")


@pytest.mark.parametrize("counts", [(12, 24, 48), (11, 23, 47), (6, 10, 20), (16, 32, 64), (9, 20, 48)])
@pytest.mark.parametrize("program", [to_nobody, along_a_chain])
def test_calls_are_also_made_to_nobody_past_the_ends(
    program: Callable[[int, int], list[Action]], counts: tuple[int, ...]
) -> None:
    found = fit([run(program, n) for n in counts])
    assert found.ruled == 1.0
    again = Application.of(found.application.as_dict())
    for n in (128, 1024) if counts == (16, 32, 64) else (97, 128, 192, 200):
        assert lines(sound(again, n)) == lines(run(program, n))
