"""Broadcasts and reductions that programs write themselves, along binomial trees of any number of processes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.records import InputError
from metasched.signature.equations.expressions import children_over, children_under, low_bit, power_above
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded, sampled, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.traces.trace import Trace, trace_of

Actions = list[tuple[str, tuple[float, ...]]]


def sent(to: int) -> tuple[str, tuple[float, ...]]:
    """A message of the tree."""
    return "send", (to, 7, 1000, 6)


def got(source: int) -> tuple[str, tuple[float, ...]]:
    """The other end of one."""
    return "recv", (source, 7, 1000, 6)


def spread_from_low_bits(rank: int, n: int) -> Actions:
    """A broadcast as MPICH writes it: from the rank without its lowest bit, to those with one more below it."""
    found: Actions = []
    bit = 1
    while bit < n:
        if rank & bit:
            found.append(got(rank - bit))
            break
        bit *= 2
    while (bit := bit // 2) > 0:
        found += [sent(rank + bit)] * (rank + bit < n)
    return found


def collected_at_low_bits(rank: int, n: int) -> Actions:
    """The reduction that goes the other way."""
    found: Actions = []
    bit = 1
    while bit < n:
        if rank & bit:
            return [*found, sent(rank - bit)]
        found += [got(rank + bit)] * (rank + bit < n)
        bit *= 2
    return found


def doubled(rank: int, n: int) -> Actions:
    """A broadcast in rounds, in each of which twice as many have the data."""
    found: Actions = []
    bit = 1
    while bit < n:
        if rank < bit:
            found += [sent(rank + bit)] * (rank + bit < n)
        elif rank < 2 * bit:
            found.append(got(rank - bit))
        bit *= 2
    return found


def to_all(rank: int, n: int) -> Actions:
    """A reduction, and a broadcast of what it gave."""
    return collected_at_low_bits(rank, n) + spread_from_low_bits(rank, n)


def run(tree: Callable[[int, int], Actions], n: int) -> Trace:
    """Five turns with some work."""
    turns = {rank: 5 * [("compute", (1e6,)), *tree(rank, n), ("barrier", ())] for rank in range(n)}
    return trace_of({rank: [("init", ()), *turn, ("finalize", ())] for rank, turn in turns.items()})


def texts(trace: Trace) -> list[list[str]]:
    """All actions of all processes, as they are written."""
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


@pytest.mark.parametrize("counts", [(8, 16, 32), (6, 12, 24), (5, 11, 23)])
@pytest.mark.parametrize("tree", [spread_from_low_bits, collected_at_low_bits, doubled, to_all])
def test_every_message_of_a_larger_tree_is_right(tree: Callable[[int, int], Actions], counts: tuple[int, ...]) -> None:
    found = fit([run(tree, n) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    read = Application.of(found.application.as_dict())
    for n in (1, 2, 48, 64, 100):
        assert texts(sound(read, n)) == texts(run(tree, n))


def dealt(block: Callable[[int], int]) -> Callable[[int, int], Actions]:
    """What each process needs, from the first one along the tree: a message holds that of all below, and goes back."""

    def program(rank: int, n: int) -> Actions:
        found: Actions = []
        for back, tree in enumerate((spread_from_low_bits, collected_at_low_bits)):
            for name, (peer, tag, _, kind) in tree(rank, n):
                below = max(rank, int(peer))
                held = min(below & -below, n - below) * block(n)
                found.append((name, (peer, tag + back, held, kind)))
        return found

    return program


@pytest.mark.parametrize("counts", [(8, 16, 32), (6, 12, 24), (5, 11, 23)])
@pytest.mark.parametrize("block", [lambda n: 800, lambda n: 96_000 // n, lambda n: 8 * (3 * n + 1)])
def test_messages_of_a_tree_hold_what_all_below_need(block: Callable[[int], int], counts: tuple[int, ...]) -> None:
    found = fit([run(dealt(block), n) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    read = Application.of(found.application.as_dict())
    for n in (2, 48, 64, 100):
        assert texts(sound(read, n)) == texts(run(dealt(block), n))


def halved(rank: int, n: int) -> Actions:
    """The upper half of those that are left sends to the lower one, always as much."""
    found: Actions = []
    half = n // 2
    while half:
        if rank >= half:
            return [*found, ("send", (rank - half, 7, 80, 6))]
        found.append(("recv", (rank + half, 7, 80, 6)))
        half //= 2
    return found


def test_messages_that_are_always_as_long_are_no_shares_of_what_all_numbers_of_processes_divide() -> None:
    application = fit([run(halved, n) for n in (4, 8, 16)]).application
    assert texts(expanded(application, 64)) == texts(run(halved, 64))
    assert open_rules(application) == []


def test_shares_of_trees_that_came_out_even_are_named() -> None:
    rules = fit([run(dealt(lambda n: 1_048_576 // n), n) for n in (8, 16, 32)]).application
    assert {"a run of 3 processes would decide"} == {line.rpartition(", ")[2] for line in open_rules(rules)}
    assert not open_rules(rules, [64])


def test_the_partner_of_a_message_is_no_part_of_its_own_rule() -> None:
    document = fit([run(dealt(lambda n: 800), n) for n in (8, 16, 32)]).application.as_dict()
    rules = [rule for role in document["roles"] for rule in role["rules"] if len(rule["numbers"]) == 4]
    rules[0]["numbers"][0] = {"expression": {"constant": 0.0, "terms": [[1.0, "p"]], "modulus": ""}, "topology": ""}
    with pytest.raises(InputError, match="another form"):
        Application.of(document)


def test_a_sample_of_a_tree_has_a_program_for_each_number_of_children() -> None:
    rules = fit([run(spread_from_low_bits, n) for n in (8, 16, 32)]).application
    sample = sampled(rules, 64, 2)
    # The first process has six children, the others from none to five.
    assert len(sample.programs) == 1 + 6
    whole = expanded(rules, 64)
    assert [sample.programs[role][0].size for role in sample.roles] == [each.size for each in whole.processes]


@given(st.integers(1, 300))
def test_each_process_but_the_first_is_the_child_of_one(n: int) -> None:
    ranks = np.arange(n, dtype=np.float64)
    count = np.full(1, float(n))
    for children, first in ((children_under, np.ones(n)), (children_over, power_above(ranks))):
        reached = [
            rank + first[rank] * 2**child
            for rank, many in enumerate(children(ranks, count))
            for child in range(int(many))
        ]
        assert sorted(reached) == [*range(1, n)]
    assert [rank - low_bit(np.full(1, rank))[0] for rank in (5.0, 6.0, 8.0)] == [4.0, 4.0, 0.0]


def test_what_is_no_tree_has_other_rules() -> None:
    def pairs(rank: int, n: int) -> Actions:
        return [sent(rank + 1)] if rank % 2 == 0 else [got(rank - 1)]

    found = fit([run(pairs, n) for n in (8, 16, 32)])
    assert found.application.features == "parity"
    assert texts(expanded(found.application, 64)) == texts(run(pairs, 64))
