"""Trees and chains whose first process is another than process 0: a certain one, the last one, or one in the middle."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import sampled, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.reporting import equations
from metasched.signature.traces.actions import PEERS
from metasched.signature.traces.trace import Trace, trace_of

Actions = list[tuple[str, tuple[float, ...]]]
#: What a process does, by its place after the first one and the number of all; partners are places, too.
Program = Callable[[int, int], Actions]
RING = ("sendRecv", (640, 1, 640, -1, 6, 6))
FIRSTS: dict[str, Callable[[int], int]] = {
    "3": lambda n: 3, "n - 1": lambda n: n - 1, "n - 2": lambda n: n - 2, "0.5 n": lambda n: n // 2,
}  # fmt: skip


def tree(place: int, n: int) -> Actions:
    """A broadcast along a binomial tree."""
    bit = 1
    while bit < n and not place & bit:
        bit *= 2
    found: Actions = [("recv", (place - bit, 7, 1000, 6))] * (place > 0)
    while (bit := bit // 2) > 0:
        found += [("send", (place + bit, 7, 1000, 6))] * (place + bit < n)
    return found


def chain(place: int, n: int) -> Actions:
    """What each process has from the one before, it gives to the next."""
    before: Actions = [("irecv", (place - 1, 7, 80, 6)), ("wait", (place - 1, place, 7))]
    return before * (place > 0) + [("send", (place + 1, 7, 80, 6))] * (place < n - 1)


def master(place: int, n: int) -> Actions:
    """The first process gives each other one something, and all send round a ring."""
    dealt: Actions = [("send", (other, 7, 8, 6)) for other in range(1, n)]
    return [*(dealt if place == 0 else [("recv", (0, 7, 8, 6))]), RING]


def pairs(place: int, n: int) -> Actions:
    """A tree in which each process has two children."""
    below = range(2 * place + 1, min(2 * place + 3, n))
    return [("recv", ((place - 1) // 2, 7, 8, 6))] * (place > 0) + [("send", (child, 7, 8, 6)) for child in below]


def placed(program: Program, first: Callable[[int], int], rank: int, n: int) -> Actions:
    """What a process does where places are counted from the first one; round a ring, from itself."""
    found: Actions = []
    for name, numbers in program((rank - first(n)) % n, n):
        start = rank if name == "sendRecv" else first(n)
        own = [(each + start) % n if at in PEERS[name.lower()] else each for at, each in enumerate(numbers)]
        found.append((name, tuple(own)))
    return found


def run(program: Program, first: Callable[[int], int], n: int, sums: bool) -> Trace:
    """Three turns, perhaps with a sum."""
    processes = {}
    for rank in range(n):
        done = placed(program, first, rank, n)
        turn: Actions = [("compute", (1e8 / n,)), *done, *[("allreduce", (1, 0, 0))] * sums]
        processes[rank] = [("init", ()), *3 * turn, ("finalize", ())]
    return trace_of(processes)


def texts(trace: Trace) -> list[list[str]]:
    """All actions of all processes, as they are written."""
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


@pytest.mark.parametrize("first", FIRSTS)
@pytest.mark.parametrize("program", [tree, chain, master, pairs])
def test_ranks_are_counted_from_any_process(program: Program, first: str) -> None:
    counts = (8, 16, 32) if program is tree else (6, 12, 23)
    found = fit([run(program, FIRSTS[first], n, sums=False) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    read = Application.of(json.loads(json.dumps(found.application.as_dict())))
    for n in (11, 48, 100):
        assert texts(sound(read, n)) == texts(run(program, FIRSTS[first], n, sums=False))


@pytest.mark.parametrize("first", FIRSTS)
def test_the_first_process_is_named(first: str) -> None:
    found = fit([run(tree, FIRSTS[first], n, sums=True) for n in (8, 16, 32)])
    assert {"role": "all", "action": "ranks", "number": "first", "rule": first} in equations(found.application, ())
    assert found.application.first(100) == FIRSTS[first](100)


def test_each_part_has_a_first_process_of_its_own() -> None:
    """A tree from process 3, neighbours on a line with ends, and a tree from the last process, between sums."""

    def both(n: int) -> Trace:
        trees = {rank: placed(tree, FIRSTS["3"], rank, n) for rank in range(n)}
        others = {rank: placed(tree, FIRSTS["n - 1"], rank, n) for rank in range(n)}
        processes = {}
        for rank in range(n):
            line = placed(chain, lambda n: 0, rank, n)
            turn = [*trees[rank], ("barrier", ()), *line, ("allreduce", (1, 0, 0)), *others[rank], ("bcast", (8, 0, 0))]
            processes[rank] = [("init", ()), *3 * turn, ("finalize", ())]
        return trace_of(processes)

    found = fit([both(n) for n in (5, 9, 17)])
    assert found.ruled == 1.0
    assert {part.first(64) for part in found.application.parts.values()} == {0, 3, 63}
    assert texts(sound(found.application, 100)) == texts(both(100))


def test_a_sample_has_the_processes_at_their_ranks() -> None:
    rules = fit([run(tree, FIRSTS["n - 1"], n, sums=False) for n in (8, 16, 32)]).application
    sample, whole = sampled(rules, 64, 2), sound(rules, 64)
    assert [sample.programs[role][0].size for role in sample.roles] == [each.size for each in whole.processes]


@pytest.mark.parametrize("origin", [{"law": {"factor": 1, "exponent": 1, "r_squared": 1}}, {"expression": 3}, 7])
def test_a_first_process_that_is_no_expression_in_n_is_refused(origin: object) -> None:
    document = fit([run(tree, FIRSTS["3"], n, sums=False) for n in (8, 16, 32)]).application.as_dict()
    with pytest.raises(InputError):
        Application.of(document | {"origin": origin})


def test_an_expression_in_the_rank_is_no_first_process() -> None:
    document = fit([run(tree, FIRSTS["3"], n, sums=False) for n in (8, 16, 32)]).application.as_dict()
    origin = {"expression": {"constant": 0.0, "terms": [[1.0, "r"]], "modulus": ""}, "topology": ""}
    with pytest.raises(InputError, match="another form"):
        Application.of(document | {"origin": origin})
