"""Times of processes that were not run: clocks on blocks, sampled loops, intervals from rehearsal."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.signature.applications import APPLICATIONS
from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded, sampled
from metasched.signature.rules.fitting import fit
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.clocks import Clocks, run
from metasched.signature.times.costs import BlockCosts
from metasched.signature.times.hardware import LABEL, Hardware
from metasched.signature.times.prediction import GROWTH, predictions
from metasched.signature.times.timed import PhaseTime, Timed
from metasched.signature.times.trees import RENDEZVOUS
from metasched.signature.traces.exchanges import exchanges
from metasched.signature.traces.trace import Trace, trace_of

BY_NAME = {each.name: each for each in APPLICATIONS}
LATENCY, BANDWIDTH, SPEED = 1e-5, 1e9, 1e9
ENTRY = Entry(
    "made",
    Kind.cluster,
    "",
    {
        "latency": Quantity(LATENCY, "s", "made"),
        "bandwidth": Quantity(BANDWIDTH, "B/s", "made"),
        "speed": Quantity(SPEED, "flop/s", "made"),
        "tdp": Quantity(100.0, "W", "made"),
        "lambda": Quantity(1e-6, "1/s", "made"),
    },
)
HERE = Hardware(ENTRY, ENTRY)


def clocks(actions: dict[int, list[tuple[str, tuple[float, ...]]]]) -> Clocks:
    trace = trace_of(actions)
    phases = np.zeros(trace.events, dtype=np.int64)
    (clocks,) = run(trace, exchanges(trace), phases, [BlockCosts(HERE.placement(len(actions)), LABEL)])
    return clocks


def learned(name: str, counts: tuple[int, ...]) -> Application:
    return fit([BY_NAME[name].trace(n) for n in counts]).application


def test_a_message_takes_latency_and_bandwidth() -> None:
    found = clocks({0: [("send", (1, 0, 1000, 0))], 1: [("recv", (0, 0, 1000, 0))]})
    assert found.end.tolist() == pytest.approx([0.0, LATENCY + 8000 / BANDWIDTH])


def test_an_operation_of_some_processes_takes_their_messages() -> None:
    step = [("alltoall_on", (4, 1000, 1000, -1, -1)), ("barrier_on", (4,))]
    found = clocks({rank: step if rank < 4 else [] for rank in range(8)})
    message = LATENCY + 1000 / BANDWIDTH
    assert found.end.tolist() == pytest.approx([3 * message + 2 * LATENCY] * 4 + [0.0] * 4)
    assert found.waiting.sum() == pytest.approx(found.end.sum())


def test_messages_with_one_end_are_refused_or_keep_nobody_waiting() -> None:
    get, put = ("recv", (0, 0, 1000, 0)), ("send", (1, 0, 1000, 0))
    trace = trace_of({0: [put, put, ("recv", (1, 0, 1000, 0))], 1: [get, get, get]})
    with pytest.raises(InputError, match="messages are sent that nobody receives"):
        exchanges(trace)
    found = exchanges(trace, halves=True)
    assert (int(found.half.sum()), found.half.size, found.size.tolist()) == (2, 4, [8000.0] * 4)
    (clocks,) = run(trace, found, np.zeros(trace.events, dtype=np.int64), [BlockCosts(HERE.placement(2), LABEL)])
    ends = clocks.end
    # What is left alone occupies a link, but nobody waits for another process.
    assert ends.max() <= LATENCY + 4 * 8000 / BANDWIDTH


@pytest.mark.parametrize("name", ["multipartition", "farm", "panels"])
def test_several_machines_at_once_are_each_by_itself(name: str) -> None:
    trace = BY_NAME[name].trace(16)
    found, phases = exchanges(trace), np.arange(trace.events) % 3
    pace = np.arange(48.0).reshape(16, 3) % 4 * 1e-9
    machines = [HERE, Hardware(ENTRY, ENTRY, 4, computing=3.0), Hardware(ENTRY, ENTRY, sending=2.0)]
    costs = [BlockCosts(each.placement(16), LABEL) for each in machines]
    together = run(trace, found, phases, costs, pace)
    assert len({one.end.max() for one in together}) == 3
    for one, cost in zip(together, costs, strict=True):
        (alone,) = run(trace, found, phases, [cost], pace)
        for part in ("end", "computing", "waiting"):
            assert np.array_equal(getattr(one, part), getattr(alone, part))


def test_a_large_message_keeps_its_sender_until_it_has_arrived() -> None:
    many = RENDEZVOUS / 8
    work = ("compute", (1e6,))
    found = clocks({0: [("send", (1, 0, many, 0))], 1: [work, ("recv", (0, 0, many, 0))]})
    arrives = 1e6 / SPEED + LATENCY + RENDEZVOUS / BANDWIDTH
    assert found.end.tolist() == pytest.approx([arrives, arrives])


def test_computation_hides_a_message_that_was_asked_for_before() -> None:
    work = ("compute", (1e6,))
    found = clocks(
        {
            0: [("isend", (1, 0, 1000, 0)), work, ("waitall", (1,))],
            1: [("irecv", (0, 0, 1000, 0)), work, ("wait", (0, 1, 0))],
        }
    )
    assert found.end.tolist() == pytest.approx([1e6 / SPEED] * 2)
    assert found.waiting.sum() == 0.0


def test_messages_share_the_link_of_their_receiver() -> None:
    senders: dict[int, list[tuple[str, tuple[float, ...]]]] = {
        rank: [("send", (0, 0, 1000, 0))] for rank in range(1, 5)
    }
    found = clocks({0: [("irecv", (rank, 0, 1000, 0)) for rank in range(1, 5)] + [("waitall", (4,))]} | senders)
    assert found.end[0] == pytest.approx(LATENCY + 4 * 8000 / BANDWIDTH)


@pytest.mark.parametrize(
    "first",
    [
        [("recv", (0, 0, 1000, 0))],
        [("irecv", (0, 0, 1000, 0)), ("wait", (0, 1, 0))],
        [("sendrecv", (0, 0, 1000, 0, 0, 0))],
    ],
)
def test_what_was_received_before_a_wait_for_all_is_not_received_again(
    first: list[tuple[str, tuple[float, ...]]],
) -> None:
    sent = [("send", (1, 0, 1000, 0)), ("isend", (1, 1, 1000, 0)), ("waitall", (1,))]
    back = [("recv", (1, 0, 0, 0))] if first[0][0] == "sendrecv" else []
    found = clocks({0: [*sent, *back], 1: [*first, ("irecv", (0, 1, 1000, 0)), ("waitall", (1,))]})
    assert found.end[1] == pytest.approx(LATENCY + 2 * 8000 / BANDWIDTH)


@pytest.mark.parametrize("count", [2, 3, 8, 13])
def test_a_broadcast_reaches_the_last_after_as_many_messages_as_the_tree_is_deep(count: int) -> None:
    found = clocks({rank: [("bcast", (0, 0, 0))] for rank in range(count)})
    deepest = max(rank.bit_count() for rank in range(count))
    assert found.end.max() == pytest.approx(deepest * LATENCY)


def test_a_broadcast_does_not_wait_for_those_who_come_late() -> None:
    found = clocks(
        {0: [("bcast", (0, 0, 0))], 1: [("bcast", (0, 0, 0))], 2: [("compute", (1e9,)), ("bcast", (0, 0, 0))]}
    )
    assert found.end[1] < 0.1
    assert found.end[2] == pytest.approx(1.0 + LATENCY)


def test_whoever_comes_late_to_a_broadcast_keeps_those_waiting_who_get_it_from_him() -> None:
    late = [("compute", (1e9,)), ("bcast", (0, 0, 0))]
    found = clocks({rank: late if rank == 2 else [("bcast", (0, 0, 0))] for rank in range(4)})
    # Of a root 0 the tree is 0 to 2 to 3, and 0 to 1.
    assert found.end[1] < 0.5
    assert found.end[3] > 1.0


def test_small_messages_of_a_broadcast_share_the_link_of_their_sender() -> None:
    # The root sends to two others at once, and goes on itself.
    small = 1000
    found = clocks({rank: [("bcast", (small, 0, 0))] for rank in range(3)})
    assert found.end[1:] == pytest.approx(2 * [LATENCY + 2 * 8 * small / BANDWIDTH])
    assert found.end[0] == 0.0
    again = clocks({rank: 2 * [("bcast", (small, 0, 0))] for rank in range(3)})
    assert again.end[1:] == pytest.approx(2 * [2 * LATENCY + 4 * 8 * small / BANDWIDTH])


def test_processes_that_wait_for_each_other_are_named() -> None:
    many = RENDEZVOUS
    both = {rank: [("send", (1 - rank, 0, many, 0)), ("recv", (1 - rank, 0, many, 0))] for rank in range(2)}
    with pytest.raises(InputError, match="wait for each other: process 0 in send"):
        clocks(both)


def test_messages_without_a_receiver_are_refused() -> None:
    with pytest.raises(InputError, match="that nobody receives"):
        clocks({0: [("isend", (1, 0, 1, 0))], 1: []})


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 3000)), min_size=1, max_size=30))
def test_more_bytes_never_end_earlier(messages: list[tuple[int, int, int]]) -> None:
    def end(factor: int) -> float:
        actions: dict[int, list[tuple[str, tuple[float, ...]]]] = {rank: [] for rank in range(4)}
        for source, on, size in messages:
            actions[source].append(("isend", ((source + on) % 4, 0, factor * size, 0)))
            actions[(source + on) % 4].append(("recv", (source, 0, factor * size, 0)))
        return float(clocks(actions).end.max())

    assert end(1) <= end(2) + 1e-12


def test_sampled_turns_are_the_first_of_equal_stretches() -> None:
    application = learned("ring", (16, 32, 64))
    whole, some = expanded(application, 128), sampled(application, 128, 8)
    assert some.trace.events < whole.events / 8
    shapes, kept = some.programs[0]
    assert whole.shapes[whole.processes[0]].size == shapes.size
    texts = [whole.table.text(action) for action in whole.processes[5][kept].tolist()]
    assert texts == [some.trace.table.text(action) for action in some.trace.processes[5].tolist()]


@pytest.mark.parametrize(("name", "counts"), [("ring", (16, 32, 64)), ("farm", (16, 32, 64))])
def test_what_is_left_out_of_loops_is_made_up_for(
    name: str, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    application = learned(name, counts)
    whole = by_blocks(application, HERE)(256)
    monkeypatch.setattr("metasched.signature.times.clocked_runs.MOST_ACTIONS", 1)
    monkeypatch.setattr("metasched.signature.times.clocked_runs.FEWEST_TURNS", 4)
    some = by_blocks(application, HERE)(256)
    assert some.time == pytest.approx(whole.time, rel=0.05)


def test_phases_come_to_the_whole_time() -> None:
    (found,) = predictions(by_blocks(learned("2-D halo, around", (16, 32, 64)), HERE), "blocks", [256], {}, True)
    assert sum(each.weight * each.time for each in found.phases) == pytest.approx(found.execution_time)
    assert found.energy == pytest.approx(256 * 100.0 * found.execution_time, rel=0.01)
    assert 0.99 < found.success < 1.0
    assert any("no timed run was predicted to compare" in line for line in found.warnings)


def timed(computation: float, communication: float) -> Timed:
    return Timed((PhaseTime(0, 1, computation + communication, computation, communication),))


def test_runs_correct_what_blocks_say_of_communication() -> None:
    def engine(n: int) -> Timed:
        return timed(100.0 / n, 1.0)

    measured = {n: 100.0 / n + 1.5 for n in (4, 8, 16)}
    (found,) = predictions(engine, "blocks", [64], measured, True)
    assert found.execution_time == pytest.approx(100.0 / 64 + 1.5, rel=0.01)
    assert found.interval[0] < found.execution_time < found.interval[1]


def test_runs_correct_messages_and_no_waits_for_what_others_compute() -> None:
    application = learned("wavefront, 4 corners", (16, 32, 64))
    engine = by_blocks(application, HERE)
    # On twice slower links only messages take longer; most of the time in calls is spent waiting for others.
    links = {"latency": Quantity(2 * LATENCY, "s", "made"), "bandwidth": Quantity(BANDWIDTH / 2, "B/s", "made")}
    slower = by_blocks(application, Hardware(ENTRY, Entry("slow", Kind.cluster, "", {**ENTRY.values, **links})))
    measured = {n: slower(n).time for n in (16, 32, 64)}
    (found,) = predictions(engine, "blocks", [256], measured, True)
    assert engine(256).carrying < 0.3 * sum(each.weight * each.communication for each in engine(256).phases)
    assert found.execution_time == pytest.approx(slower(256).time, rel=0.01)
    assert sum(each.weight * each.time for each in found.phases) == pytest.approx(found.execution_time)


def test_intervals_are_as_wide_as_the_rehearsal_was_wrong() -> None:
    def engine(n: int) -> Timed:
        return timed(100.0 / n, 0.0)

    width = {}
    for wrong in (1.0, 1.1, 1.3):
        measured = {4: 25.0, 8: 12.5, 16: 6.25 * wrong}
        (found,) = predictions(engine, "replay", [64], measured, False)
        width[wrong] = math.log(found.interval[1] / found.interval[0])
    assert width[1.0] < width[1.1] < width[1.3]


@pytest.mark.parametrize("way", [1, -1])
def test_what_statistics_miss_of_calls_without_a_rule_grows_with_the_processes(way: int) -> None:
    """The largest run took 0.2 s more or less than predicted: that of four times as many may miss 1.25 s to this side.

    To the other side it is 0.2 s, as if they were chance.
    """

    def engine(n: int) -> Timed:
        return timed(100.0 / n, 0.0)

    measured = {4: 25.0, 8: 12.5, 16: 6.25 + way * 0.2}
    ruled, unruled = (predictions(engine, "blocks", [16, 64], measured, True, each) for each in (True, False))
    assert [each.execution_time for each in unruled] == [each.execution_time for each in ruled]
    for each, grown in zip(unruled, (0.2, 0.2 * GROWTH**2), strict=True):
        (low, high), time = each.interval, each.execution_time
        ends = [math.log(time / low), math.log(high / time)][::way]
        # With what blocks are doubted by themselves: 0.4 % of all, more beyond the largest run.
        assert ends == pytest.approx([math.log1p(missed / time) for missed in (0.2, grown)], abs=0.012)
    assert ruled[1].interval[1] / ruled[1].execution_time < 1.1
    exact = {4: 25.0, 8: 12.5, 16: 6.25}
    both = (predictions(engine, "blocks", [64], exact, True, each) for each in (True, False))
    assert len({each.interval for (each,) in both}) == 1


def test_what_a_factor_of_messages_hides_at_few_processes_is_doubted_at_many() -> None:
    """All send to one: with twice as many it takes twice as long, which no factor of a constant makes."""

    def engine(n: int) -> Timed:
        return timed(100.0 / n, 0.01)

    measured = {n: 100.0 / n + 0.05 * n for n in (4, 8, 16)}
    ruled, unruled = (predictions(engine, "blocks", [64], measured, True, each)[0] for each in (True, False))
    assert ruled.interval[1] < 100.0 / 64 + 0.05 * 64 < unruled.interval[1]
    assert unruled.execution_time == ruled.execution_time


def test_an_interval_holds_what_other_rules_say_that_the_runs_allow_as_well() -> None:
    def engine(n: int) -> Timed:
        return timed(100.0 / n, 0.1)

    def other(n: int) -> Timed:
        if n > 64:
            raise InputError("a role that no run showed")
        return timed(100.0 / n, 0.4)

    measured = {n: 100.0 / n + 0.1 for n in (4, 8, 16)}
    alone, both = (predictions(engine, "blocks", [64, 128], measured, True, True, each) for each in ([], [other]))
    assert both[0].interval == pytest.approx(
        (alone[0].interval[0], other(64).time * alone[0].interval[1] / alone[0].execution_time)
    )
    assert both[0].execution_time == alone[0].execution_time
    assert both[1].interval == alone[1].interval


@pytest.mark.parametrize("slower", [0.05, 20.0])
def test_an_engine_for_another_machine_is_told_and_its_intervals_stay_believable(slower: float) -> None:
    def engine(n: int) -> Timed:
        return timed(100.0 / n, 0.01 * n)

    measured = {n: slower * (engine(n).time) for n in (4, 8, 16)}
    found = predictions(engine, "blocks", [16, 64, 256], measured, True)
    assert len(found) == 3
    for each in found:
        low, high = each.interval
        assert low < slower * each.execution_time < high
        assert high / low < 1e6
        (line,) = each.warnings
        assert "times as long as predicted" in line


def test_intervals_are_wide_where_processes_communicate() -> None:
    def engine(n: int) -> Timed:
        return timed(100.0 / n, 0.01 * n)

    measured = {n: engine(n).time for n in (4, 8, 16)}
    found = predictions(engine, "blocks", [16, 64, 256], measured, True)
    width = [math.log(each.interval[1] / each.execution_time) for each in found]
    # 8 % of the communication, besides 0.4 % of the whole; more with every doubling beyond the largest run.
    shares = [0.01 * n / (100.0 / n + 0.01 * n) for n in (16, 64, 256)]
    grown = [max(1.0, 0.37 * doublings**1.5) for doublings in (1, 3, 5)]
    assert width == pytest.approx([math.hypot(0.004, 0.08 * s) * g for s, g in zip(shares, grown, strict=True)])


@pytest.mark.parametrize("root", [0, 5])
def test_parts_for_a_root_take_as_long_as_messages_to_and_from_it(root: int) -> None:
    count = 8
    # Small messages of all sizes, but those of the root to itself.
    sizes = [float(1000 * (1 + rank % 3)) for rank in range(count)]

    def ends(of: Callable[[int], list[tuple[str, tuple[float, ...]]]]) -> list[float]:
        return clocks({rank: of(rank) for rank in range(count)}).end.tolist()

    def parts(rank: int) -> list[float]:
        return sizes if rank == root else [0.0] * count

    sizes[root] = sum(sizes[:root] + sizes[root + 1 :]) / (count - 1)
    others = [rank for rank in range(count) if rank != root]
    found = ends(lambda rank: [("gatherv", (sizes[rank], *parts(rank), root, -1, -1))])
    true = ends(
        lambda rank: (
            [("recv", (each, 0, sizes[each], -1)) for each in others]
            if rank == root
            else [("send", (root, 0, sizes[rank], -1))]
        )
    )
    assert found == pytest.approx(true)
    found = ends(lambda rank: [("compute", (1e6,))] * (rank == root) + [
        ("scatterv", (*parts(rank), sizes[rank], root, -1, -1)),
    ])  # fmt: skip
    true = ends(
        lambda rank: (
            [("compute", (1e6,)), *(("send", (each, 0, sizes[each], -1)) for each in others)]
            if rank == root
            else [("recv", (root, 0, sizes[rank], -1))]
        )
    )
    assert max(found) == pytest.approx(max(true))


def test_parts_of_some_processes_take_as_long_wherever_their_sizes_are_known() -> None:
    some, size = 4, 5000.0
    late = LATENCY + (some - 1) * size / BANDWIDTH
    for parts in ([size] * some, [0.0] * some):
        found = clocks({0: [("gatherv_on", (some, size, *parts, 0, -1, -1))], 1: []})
        assert found.end[0] == pytest.approx(late)
        found = clocks({0: [("scatterv_on", (some, *parts, size, 0, -1, -1))], 1: []})
        assert found.end[0] == pytest.approx(late)


def test_what_all_gather_takes_as_long_with_a_list_of_their_parts() -> None:
    for size in (10.0, 100_000.0):
        for name in ("allgather", "allgather_on"):
            first = (4,) * name.endswith("_on")
            alike, listed = ((*first, size, *rest, -1, -1) for rest in ((size,), (size,) * 4))
            found = clocks({rank: [(name, alike)] for rank in range(4)})
            also = clocks({rank: [(name.replace("gather", "gatherv"), listed)] for rank in range(4)})
            assert also.end.tolist() == pytest.approx(found.end.tolist())


def test_all_processes_of_a_scattering_get_what_only_its_root_sends() -> None:
    of_root, of_others = clocks(
        {0: [("scatter_on", (4, 1e5, 1e5, 0, -1, -1))], 1: [("scatter_on", (4, 0.0, 1e5, 0, -1, -1))]}
    ).end
    assert of_others == of_root > 1e5 / BANDWIDTH


@pytest.mark.parametrize("works", [0, 1, 2, 7])
def test_large_messages_share_the_link_of_their_sender_whenever_they_are_asked_for(works: int) -> None:
    size, workers = RENDEZVOUS, 5
    sent = [("isend", (rank, 1, size, -1)) for rank in range(1, workers + 1)]
    asked = [*[("compute", (1.0,))] * works, ("recv", (0, 1, size, -1))]
    found = clocks({0: [*sent, ("waitall", (workers,))], **dict.fromkeys(range(1, workers + 1), asked)})
    assert found.end.max() == pytest.approx(LATENCY + workers * size / BANDWIDTH, rel=1e-3)
    assert np.diff(np.sort(found.end[1:])) == pytest.approx([size / BANDWIDTH] * (workers - 1), rel=1e-3)


@pytest.mark.parametrize("works", [0, 1, 2, 7])
def test_who_asks_late_keeps_none_waiting_who_asks_before(works: int) -> None:
    size, workers = RENDEZVOUS, 5
    sent = [("isend", (rank, 1, size, -1)) for rank in range(1, workers + 1)]
    asked = [*[("compute", (1.0,))] * works, ("recv", (0, 1, size, -1))]
    found = clocks(
        {
            0: [*sent, ("waitall", (workers,))],
            1: [("compute", (SPEED,)), ("recv", (0, 1, size, -1))],
            **dict.fromkeys(range(2, workers + 1), asked),
        }
    )
    late = 1.0 + LATENCY + size / BANDWIDTH
    assert found.end[[0, 1]] == pytest.approx([late, late])
    assert found.end[2:].max() == pytest.approx(LATENCY + (workers - 1) * size / BANDWIDTH, rel=1e-3)


def test_parts_are_as_long_as_processes_say_where_lists_hold_their_statistics() -> None:
    count, part = 8, 5000.0
    late = LATENCY + (count - 1) * part / BANDWIDTH
    # A list that follows no rule has the same numbers in all processes, though only one of them gathers.
    found = clocks({rank: [("gatherv", (part, *[part / count] * count, 3, -1, -1))] for rank in range(count)})
    assert found.end[3] == pytest.approx(late)
    found = clocks({rank: [("scatterv", (*[part / count] * count, part, 3, -1, -1))] for rank in range(count)})
    assert found.end[3] == pytest.approx(late)


@pytest.mark.parametrize("serial", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_what_every_process_does_again_is_no_power_of_their_number(serial: float, seed: int) -> None:
    source = np.random.default_rng(seed)

    def of(count: int, noise: float) -> Trace:
        """A part of the computation is done by each process; runs are faster or slower, and each turn a little."""
        work = 1e6 * (serial + (1.0 - serial) / count) * math.exp(noise * source.standard_normal())
        turn = [("allreduce", (8, 0, -1))]

        def computed() -> tuple[str, tuple[float, ...]]:
            return "compute", (float(f"{work * math.exp(0.3 * noise * source.standard_normal()):.6g}"),)

        return trace_of({rank: [each for _ in range(20) for each in (computed(), *turn)] for rank in range(count)})

    application = fit([of(count, 0.003).steadied() for count in (8, 16, 32)]).application
    (found,) = run(
        true := of(256, 0.0),
        exchanges(true),
        np.zeros(true.events, dtype=np.int64),
        [BlockCosts(HERE.placement(256), LABEL)],
    )
    assert by_blocks(application, HERE)(256).time == pytest.approx(found.end.max(), rel=0.15)
