"""Rules learned at three small counts, judged by the true traces of larger ones."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

import pytest

from benchmarks.signature.applications import APPLICATIONS, Action, Judged
from benchmarks.signature.structure import judge, right
from metasched.records import InputError
from metasched.signature.rules import reporting
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.expanding import expanded, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.rules.reporting import checked_count, valid_counts

BY_NAME = {each.name: each for each in APPLICATIONS}
#: A partner in one dimension, what rules are made of, and groups of processes.
SHIFT = {"kind": "shift", "by": {"constant": 1.0, "terms": [], "modulus": ""}, "of": 0}
LAW = {"factor": 1.0, "exponent": 0.5, "r_squared": 1.0}
EVERY_OTHER = {"kind": "cycle", "topology": "line", "dimension": 0, "groups": [0, 1], "ends": []}
QUICK = ["butterfly", "2-D halo, borders", "farm", "cannon", "faces around"]


def expression(atom: str) -> dict[str, Any]:
    """An expression in a document."""
    return {"constant": 0.0, "terms": [[1.0, atom]], "modulus": ""}


@pytest.mark.parametrize("name", QUICK)
def test_every_call_of_256_processes_is_right(name: str) -> None:
    (judged,) = judge(BY_NAME[name], [256])
    assert (judged.right, judged.note) == (1.0, "")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [*BY_NAME])
def test_every_call_of_256_and_1024_processes_is_right(name: str) -> None:
    judged = judge(BY_NAME[name], [256, 1024])
    assert [(each.right >= 0.999, each.note) for each in judged] == [(True, "")] * 2


def _own(actions: Any, counts: tuple[int, ...]) -> Judged:
    return Judged("own", actions, counts)


def test_rules_survive_their_document() -> None:
    application = fit([BY_NAME["farm"].trace(n) for n in (4, 8, 16)]).application
    read = Application.of(application.as_dict())
    assert right(expanded(read, 128), expanded(application, 128))[0] == 1.0


def test_fewer_than_three_counts_are_refused() -> None:
    with pytest.raises(InputError, match="expected at least 3 different counts"):
        fit([BY_NAME["farm"].trace(n) for n in (4, 8)])


def test_two_runs_of_one_count_are_refused() -> None:
    with pytest.raises(InputError, match=r"^there are 2 signatures of \d+ processes, expected one of each number$"):
        fit([BY_NAME["farm"].trace(n) for n in (4, 8, 8)])


def test_different_programs_are_refused() -> None:
    with pytest.raises(InputError, match="signatures of one program"):
        fit([BY_NAME["farm"].trace(4), BY_NAME["farm"].trace(8), BY_NAME["panels"].trace(16)])


def test_runs_of_different_workloads_are_refused() -> None:
    def actions(rank: int, n: int) -> Iterator[Action]:
        yield "compute", ({16: 1e9, 32: 1e9, 64: 3e9}[n] / n,)
        yield "allreduce", (1, 0, 0)

    with pytest.raises(InputError, match="1e\\+09 with 16, 1e\\+09 with 32, 3e\\+09 with 64 processes"):
        fit([_own(actions, ()).trace(n) for n in (16, 32, 64)])


def test_what_follows_no_rule_is_named() -> None:
    def actions(rank: int, n: int) -> Iterator[Action]:
        yield "allreduce", (1, 0, 0)
        yield "bcast", ({16: 17, 32: 5, 64: 911}[n], 0, 0)

    found = fit([_own(actions, ()).trace(n) for n in (16, 32, 64)])
    assert found.unruled == {"bcast": pytest.approx(0.25)}
    assert found.ruled == pytest.approx(0.75)


def test_counts_that_a_root_does_not_allow_are_refused_with_the_nearest() -> None:
    def actions(rank: int, n: int) -> Iterator[Action]:
        yield from [("allreduce", (1, 0, 0))] * (1001 * (round(n**0.5) - 1))

    application = fit([_own(actions, ()).trace(n) for n in (4, 9, 16)]).application
    assert valid_counts(application) == "squares"
    assert expanded(application, 25).processes[0].size == 4004 + 2
    for count, nearest in ((32, "25 or 36"), (10, "9 or 16"), (3, "1 or 4")):
        with pytest.raises(InputError, match=f"try {nearest}$"):
            checked_count(application, count)


def test_grids_that_the_runs_do_not_tell_apart_are_named() -> None:
    application = fit([BY_NAME["2-D halo, around"].trace(n) for n in (4, 16, 36)]).application
    assert "would decide" in open_rules(application)[0]


def test_shares_that_came_out_even_are_named() -> None:
    application = fit([BY_NAME["butterfly"].trace(n) for n in (16, 32, 64)]).application
    assert "150000 1/P1 of send is rounded" in open_rules(application)[-1]
    assert "a run of 512 processes would decide" in open_rules(application)[-1]


@pytest.mark.parametrize(
    "change",
    [
        {"roles": []},
        {"topology": "torus"},
        {"features": "colour"},
        {"shapes": [{"name": "x y", "numbers": 1, "lists": 0, "nulls": [], "tail": False}]},
    ],
)
def test_documents_of_another_form_are_refused(change: dict[str, Any]) -> None:
    document = fit([BY_NAME["farm"].trace(n) for n in (4, 8, 16)]).application.as_dict()
    with pytest.raises(InputError):
        Application.of(document | change)


@pytest.mark.parametrize(
    "rule",
    [
        {"topology": "grid 01", "axes": [SHIFT]},
        {"topology": "line", "axes": [SHIFT, SHIFT]},
        {"topology": "line", "axes": [{"kind": "shift", "by": expression("P1"), "of": 0}]},
        {"topology": "", "expression": expression("P1")},
        {"topology": "", "expression": expression("sqrt(i7)")},
        {"topology": "grid 01", "expression": expression("floor2:64")},
        {"topology": "", "expression": expression("j")},
        {"topology": "", "expression": expression("n") | {"modulus": "c0"}},
        {"loop": 0, "turn": "steps", "table": [{"topology": "", "expression": expression("n")}]},
        {"placement": EVERY_OTHER, "groups": [{"topology": "", "expression": expression("1/P2")}] * 2},
    ],
)
def test_rules_that_ask_for_what_is_not_known_at_their_place_are_refused(rule: dict[str, Any]) -> None:
    document = fit([BY_NAME["farm"].trace(n) for n in (4, 8, 16)]).application.as_dict()
    number = document["roles"][0]["rules"][1]["numbers"]
    Application.of(document)
    number[0] = rule
    with pytest.raises(InputError, match="is of another form than metasched signature fit writes"):
        Application.of(document)


@pytest.mark.parametrize("topology", ["3 rows", "5 columns"])
def test_groups_may_lie_in_rows_of_a_grid_that_64_processes_do_not_form(topology: str) -> None:
    rule = {"placement": EVERY_OTHER | {"topology": topology, "dimension": 1}, "groups": [{"law": LAW}] * 2}
    assert Attribute.of(rule).as_dict() == rule


def test_the_nearest_numbers_of_processes_are_sought_around_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    application = fit([BY_NAME["cannon"].trace(n) for n in (16, 36, 64)]).application
    asked = []
    monkeypatch.setattr(reporting, "_square", lambda n: asked.append(n) or isqrt(n) ** 2 == n)
    with pytest.raises(InputError, match="try 99856 or 100489"):
        checked_count(application, 99_990)
    assert set(asked) > {99_856, 99_990, 100_489}
    # Beside those, the numbers that say for which kind the rules are valid.
    assert len(asked) < 6_000


def test_expansions_whose_messages_do_not_match_are_refused() -> None:
    def actions(rank: int, n: int) -> Iterator[Action]:
        yield "compute", (1e9 / n,)
        yield "sendRecv", (196608 // n, (rank + 1) % n, 196608 // n, (rank - 1) % n, 0, 0)

    document = fit([Judged("ring", actions, ()).trace(n) for n in (16, 32, 64)]).application.as_dict()
    (rule,) = (each for each in document["roles"][0]["rules"] if len(each["numbers"]) == 6)
    # What a wrong guess of a rule that the runs leave open comes to: all receive from the process before the last.
    rule["numbers"][3]["axes"][0]["by"]["constant"] = -2.0
    application = Application.of(document)
    with pytest.raises(InputError, match="from 16, 32, 64 processes do not hold for 128: 1 more messages from 0 to"):
        sound(application, 128)
