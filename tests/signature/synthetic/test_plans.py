"""Plans of the synthetic signature: who measures, who stands for the rest, and that every request fits."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.signature.applications import APPLICATIONS, halo
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.fitting import fit
from metasched.signature.synthetic.collective_times import grown
from metasched.signature.synthetic.plan import PHASE, RECEIVE, SEND, SLEEP, TOGETHER, WAIT, WORDS, Plan, planned
from metasched.signature.traces.actions import BYTE
from metasched.signature.traces.trace import Trace, trace_of

BY_NAME = {each.name: each for each in APPLICATIONS}


@lru_cache
def learned(name: str) -> Application:
    return fit([BY_NAME[name].trace(n) for n in (16, 32, 64)]).application


def scripts(plan: Plan) -> list[list[list[list[int]]]]:
    """Of each pair of ranges, of each measurable process, its actions."""
    words = plan.words.tolist()
    # A head for all, and a part for each process; each begins with how long it is.
    at = 1 + words[0]
    pairs: list[list[list[list[int]]]] = [[] for _ in plan.ranges]
    for _ in range(plan.measurable):
        end = at + 1 + words[at]
        at += 1
        for pair in pairs:
            many = words[at]
            pair.append([words[place : place + WORDS] for place in range(at + 1, at + 1 + WORDS * many, WORDS)])
            at += 1 + WORDS * many
        assert at == end
    assert at == len(words)
    return pairs


@pytest.mark.parametrize("name", ["2-D halo, borders", "butterfly", "ring"])
def test_messages_inside_the_ranges_have_both_ends_and_the_rest_black_holes(name: str) -> None:
    plan = planned(learned(name), 128, 32, 1, 1e-9)
    assert plan.measured.all()
    for holes, pair in zip(plan.black_holes, scripts(plan), strict=True):
        sent, got, outside = set(), set(), set()
        for slot, actions in enumerate(pair):
            for kind, peer, _, _, message, _ in actions:
                if kind not in (SEND, RECEIVE):
                    continue
                if message < 0:
                    assert peer == plan.measurable + slot
                    outside.add(slot)
                else:
                    (sent if kind == SEND else got).add(((slot, peer) if kind == SEND else (peer, slot), message))
        assert sent == got != set()
        # Eq. 5: one for each measurable process with messages to the outside.
        assert holes == len(outside)


def test_all_measurable_processes_meet_in_the_same_collective_operations() -> None:
    plan = planned(learned("transpose"), 64, 26, 1, 1e-9)
    pairs = [[sum(action[0] == TOGETHER for action in actions) for actions in pair] for pair in scripts(plan)]
    assert pairs[0][0] > 0
    assert all(met == [met[0]] * len(met) for met in pairs)


def test_waits_are_for_requests_that_were_posted() -> None:
    waits = []
    for pair in scripts(planned(learned("2-D halo, borders"), 64, 20, 1, 1e-9)):
        for actions in pair:
            posted = 0
            for kind, first, end, *_ in actions:
                posted += kind in (SEND, RECEIVE)
                if kind == WAIT:
                    waits.append(0 <= first < end <= posted)
    assert waits
    assert all(waits)


def test_what_all_compute_is_told_from_what_some_compute_more() -> None:
    # Process 0 has more to do than the others: only that is slept in full.
    def ring(rank: int, n: int) -> list[tuple[str, tuple[float, ...]]]:
        messages = [("isend", ((rank + 1) % n, 0, 100, 0)), ("irecv", ((rank - 1) % n, 0, 100, 0)), ("waitall", (2,))]
        return [("init", ()), *([("compute", (1e6 if rank else 3e6,)), *messages] * 50), ("finalize", ())]

    application = fit([trace_of({rank: ring(rank, n) for rank in range(n)}) for n in (8, 16, 32)]).application
    plan = planned(application, 64, 10, 1, 1e-9)
    slept = {
        tuple(action[1:3]) for pair in scripts(plan) for actions in pair for action in actions if action[0] == SLEEP
    }
    assert slept == {(10**6, 0), (10**6, 2 * 10**6)}


def test_later_pairs_of_ranges_run_only_phases_with_messages_that_are_not_yet_measured() -> None:
    plan = planned(learned("wavefront, 4 corners"), 144, 32, 1, 1e-9)
    messages = [sum(action[4] >= 0 for actions in pair for action in actions if action[0] == SEND)
                for pair in scripts(plan)]  # fmt: skip
    assert len(messages) > 1
    assert max(messages[1:]) < messages[0]


def test_runs_of_many_turns_are_measured_in_as_few_as_short_ones() -> None:
    def run_of(steps: int) -> Plan:
        traces = [trace_of({rank: [*halo(rank, n, steps=steps)] for rank in range(n)}) for n in (16, 32, 64)]
        return planned(fit(traces).application, 128, 32, 1, 1e-9)

    short, long = run_of(20), run_of(400)
    assert [len(part) for part in scripts(short)[0]] == [len(part) for part in scripts(long)[0]]


def test_processes_of_a_node_stay_together() -> None:
    plan = planned(learned("ring"), 64, 34, 4, 1e-9)
    assert {begin % 4 for pair in plan.ranges for begin, _ in pair} == {0}
    assert {kind.local for kind in plan.kinds} == {False, True}


def test_too_few_cores_are_refused() -> None:
    with pytest.raises(InputError, match="needs at least 6"):
        planned(learned("ring"), 64, 5, 1, 1e-9)


@settings(max_examples=30)
@given(st.floats(1e-7, 1e-3), st.floats(0, 1e-4), st.floats(0, 1e-5), st.sampled_from([64, 256, 4096]))
def test_growth_of_each_kind_is_found_again(alone: float, rounds: float, each: float, count: int) -> None:
    def seconds(n: int) -> float:
        return alone + rounds * (n - 1).bit_length() + each * (n - 1)

    counts = [2, 4, 8, 16, 32]
    assert grown(counts, [seconds(n) for n in counts], count) == pytest.approx(seconds(count), rel=1e-3)


@pytest.mark.parametrize(("count", "many"), [(32, 18), (64, 50), (128, 64)])
def test_noise_is_as_many_messages_as_others_have_under_way_up_to_64(count: int, many: int) -> None:
    def ring(n: int) -> Trace:
        actions: dict[int, list[tuple[str, tuple[float, ...]]]] = {}
        for rank in range(n):
            shift = ("sendRecv", (8, (rank + 1) % n, 8, (rank - 1) % n, BYTE, BYTE))
            actions[rank] = [("init", ()), *(9 * [("compute", (1e6 / n,)), shift]), ("finalize", ())]
        return trace_of(actions)

    # Each process has one message under way, and fourteen are measurable.
    plan = planned(fit([ring(n) for n in (8, 16, 24)]).application, count, 32, 1, 1e-9)
    assert plan.measurable == 14
    told = {tuple(words[:2]) for pair in scripts(plan) for actions in pair for words in actions if words[0] == PHASE}
    assert told == {(PHASE, many)}
