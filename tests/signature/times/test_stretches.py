"""Runs whose repeated stretches are run once take as long as runs in which each is run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.signature.times.clocks import Clocks, run
from metasched.signature.times.costs import BlockCosts
from metasched.signature.times.hardware import LABEL, Hardware
from metasched.signature.times.stretches import operations_once
from metasched.signature.times.trees import RENDEZVOUS
from metasched.signature.traces.exchanges import exchanges
from metasched.signature.traces.trace import Trace, trace_of
from tests.signature.traces.drawn_programs import Action, Program, drawn

ENTRY = Entry(
    "made",
    Kind.cluster,
    "",
    {
        "latency": Quantity(1e-5, "s", "made"),
        "bandwidth": Quantity(1e9, "B/s", "made"),
        "speed": Quantity(1e9, "flop/s", "made"),
    },
)
LARGE = int(RENDEZVOUS / 8)
END: Action = ("allreduce", (1, 0, 0))


def run_both(trace: Trace) -> tuple[list[Clocks], list[Clocks], int]:
    """The clocks of two machines by all operations, and by each stretch once; how many operations the second had."""
    count = len(trace.processes)
    # Phases differ by action, as they do in programs.
    phases = np.concatenate(trace.processes).astype(np.int64) % 3
    costs = [
        BlockCosts(Hardware(ENTRY, ENTRY, per, computing=slow).placement(count), LABEL)
        for per, slow in ((1, 1.0), (2, 3.0))
    ]
    found, times = operations_once(trace, phases)
    return (
        run(trace, exchanges(trace), phases, costs),
        run(trace, found, phases, costs, times=times),
        found.kind.size,
    )


def assert_alike(trace: Trace) -> int:
    """Both take as long in each process and phase; how many operations are left out."""
    whole, once, size = run_both(trace)
    for one, other in zip(whole, once, strict=True):
        # Clocks are as exact as their last digits at the end of the run.
        exact = 1e-13 * float(one.end.max())
        for part in ("computing", "waiting", "end"):
            assert np.allclose(getattr(other, part), getattr(one, part), rtol=1e-12, atol=exact)
    return exchanges(trace).kind.size - size


def synchronized(program: Program, turns: int, ends: list[Action]) -> Program:
    """A program again and again, each time with other operations at its end."""
    return {
        rank: [each for turn in range(turns) for each in (*actions, ends[turn % len(ends)])]
        for rank, actions in program.items()
    }


@pytest.mark.parametrize(
    "ends", [[END], [END, ("barrier", ())], [END, ("bcast", (LARGE, 0, 0)), END, ("reduce", (8, 0, 1, 0))]]
)
@pytest.mark.parametrize("seed", range(40))
def test_drawn_programs_take_as_long(seed: int, ends: list[Action]) -> None:
    program = {rank: actions[1:-1] for rank, actions in drawn(seed).items()}
    left_out = assert_alike(trace_of(synchronized(program, 8, ends)))
    # Whom a wait for any is for is not known, so its requests stay open.
    assert left_out > 0 or any(name == "waitany" for actions in program.values() for name, _ in actions)


MESSAGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([10, 900, LARGE, 3 * LARGE])), max_size=9
)


@given(MESSAGES, st.integers(0, 3), st.booleans())
def test_stretches_of_messages_of_all_sizes_take_as_long(
    messages: list[tuple[int, int, int]], late: int, waiting: bool
) -> None:
    turn: Program = {rank: [("compute", (1e5 * (rank == late) + 1,))] for rank in range(4)}
    for source, on, size in messages:
        turn[source].append(("isend", ((source + on) % 4, 0, size, 0)))
        turn[(source + on) % 4].append(("irecv", (source, 0, size, 0)))
    done: Action = ("waitall", (18,))
    inside = {rank: [*actions, done] for rank, actions in turn.items()} if waiting else turn
    program = synchronized(inside, 6, [END])
    left_out = assert_alike(trace_of({rank: [*actions, done] for rank, actions in program.items()}))
    # Where requests stay open from one stretch to the next, each stretch is run.
    assert (left_out > 0) == (waiting or not messages)


def test_messages_from_one_stretch_to_the_next_keep_all_of_them() -> None:
    put, get = ("send", (1, 0, 10, 0)), ("recv", (0, 0, 10, 0))
    trace = trace_of({0: [put, END] * 5, 1: [END, get] * 5})
    assert assert_alike(trace) == 0


def test_processes_that_differ_in_their_operations_are_run_as_they_are() -> None:
    root = ("bcast", (10, 0, 0))
    trace = trace_of({0: [END, root] * 4, 1: [root, END] * 4})
    assert operations_once(trace, np.zeros(trace.events, dtype=np.int64))[1] is None


def test_events_with_other_labels_are_not_alike() -> None:
    trace = trace_of({rank: [("compute", (1e6,)), END] * 6 for rank in range(3)})
    labels = np.concatenate([np.arange(12) // 2 % 2 for _ in range(3)])
    found, times = operations_once(trace, labels)
    assert times is not None
    assert times.tolist() == [3.0] * 12
    assert found.event.tolist() == [place + 12 * rank for rank in range(3) for place in range(4)]
