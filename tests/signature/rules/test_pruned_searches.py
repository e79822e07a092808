"""Searches leave out what cannot hold, and find what they would find without that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from metasched.arrays import Floats
from metasched.records import InputError
from metasched.signature.computation.instruction_groups import ALIKE, LEVELS, Placement, profiled
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.topologies import TOPOLOGIES, different, dimensions_of
from metasched.signature.rules import completion, known_rules, program_parts, rank_rules, step_rules, whole_programs
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import Attribute, Axis
from metasched.signature.rules.both_ends import BothEnds
from metasched.signature.rules.completion import Incomplete, related
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.numbered_runs import tagged_shapes
from metasched.signature.rules.open_relations import Relation
from metasched.signature.rules.samples import Samples
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
Program = Callable[[int, int], list[Action]]
COUNTS = (4, 8, 16)


def exchanged(partner: int) -> Action:
    """A message to a partner and one from it."""
    return "sendRecv", (800, partner, 800, partner, 6, 6)


def bitonic(rank: int, n: int) -> list[Action]:
    """The exchanges of a bitonic sort."""
    bits = range(n.bit_length() - 1)
    return [exchanged(rank ^ 1 << bit) for last in bits for bit in reversed(range(last + 1))]


def butterfly(rank: int, n: int) -> list[Action]:
    """The exchanges of recursive doubling."""
    return [exchanged(rank ^ 1 << bit) for bit in range(n.bit_length() - 1)]


def ring(rank: int, n: int) -> list[Action]:
    """To the next process and from the one before."""
    return [("isend", ((rank + 1) % n, 1, 80, 6)), ("irecv", ((rank - 1) % n, 1, 80, 6)), ("waitall", (2,))] * 3


def pipeline(rank: int, n: int) -> list[Action]:
    """From the first process to the last."""
    return [("recv", (rank - 1, 1, 80, 6))] * (rank > 0) + [("send", (rank + 1, 1, 80, 6))] * (rank < n - 1)


def collected(rank: int, n: int) -> list[Action]:
    """The first process receives from anywhere."""
    return [("recv", (-2, 1, 80, 6))] * (n - 1) if rank == 0 else [("send", (0, 1, 80, 6))]


def run(program: Program, n: int) -> Trace:
    """A trace of a program between its first call and its last."""
    return trace_of({rank: [("init", ()), *program(rank, n), ("finalize", ())] for rank in range(n)})


def test_relations_on_the_line_are_tried_once_for_all_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [run(bitonic, n) for n in COUNTS]
    grids = sorted(different([*COUNTS]), key=dimensions_of)
    assert len(grids) > completion.MOST_LINES
    assert [{*each.values()} for each in related(Incomplete(traces), grids)] == [{Relation("line", "flip")}]
    asked: list[str] = []
    plain = whole_programs.completed
    monkeypatch.setattr(whole_programs, "completed", lambda *of: asked.append(of[1]) or plain(*of))  # type: ignore[func-returns-value]
    whole_programs.completed_program(traces, timed=True)
    assert asked == [*whole_programs.COMPLETED]


def scattered(rank: int, n: int) -> list[Action]:
    """Each process sends to one that no rule tells, and receives from one."""
    order = np.random.default_rng(n).permutation(n)
    to, source = int(order[rank]), int(np.flatnonzero(order == rank)[0])
    return [("isend", (to, 1, 80, 6)), ("recv", (source, 1, 80, 6)), ("waitall", (1,))]


def test_a_part_that_is_the_whole_program_is_not_completed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    completed: list[Trace] = []
    plain = program_parts.completed_program
    monkeypatch.setattr(
        program_parts, "completed_program", lambda traces, timed: completed.append(traces[0]) or plain(traces, timed)
    )
    found = fit([run(scattered, n) for n in COUNTS])
    assert [each.where for each in found.irregular] == ["between init and finalize"]
    assert completed == []


def test_no_rule_is_searched_twice_for_the_same_numbers_in_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    plain = step_rules.attribute

    def noted(samples: Samples, values: Floats, *of: object) -> Attribute | None:
        asked.append((samples.fingerprint(values), repr(of)))
        return plain(samples, values, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(step_rules, "attribute", noted)
    monkeypatch.setattr(known_rules, "_known", {})
    fit([run(scattered, n) for n in COUNTS])
    assert asked
    assert len(asked) == len({*asked})


@pytest.mark.parametrize("other", ["values", "rows", "names", "topology"])
def test_other_numbers_or_rows_have_another_fingerprint(other: str) -> None:
    ranks, values = np.arange(8.0), np.arange(8.0) + 1
    rows = Samples(np.repeat([4, 8], 4), {"r": ranks, "i0": ranks * 0, "c0": ranks * 0 + 1}, 1, "line")
    same = Samples(np.repeat([4, 8], 4), {"c0": ranks * 0 + 1, "i0": ranks * 0, "r": ranks}, 1, "line")
    assert rows.fingerprint(values) == same.fingerprint(values.copy())
    changed = Samples(
        rows.counts,
        {"r": ranks + (other == "rows"), "i1" if other == "names" else "i0": ranks * 0, "c0": ranks * 0 + 1},
        1,
        "grid 01" if other == "topology" else "line",
    )
    assert rows.fingerprint(values) != changed.fingerprint(values + (other == "values"))


def test_tags_that_tell_no_places_apart_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    plain = whole_programs._best
    monkeypatch.setattr(whole_programs, "_best", lambda *of, **by: searches.append(len(of[1])) or plain(*of, **by))

    def shuffled(rank: int, n: int) -> list[Action]:
        """As many messages from others as each happens to send."""
        amounts = np.random.default_rng(n).integers(0, 4, (n, n))
        return [("isend", (to, 1, 80, 6)) for to in range(n) for _ in range(amounts[rank, to])] + [
            ("recv", (source, 1, 80, 6)) for source in range(n) for _ in range(amounts[source, rank])
        ]

    traces = [run(shuffled, n) for n in COUNTS]
    assert tagged_shapes(traces)
    assert whole_programs.whole_program(traces, False, lambda: None) is None
    assert searches == [4]


def test_relations_along_the_sides_of_grids_are_each_tried() -> None:
    ways = [*related(Incomplete([run(ring, n) for n in COUNTS]), ["line", "grid 01", "line", "grid 10"])]
    assert len(ways) == len({repr(each) for each in ways}) > 1


def astray(application: Application) -> list[Application]:
    """Applications in which one partner is another one each."""
    found = []
    for cell, role in application.roles.items():
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            for place in application.shapes[leaf.shape].peers:
                further = Attribute("line", (Axis("shift", Expression(2.0)),))
                numbers = [further if at == place else each for at, each in enumerate(rule.numbers)]
                rules = [*role.rules]
                rules[leaf.number] = replace(rule, numbers=tuple(numbers))
                found.append(replace(application, roles={**application.roles, cell: replace(role, rules=tuple(rules))}))
    return found


@pytest.mark.parametrize("program", [butterfly, ring, pipeline, collected])
def test_messages_of_all_roles_have_both_ends_where_those_of_the_whole_run_have(program: Program) -> None:
    application = fit([run(program, n) for n in (8, 16, 32)]).application
    several = [application, *astray(application)]
    said, plain = [], []
    for each in several:
        count = max(each.learned) * 2
        try:
            plain.append(bool(sound(each, count)))
        except InputError:
            plain.append(False)
        for roles in ([*each.roles.values()], [*each.roles.values()][::-1]):
            ends = BothEnds(each.features, each.topology, each.shapes, [count])
            said.append(all(ends.with_role(role) for role in roles))
    assert said == [each for each in plain for _ in range(2)]
    assert {*plain[1:]} == {False}


def test_a_message_between_known_roles_is_refused_before_the_others_are_known() -> None:
    application = fit([run(pipeline, n) for n in (8, 16, 32)]).application
    assert len(application.roles) == 3
    (wrong, *_) = [
        each.roles[cell]
        for each in astray(application)
        for cell in each.roles
        if each.roles[cell] != application.roles[cell] and cell == (1,)
    ]
    right = application.roles[1,]
    ends = [BothEnds(application.features, application.topology, application.shapes, [64]) for _ in range(2)]
    assert [each.with_role(role) for each, role in zip(ends, (right, wrong), strict=True)] == [True, False]


def test_computations_get_no_rules_where_messages_refute_the_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bool] = []
    plain = whole_programs._best

    def noted(*of: object, calls_only: bool = False, **more: object) -> object:
        looked_at.append(calls_only)
        return plain(*of, calls_only=calls_only, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(whole_programs, "_best", noted)
    some = whole_programs.candidates
    monkeypatch.setattr(whole_programs, "candidates", lambda topologies: some(topologies)[:8])
    assert whole_programs.other_roles([run(bitonic, n) for n in COUNTS], timed=True) is None
    assert looked_at
    assert all(looked_at)


def test_distances_that_differ_from_process_to_process_are_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [np.arange(n) for n in COUNTS]
    rows = Samples(np.repeat(COUNTS, COUNTS), {"r": np.concatenate(ranks).astype(np.float64)}, 0, "line")
    assert rows.one_for_all(rows.env["n"] / 2)
    assert not rows.one_for_all(rows.env["r"])
    asked: list[Floats] = []
    plain = rank_rules._stepped

    def noted(among: object, forward: Floats, *of: Floats) -> Expression | None:
        asked.append(forward)
        return plain(among, forward, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(rank_rules, "_stepped", noted)
    drawn = np.concatenate([np.random.default_rng(n).permutation(n) for n in COUNTS]).astype(np.float64)
    assert rank_rules.rank(rows, drawn, ["line"]) is None
    assert not asked
    opposite = np.mod(rows.env["r"] + np.sqrt(rows.env["n"] + 0.5).astype(int) + 1, rows.env["n"])
    rank_rules.rank(rows, opposite, ["line"])
    assert asked


def one_grid_after_another(
    amounts: dict[int, Floats], topologies: list[str], alike: float
) -> tuple[Placement, Floats] | None:
    """What :func:`profiled` finds, in the plain way."""
    relative = np.concatenate([each / each.mean() for each in amounts.values()])
    ends = tuple(Expression(0.0, ((each / LEVELS, "n"),)) for each in range(1, LEVELS))
    for topology in topologies:
        for dimension in range(len(TOPOLOGIES[topology](min(amounts)))):
            where = Placement("parts", topology, dimension, (*range(LEVELS),), ends)
            parts = np.concatenate([where({"r": np.arange(n)}, n) for n in amounts])
            if {*parts.tolist()} == {*range(LEVELS)}:
                factors = np.array([relative[parts == level].sum() / np.sum(parts == level) for level in range(LEVELS)])
                if np.all(np.minimum(relative, factors[parts]) >= alike * np.maximum(relative, factors[parts])):
                    return where, factors
    return None


@pytest.mark.parametrize("dimension", [0, 1, None])
def test_levels_along_any_side_are_those_of_one_grid_after_another(dimension: int | None) -> None:
    topologies, found = ["line", "grid 01", "grid 10"], []
    for seed in range(3):
        drawn = np.random.default_rng(seed)
        amounts = {}
        for n in (256, 1024):
            side = round(n**0.5)
            at = np.arange(n) / n if dimension is None else np.divmod(np.arange(n), side)[dimension] / side
            amounts[n] = (1.0 + np.floor(at * LEVELS)) * drawn.uniform(0.99, 1.01, n)
        one = profiled(amounts, {n: np.arange(n) for n in amounts}, topologies, ALIKE)
        other = one_grid_after_another(amounts, topologies, ALIKE)
        found.append(one is not None)
        assert (one and one[0]) == (other and other[0])
        assert one is None or other is None or np.allclose(one[1], other[1], rtol=1e-12)
    assert any(found)
