"""Programs of which only parts follow rules: these are found, and what follows none is named and kept in statistics."""

from __future__ import annotations

import json
from math import isqrt

import numpy as np
import pytest

from metasched.records import InputError
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded, sound
from metasched.signature.rules.fits import Fit
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.irregular import statistical
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import assumed
from metasched.signature.traces.actions import NULL
from metasched.signature.traces.message_order import in_order
from metasched.signature.traces.parts import cut
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
COUNTS = (4, 8, 16)


def scattered(n: int, steps: int = 3) -> Trace:
    """A ring, sums, and exchanges with partners drawn by lot, more of them in some processes than in others."""
    draw = np.random.default_rng(n)
    actions: dict[int, list[Action]] = {rank: [("init", ())] for rank in range(n)}
    for _ in range(steps):
        for rank in range(n):
            actions[rank] += [
                ("compute", (1e6 / n,)), ("isend", ((rank + 1) % n, 1, 4096 // n, -1)),
                ("recv", ((rank - 1) % n, 1, 4096 // n, -1)), ("waitall", (1,)), ("allreduce", (8, 0, -1)),
            ]  # fmt: skip
        for _ in range(4 * n):
            one, other = (int(each) for each in draw.choice(n, 2, replace=False))
            actions[one].append(("send", (other, 2, 64, -1)))
            actions[other].append(("recv", (one, 2, 64, -1)))
        for rank in range(n):
            actions[rank].append(("barrier", ()))
    for rank in range(n):
        actions[rank].append(("finalize", ()))
    return trace_of(actions)


def rotating(n: int) -> Trace:
    """A pipeline along each row of a square, which every process of the row begins once."""
    side = isqrt(n)

    def steps(rank: int) -> list[Action]:
        row, at = divmod(rank, side)
        found: list[Action] = []
        for first in range(side):
            place = (at - first) % side
            found += [("recv", (row * side + (at - 1) % side, 1, 100, 0))] * (place > 0)
            found += [("compute", (1e9 / n,))]
            found += [("send", (row * side + (at + 1) % side, 1, 100, 0))] * (place < side - 1)
        return found

    return trace_of({rank: [("init", ()), *steps(rank), ("finalize", ())] for rank in range(n)})


def test_a_pipeline_whose_first_process_rotates_in_a_row_is_named_and_expanded_by_statistics() -> None:
    found = fit([rotating(n) for n in (16, 36, 64)])
    (odd,) = found.irregular
    assert (odd.where, odd.calls) == ("between init and finalize", ("compute", "recv", "send"))
    assert len(sound(found.application, 144).processes) == 144


def named(trace: Trace, rank: int, *names: str) -> list[str]:
    texts = [trace.table.text(action) for action in trace.processes[rank].tolist()]
    return [text for text in texts if text.split()[0] in names]


@pytest.fixture(scope="module")
def parted() -> Fit:
    """The rules of a program in parts."""
    return fit([scattered(n) for n in COUNTS])


def test_parts_that_follow_no_rule_are_named_and_the_others_are_found(parted: Fit) -> None:
    found = parted
    # The last turn of the loop, which is left another way, is a place of its own.
    assert {each.where for each in found.irregular} == {"between allreduce and barrier"}
    assert {each.calls for each in found.irregular} == {("recv", "send")}
    odd = sum(each.events for each in found.irregular)
    assert 0.4 < odd < 0.7
    assert found.ruled == pytest.approx(1.0 - odd)
    made, true = sound(found.application, 64), scattered(64)
    for rank in (0, 1, 40, 63):
        for names in (("allreduce", "barrier"), ("isend", "waitall", "compute")):
            assert named(made, rank, *names) == named(true, rank, *names)
    # One ring message and four drawn ones a step, each of 64 bytes.
    assert named(made, 5, "sendRecv") == ["sendRecv 64 6 64 4 6 6"] * 12
    assert by_blocks(found.application, assumed())(64).phases


def test_an_application_in_parts_comes_back_from_its_document(parted: Fit) -> None:
    found = parted.application
    again = Application.of(json.loads(json.dumps(found.as_dict())))
    assert again.as_dict() == found.as_dict()
    assert [*map(len, expanded(again, 32).processes)] == [*map(len, expanded(found, 32).processes)]


@pytest.mark.parametrize("how", ["nested", "no mark", "no number", "no part"])
def test_parts_of_another_form_are_refused(how: str, parted: Fit) -> None:
    document = parted.application.as_dict()
    leaf, part = next(iter(document["parts"].items()))
    document["parts"] = {
        "nested": {leaf: {**part, "parts": {"0": part}}},
        "no mark": {"1": part},
        "no number": {"x": part},
        "no part": {leaf: [1]},
    }[how]
    with pytest.raises(InputError, match="another form"):
        Application.of(document)


def timed(n: int) -> Trace:
    """Loops that run as often as the time allows, before one that does not."""
    turns = {4: 17, 8: 23, 16: 5}.get(n, 3)
    one, other = np.random.default_rng(n).choice(n, 2, replace=False).tolist()

    def whole(rank: int) -> list[Action]:
        ring: Action = ("sendRecv", (64, (rank + 1) % n, 64, (rank - 1) % n, -1, -1))
        body: list[Action] = [("init", ()), *([("alltoall", (64, 64, -1, -1)), ring, ("barrier", ())] * turns)]
        some: list[Action] = [("bcast", (8, 0, -1)), ("reduce", (8, 0, 0, -1)), ("reduce", (8, 0, 0, -1))]
        return [*body, *[("send", (other, 0, 8, -1))] * (rank == one), *[("recv", (one, 0, 8, -1))] * (rank == other),
                *some, ("finalize", ())]  # fmt: skip

    return trace_of({rank: whole(rank) for rank in range(n)})


def test_loops_without_a_rule_run_as_often_as_a_power_law_says() -> None:
    found = fit([timed(n) for n in COUNTS])
    # What is done in each turn follows rules, and who tells whom at the end does not.
    assert {*found.unruled} == {"alltoall", "barrier", "recv", "send"}
    assert {each.calls for each in found.irregular} == {("recv", "send")}
    made = expanded(found.application, 32)
    assert 3 <= len(named(made, 7, "alltoall")) <= 8
    assert named(made, 7, "sendRecv") == ["sendRecv 64 8 64 6 -1 -1"] * len(named(made, 7, "alltoall"))
    assert named(made, 7, "reduce", "bcast") == named(timed(32), 7, "reduce", "bcast")


def twice_timed(n: int) -> Trace:
    """Two loops that run as often as the time allows; each run goes round one of them once only."""
    first, second = {4: (1, 16), 8: (25, 1), 16: (7, 1)}.get(n, (5, 1))
    draw = np.random.default_rng(n)
    loop: list[Action] = [("alltoall", (64, 64, -1, -1)), ("barrier", ())]
    actions: dict[int, list[Action]] = {
        rank: [("init", ()), *(loop * first), ("bcast", (8, 0, -1))] for rank in range(n)
    }
    for _ in range(4 * n):
        one, other = (int(each) for each in draw.choice(n, 2, replace=False))
        actions[one].append(("send", (other, 2, 64, -1)))
        actions[other].append(("recv", (one, 2, 64, -1)))
    for rank in range(n):
        actions[rank] += [("reduce", (8, 0, 0, -1)), ("allreduce", (8, 0, -1)), *(loop * second), ("finalize", ())]
    return trace_of(actions)


def test_loops_that_no_run_has_all_of_are_found_in_all_runs_together() -> None:
    found = fit([twice_timed(n) for n in COUNTS])
    made = expanded(found.application, 32)
    assert len(named(made, 7, "alltoall")) == len(named(made, 7, "barrier")) >= 2
    assert named(made, 7, "reduce", "bcast", "allreduce") == named(twice_timed(32), 7, "reduce", "bcast", "allreduce")
    # By their laws, parts of it are run in no turn there.
    assert len(expanded(found.application, 64).processes) == 64


def sometimes(n: int) -> Trace:
    """Rings in an order drawn by lot, and sums, after some of which two talk on some numbers of processes only."""
    draw = np.random.default_rng(n)
    pair: dict[int, list[Action]] = {0: [("send", (1, 3, 8, -1))], 1: [("recv", (0, 3, 8, -1))]}
    work: Action = ("compute", (1e6 / n,))
    actions: dict[int, list[Action]] = {rank: [("init", ()), *pair.get(rank, [])] for rank in range(n)}
    for _ in range(4):
        order = draw.permutation(n)
        before, after = np.roll(order, 1), np.roll(order, -1)
        for rank, back, on in zip(order.tolist(), before.tolist(), after.tolist(), strict=True):
            actions[rank] += [("barrier", ()), ("sendRecv", (800, on, 800, back, -1, -1))]
            for place in range(6):
                told = pair.get(rank, []) if place == 2 and n > COUNTS[0] else []
                actions[rank] += [("allreduce", (8, 0, -1)), work, *told]
    return trace_of({rank: [*each, ("barrier", ()), ("finalize", ())] for rank, each in actions.items()})


def test_messages_between_collective_operations_may_be_missing_in_some_runs() -> None:
    found = fit([sometimes(n) for n in COUNTS])
    assert "between barrier and allreduce" in {each.where for each in found.irregular}
    made, true = sound(found.application, 32), sometimes(32)
    for rank in (0, 1, 16, 31):
        assert named(made, rank, "allreduce", "barrier") == named(true, rank, "allreduce", "barrier")


def shuffled(n: int, order: bool = True) -> Trace:
    """Three messages to and from each neighbour in a line, started and awaited in another order at every step."""
    draw = np.random.default_rng(n)
    actions: dict[int, list[Action]] = {rank: [("init", ())] for rank in range(n)}
    for _ in range(6):
        for rank in range(n):
            there = [each for each in (rank - 1, rank + 1) if 0 <= each < n]
            for name in ("irecv", "isend"):
                calls = [(name, (peer, tag, 64.0 * (1 + tag), -1)) for peer in there for tag in range(3)]
                actions[rank] += [
                    calls[place] for place in (draw.permutation(len(calls)) if order else range(len(calls)))
                ]
            waits: list[Action] = [("wait", (peer, rank, tag)) for peer in there for tag in range(3)]
            waits += [("wait", (rank, peer, tag)) for peer in there for tag in range(3)]
            actions[rank] += [waits[place] for place in (draw.permutation(len(waits)) if order else range(len(waits)))]
            actions[rank].append(("allreduce", (8, 0, -1)))
    for rank in range(n):
        actions[rank].append(("finalize", ()))
    return trace_of(actions)


def test_messages_that_are_started_in_any_order_follow_rules_once_they_are_put_in_order() -> None:
    found = fit([shuffled(n) for n in COUNTS])
    assert found.in_order
    assert found.ruled == 1.0
    made, true = sound(found.application, 32), in_order(shuffled(32))
    for rank in range(32):
        texts = [[each.table.text(action) for action in each.processes[rank].tolist()] for each in (made, true)]
        assert texts[0] == texts[1]


def test_messages_that_are_in_order_stay_as_they_are() -> None:
    found = fit([shuffled(n, order=False) for n in COUNTS])
    assert not found.in_order


def test_messages_of_one_partner_and_tag_are_never_put_in_another_order() -> None:
    calls: list[Action] = [("isend", (1, 3, 800)), ("isend", (1, 3, 8)), ("isend", (1, 1, 80))]
    made = in_order(trace_of({0: calls, 1: []}))
    assert named(made, 0, "isend") == ["isend 1 1 80", "isend 1 3 800", "isend 1 3 8"]


def test_a_trace_whose_processes_differ_in_collective_operations_is_not_cut() -> None:
    assert cut(trace_of({0: [("barrier", ())], 1: [("allreduce", (8, 0, -1))]})) is None


def test_statistics_of_whole_runs_keep_collective_operations_and_bytes() -> None:
    made = expanded(statistical([scattered(n) for n in COUNTS]), 16)
    made.checked()
    assert len(named(made, 3, "allreduce")) == len(named(made, 3, "barrier")) == 3
    sent = sum(float(text.split()[1]) for text in named(made, 3, "sendRecv"))
    assert sent == pytest.approx(3 * 4 * 64 + 3 * 4096 / 16, rel=0.05)


def gathered(n: int) -> Trace:
    """Neighbours on a grid that goes round one way, then messages with tags of their own to the first, as they come."""
    rows, columns = TOPOLOGIES["grid 01"](n)
    noise = np.random.default_rng(n)
    actions = {}
    for rank in range(n):
        row, column = divmod(rank, columns)
        peers = [
            (row - 1) % rows * columns + column,
            (row + 1) % rows * columns + column,
            rank - 1 if column else NULL,
            rank + 1 if column < columns - 1 else NULL,
        ]
        step: list[tuple[str, tuple[float, ...]]] = [(call, (peer, 0, 8 * 16_384 // rows, -1)) for call in (
            "irecv", "isend") for peer in peers]  # fmt: skip
        step += [("waitall", (2 * sum(peer != NULL for peer in peers),)), ("allreduce", (8, 0, -1))]
        told = [("send", (0, rank, 800, -1))]
        if not rank:
            order = 1 + noise.permutation(n - 1)
            told = [*(("irecv", (int(each), int(each), 800, -1)) for each in order), ("waitall", (n - 1,))]
        whole = [("init", ()), *(4 * step), *told, ("finalize", ())]
        worked = [(("compute", (float(noise.integers(1, 10**6)),)), each) for each in whole[1:]]
        actions[rank] = [whole[0], *(each for pair in worked for each in pair)]
    return trace_of(actions)


def test_only_the_part_that_follows_no_rule_is_put_in_order_and_named() -> None:
    found = fit([gathered(n).steadied() for n in (8, 16, 32)], timed=True)
    assert [each.where for each in found.irregular] == ["between allreduce and finalize"]
    made, true = expanded(found.application, 64), gathered(64)
    texts = [
        [[each.table.text(action) for action in process if each.table.text(action)[:7] != "compute"][: 1 + 4 * 10]
         for process in each.processes] for each in (made, true)
    ]  # fmt: skip
    assert texts[0] == texts[1]
