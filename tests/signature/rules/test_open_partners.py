"""Programs whose processes make the calls whose partner exists: sums by distances, cubes, trees with k children."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from metasched.signature.equations.open_partners import NOBODY, open_label, open_place
from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import sampled, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.rules.reporting import valid_counts
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
Program = Callable[[int, int], list[Action]]


def sent(to: int, size: int = 800) -> Action:
    """A message."""
    return "send", (to, 1, size, 6)


def got(source: int, size: int = 800) -> Action:
    """The other end of one."""
    return "recv", (source, 1, size, 6)


def waited(started: list[Action], always: bool = False) -> list[Action]:
    """Messages that are started, and the wait for all of them, perhaps also for none."""
    return started + [("waitall", (len(started),))] * (always or bool(started))


def distances(n: int) -> list[int]:
    """1, 2, 4, ... below a number of processes."""
    return [1 << bit for bit in range((n - 1).bit_length())]


def prefix_sums(rank: int, n: int) -> list[Action]:
    """The sums of Hillis and Steele, with messages that grow."""
    found: list[Action] = []
    for step, far in enumerate(distances(n)):
        size = 64 * (step + 1)
        found += [sent(rank + far, size)] * (rank + far < n) + [got(rank - far, size)] * (rank >= far)
    return found


def started_prefix_sums(rank: int, n: int, always: bool = False) -> list[Action]:
    """The same without blocking."""
    found: list[Action] = []
    for far in distances(n):
        to: list[Action] = [("isend", (rank + far, 1, 8, 6))] * (rank + far < n)
        found += waited([*to, *[("irecv", (rank - far, 1, 8, 6))] * (rank >= far)], always)
    return found


def waited_each_time(rank: int, n: int) -> list[Action]:
    """The same with a wait also where no message is open."""
    return started_prefix_sums(rank, n, always=True)


def cube(rank: int, n: int) -> list[Action]:
    """An exchange along all bits of the rank, the highest first, of any number of processes."""
    ways = [(rank ^ far, 8 * far) for far in reversed(distances(n)) if rank ^ far < n]
    return [("sendRecv", (size, partner, size, partner, 6, 6)) for partner, size in ways]


def downwards(children: int) -> Program:
    """A broadcast along a tree in which process r has the children k r + 1 to k r + k."""

    def program(rank: int, n: int) -> list[Action]:
        below = range(children * rank + 1, children * rank + children + 1)
        return [got((rank - 1) // children)] * (rank > 0) + [sent(child) for child in below if child < n]

    return program


def upwards(children: int) -> Program:
    """A reduction along the same tree, beside messages round a ring."""

    def program(rank: int, n: int) -> list[Action]:
        below = range(children * rank + 1, children * rank + children + 1)
        to_parent = [sent((rank - 1) // children)] * (rank > 0)
        ring: Action = ("sendRecv", (4096, (rank + 1) % n, 4096, (rank - 1) % n, 6, 6))
        return [*(got(child) for child in below if child < n), *to_parent, ring]

    return program


def stencil(ways: list[tuple[int, int]]) -> Program:
    """Messages in some directions of a grid with borders."""

    def program(rank: int, n: int) -> list[Action]:
        sides = balanced(n, 2)
        at = divmod(rank, sides[1])
        places = [(at[0] + down, at[1] + along) for down, along in ways]
        there = [row * sides[1] + column for row, column in places if 0 <= row < sides[0] and 0 <= column < sides[1]]
        started: list[Action] = [("irecv", (peer, 1, 640, 6)) for peer in there]
        return waited([*started, *(("isend", (peer, 1, 640, 6)) for peer in there)])

    return program


two_far = stencil([(by, 0) for by in (-2, -1, 1, 2)] + [(0, by) for by in (-2, -1, 1, 2)])
knights = stencil([(1, 2), (2, 1), (-1, -2), (-2, -1), (1, -2), (-1, 2), (2, -1), (-2, 1)])


def run(program: Program, n: int) -> Trace:
    """Four turns with some work and a sum."""
    turns = {rank: [("compute", (1e8 / n,)), *program(rank, n), ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *4 * turn, ("finalize", ())] for rank, turn in turns.items()})


def lines(trace: Trace) -> list[list[str]]:
    """The calls of each process, without the amounts of computation."""
    each = [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]
    return [[line for line in process if not line.startswith("compute")] for process in each]


ANY, ODD, POWERS = (12, 24, 48), (11, 23, 47), (16, 32, 64)


@pytest.mark.parametrize(
    ("program", "counts"),
    [
        *((prefix_sums, counts) for counts in (ANY, ODD, POWERS)),
        (started_prefix_sums, ANY),
        (waited_each_time, ODD),
        (cube, ANY),
        (cube, ODD),
        *((downwards(2), counts) for counts in (ANY, POWERS)),
        (downwards(5), ODD),
        *((upwards(2), counts) for counts in (ANY, POWERS)),
    ],
)
def test_every_call_of_a_larger_run_is_right_whatever_its_number(program: Program, counts: tuple[int, ...]) -> None:
    found = fit([run(program, n) for n in counts])
    assert (found.ruled, found.unruled, valid_counts(found.application)) == (1.0, {}, "any")
    for n in (100, 128):
        assert lines(sound(found.application, n)) == lines(run(program, n))


@pytest.mark.parametrize(
    ("program", "said"),
    # With two processes there is a neighbour, but nobody a knight's move away, as there was in all runs.
    [(two_far, []), (knights, ["a run of 2 processes would decide"])],
)
def test_every_call_of_a_larger_grid_with_borders_is_right(program: Program, said: list[str]) -> None:
    found = fit([run(program, n) for n in (12, 24, 48)])
    assert found.ruled == 1.0
    for n in (96, 144):
        assert lines(sound(found.application, n)) == lines(run(program, n))
    assert [line.rpartition(", ")[2] for line in open_rules(found.application) if "waitall" in line] == said
    assert not open_rules(found.application, [128, 200])


def along(program: Program, width: Callable[[int], int], rows: bool) -> Program:
    """The same among the processes of each row of a grid, or of each column."""

    def within(rank: int, n: int) -> list[Action]:
        side = width(n)
        row, column = divmod(rank, side)
        found: list[Action] = []
        for name, (peer, *rest) in program(column, side) if rows else program(row, n // side):
            found.append((name, (row * side + peer if rows else peer * side + column, *rest)))
        return found

    return within


def forth(rank: int, n: int) -> list[Action]:
    """From each process to the next."""
    return [got(rank - 1)] * (rank > 0) + [sent(rank + 1)] * (rank < n - 1)


def near_square(n: int) -> int:
    """The longer side of the grid of a number of processes."""
    return balanced(n, 2)[0]


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("program", [prefix_sums, forth])
@pytest.mark.parametrize(
    ("width", "counts"), [(lambda n: 4, POWERS), (lambda n: 8, POWERS), (near_square, POWERS), (near_square, ANY)]
)
def test_every_call_within_rows_and_columns_is_right(
    program: Program, width: Callable[[int], int], counts: tuple[int, ...], rows: bool
) -> None:
    # Three sides, of which one is as long in these runs, would be longer in larger ones.
    program = along(program, width, rows)
    found = fit([run(program, n) for n in counts])
    assert found.ruled == 1.0
    for n in (128, 200, 256):
        assert lines(sound(found.application, n)) == lines(run(program, n))


@pytest.mark.parametrize(
    ("program", "counts", "said"),
    [
        # Of powers of two every process has a message in each round; of twelve some have none.
        (started_prefix_sums, POWERS, ["a run of 3 processes would decide"]),
        (started_prefix_sums, ANY, []),
        (waited_each_time, ANY, []),
    ],
)
def test_waits_that_no_run_put_to_the_test_are_named_with_the_run_that_would(
    program: Program, counts: tuple[int, ...], said: list[str]
) -> None:
    application = fit([run(program, n) for n in counts]).application
    assert [line.rpartition(", ")[2] for line in open_rules(application) if "waitall" in line] == said
    assert not open_rules(application, [128])
    assert len(open_rules(application, [128, 200])) == len(said)


def test_waits_that_do_not_say_for_how_many_messages_are_left_to_statistics() -> None:
    def silent(rank: int, n: int) -> list[Action]:
        return [("waitall", ()) if name == "waitall" else (name, of) for name, of in waited_each_time(rank, n)]

    found = fit([run(silent, n) for n in ODD])
    assert {*found.unruled} >= {"isend", "irecv"}
    assert sound(found.application, 100).events


def test_rules_of_partners_that_some_lack_are_written_and_read() -> None:
    known = fit([run(started_prefix_sums, n) for n in (12, 24, 48)]).application
    again = Application.of(known.as_dict())
    assert again == known
    assert {"line: step 2^i1", "line: step -1 2^i1"} <= {str(each) for each in again.attributes()}


def test_a_sample_keeps_a_few_turns_and_the_calls_that_each_process_makes() -> None:
    known = fit([run(started_prefix_sums, n) for n in (12, 24, 48)]).application
    sample = sampled(known, 100, 0, 1)
    programs = [sample.programs[role] for role in sample.roles]
    assert [shapes.size for shapes, _ in programs] == [each.size for each in sound(known, 100).processes]
    assert [kept.size for _, kept in programs] == [each.size for each in sample.trace.processes]


@pytest.mark.parametrize(("kind", "of"), [("step", 0), ("flip", 0), ("branch", 3)])
def test_the_partner_of_a_label_is_the_one_that_has_it(kind: str, of: int) -> None:
    own, peer = (each.ravel() for each in np.meshgrid(np.arange(13), np.arange(13)))
    labels, known = open_label(kind, own, peer, of)
    assert known.any()
    assert open_place(kind, own, labels, of, 13)[known].tolist() == peer[known].tolist()
    assert set(open_place(kind, own, labels, of, 5).tolist()) <= {NOBODY, *range(5)}
