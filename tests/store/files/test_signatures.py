"""Documents of signatures and applications: what is read back, and what of another form is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metasched.records import InputError
from metasched.store.files import signatures
from metasched.store.files.signatures import (
    DEEPEST,
    measured_in,
    measured_of,
    one_workload_of,
    points_of,
    problem_size_of,
    read_document,
    trace_of_signature,
)  # fmt: skip

PATHS = [Path(name) for name in ("a.json", "b.json", "c.json")]


def said(call: Callable[..., object], *given: object) -> str:
    """What a call refuses, empty where it does not."""
    try:
        call(*given)
    except InputError as error:
        return str(error)
    return ""


def traced(actions: Any, programs: Any, processes: int | None = None) -> list[list[str]]:
    count = len(programs or ()) if processes is None else processes
    trace = trace_of_signature({"processes": count, "actions": actions, "programs": programs}, "s.json")
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


def nested(depth: int) -> list[Any]:
    program: list[Any] = [0]
    for _ in range(depth):
        program = [[1, program]]
    return program


def test_a_trace_comes_back_from_its_loops() -> None:
    actions = ["init", "compute 1.5", "bcast 8 ", "finalize"]
    assert traced(actions, [[0, [2, [1, [2, [2]]]], 3], [0, 3]]) == [
        ["init", *(["compute 1.5", "bcast 8 ", "bcast 8 "] * 2), "finalize"],
        ["init", "finalize"],
    ]
    assert traced(["init"], [nested(DEEPEST)]) == [["init"]]
    assert traced(["init"], [[0], []]) == [["init"], []]


@pytest.mark.parametrize(
    ("actions", "programs", "line"),
    [
        (None, [[0]], "actions and programs are expected to be lists"),
        (["init"], None, "actions and programs are expected to be lists"),
        (["init"], [], "actions and programs are expected to be lists"),
        ([7], [[0]], "action '7' is not valid, expected a name and numbers"),
        ([""], [[0]], "action '' is not valid, expected a name and numbers"),
        (["9 init"], [[0]], "action '9 init' is not valid, expected a name and numbers"),
        (["compute much"], [[0]], "action 'compute much' is not valid, expected a name and numbers"),
        (["compute nan"], [[0]], "action 'compute nan' is not valid, expected a name and numbers"),
        (["compute 1.1e18"], [[0]], "action 'compute 1.1e18' is not valid, expected a name and numbers"),
        (["init"], ["x"], f"a program is no list, or its loops are deeper than {DEEPEST}"),
        (["init"], [nested(DEEPEST + 1)], f"a program is no list, or its loops are deeper than {DEEPEST}"),
        (["init"], [[[2, 0]]], f"a program is no list, or its loops are deeper than {DEEPEST}"),
        (["init"], [[1]], "a program holds '1', expected an action or a loop"),
        (["init"], [[-1]], "a program holds '-1', expected an action or a loop"),
        (["init"], [[True]], "a program holds 'True', expected an action or a loop"),
        (["init"], [[0.0]], "a program holds '0.0', expected an action or a loop"),
        (["init"], [[[0, [0]]]], "a program holds '[0, [0]]', expected an action or a loop"),
        (["init"], [[[2, [0], 1]]], "a program holds '[2, [0], 1]', expected an action or a loop"),
        (["init"], [[[True, [0]]]], "a program holds '[True, [0]]', expected an action or a loop"),
        (["init"], [[]], "has no events, expected what processes did"),
        (["compute -1"], [[0]], "'compute -1' has an amount below 0, expected none or more"),
    ],
)
def test_a_trace_of_another_form_is_refused(actions: Any, programs: Any, line: str) -> None:
    refused = said(traced, actions, programs)
    assert refused.removeprefix("s.json: ") == line


@pytest.mark.parametrize("count", [1, 3])
def test_a_signature_has_a_program_of_each_process(count: int) -> None:
    assert said(traced, ["init"], [[0], [0]], count) == f"s.json: is of {count} processes and has 2 programs"


def test_as_many_actions_and_processes_as_can_be_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "MOST_EVENTS", 6)
    monkeypatch.setattr(signatures, "MOST_PROCESSES", 2)
    assert traced(["init"], [[[3, [0]]], [0, [2, [0]]]]) == [["init"] * 3] * 2
    assert said(traced, ["init"], [[[3, [0]]], [[4, [0]]]]) == "s.json: comes to more than 6 actions"
    assert said(traced, ["init"], [[0], [0], [0]]) == "s.json: has more than 2 programs"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "is not JSON"),
        ('{"kind": NaN}', "is not JSON"),
        ('{"kind": 1e999}', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is no metasched signature, expected what metasched signature wrote"),
        ('{"kind": "other"}', "is no metasched signature, expected what metasched signature wrote"),
        ('{"kind": "metasched signature", "version": 9}', "version is 9, expected 1"),
        ('{"kind": "metasched signature"}', "version is None, expected 1"),
        ('{"kind": "metasched signature", "version": 1}', "processes is None, expected a whole number of at least 1"),
        (
            '{"kind": "metasched signature", "version": 1, "processes": "x"}',
            "processes is x, expected a whole number of at least 1",
        ),
        *(
            (
                f'{{"kind": "metasched signature", "version": 1, "processes": 4, "phases": {phases}}}',
                "phases are expected to be a list, each with its weight",
            )
            for phases in ("2", "[7]", "[{}]", '[{"weight": 1.5}]', '[{"weight": -1}]', '[{"weight": 1e300}]')
        ),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str, line: str) -> None:
    kind, version = signatures.SIGNATURE, signatures.VERSION
    path = tmp_path / "s.json"
    path.write_text(text.replace("metasched signature", kind))
    expected = line.replace("is no metasched signature", f"is no {kind}").replace("expected 1", f"expected {version}")
    assert said(read_document, path, kind) == f"{path}: {expected}"
    path.write_text(json.dumps({"kind": kind, "version": version, "processes": 4, "more": [1]}))
    assert read_document(path, kind)["more"] == [1]


@pytest.mark.parametrize(
    ("value", "sound"),
    [(1, True), (0.5, True), (9e29, True), (2e-30, True), (0, False), (-1, False), (1e30, False), (10**400, False),
     (1e-30, False), (1e-300, False), (True, False), ("1", False), ([1], False), (float("nan"), False)],
)  # fmt: skip
def test_sizes_and_times_are_numbers_that_can_be_counted_with(value: Any, sound: bool) -> None:
    said_of_size = said(problem_size_of, {"problem_size": value}, PATHS[0])
    said_of_time = said(measured_of, [{"execution_time": value, "processes": 4}], PATHS[:1])
    said_of_measured = said(measured_in, {"measured": {"4": value}}, PATHS[0])
    end = f"is {str(value)[:40]}, expected a number above 1e-30 and below 1e+30"
    expected = ("", "", "") if sound else (
        f"a.json: problem_size {end}", f"a.json: execution_time {end}", f"a.json: execution_time {end}",
    )  # fmt: skip
    assert (said_of_size, said_of_time, said_of_measured) == expected


def test_what_is_not_stated_is_none() -> None:
    assert problem_size_of({}, PATHS[0]) is None
    assert measured_of([{"processes": 2}, {"processes": 4, "execution_time": 3}], PATHS[:2]) == {"4": 3.0}
    assert (measured_in({}, PATHS[0]), measured_in({"measured": {"4": 3}}, PATHS[0])) == ({}, {4: 3.0})
    assert points_of([{}], PATHS[:1]) == []
    for wrong in ([], {"x": 1.0}, {"": 1.0}):
        line = "a.json: measured is expected to hold seconds by number of processes"
        assert said(measured_in, {"measured": wrong}, PATHS[0]) == line


@pytest.mark.parametrize(
    ("sizes", "line"),
    [
        ([None, None, None], ""),
        ([8, 8, 8], ""),
        ([8, 16, 32], ""),
        ([8, None, 16], ""),
        ([8, None, 8], ""),
        ([8, 16, 16], "b.json: is of problem size 16 on 4 processes, and a.json of 8 on 2"),
        ([8, 8, 4], "c.json: is of problem size 4 on 8 processes, and a.json of 8 on 2"),
        ([None, 9, 3], "c.json: is of problem size 3 on 8 processes, and b.json of 9 on 4"),
    ],
)
def test_problem_sizes_stay_or_grow_with_the_processes(sizes: list[float | None], line: str) -> None:
    documents = [
        {"processes": n} | ({} if size is None else {"problem_size": size})
        for n, size in zip((2, 4, 8), sizes, strict=True)
    ]
    more = ": expected one size, or sizes that grow with the processes" if line else ""
    assert said(one_workload_of, documents, PATHS) == line + more
    assert said(one_workload_of, documents[::-1], PATHS[::-1]) == line + more


POINT = {"processes": 2, "instructions": [1.0, 2.0], "seconds": [0.0, 0.5]}


@pytest.mark.parametrize(
    ("changes", "sound"),
    [
        ({}, True),
        ({"instructions": [], "seconds": []}, False),
        ({"seconds": [0.5]}, False),
        ({"seconds": [-0.1, 0.5]}, False),
        ({"seconds": [1e18, 0.5]}, False),
        ({"seconds": ["x", 0.5]}, False),
        ({"seconds": 3}, False),
        ({"processes": "two"}, False),
    ],
)
def test_points_are_pairs_of_instructions_and_seconds(changes: dict[str, Any], sound: bool) -> None:
    refused = said(points_of, [{"point": POINT | changes}], PATHS[:1])
    assert refused == ("" if sound else "a.json: point is of another form than extract --timed writes")


def test_points_come_back_in_order() -> None:
    first, other = points_of([{"point": POINT}, {}, {"point": POINT | {"processes": 3}}], PATHS)
    assert (first.processes, first.instructions, first.seconds) == (2, (1.0, 2.0), (0.0, 0.5))
    assert other.processes == 3
    assert "point" in said(points_of, [{"point": {"processes": 2}}], PATHS[:1])
