"""Traces in files, signatures in files, and the commands over them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.signature.applications import APPLICATIONS
from metasched.records import InputError
from metasched.signature.rules.expanding import lines
from metasched.signature.traces.actions import BYTE, NULL, ActionTable
from metasched.signature.traces.folding import folded, length, unfolded
from metasched.signature.traces.phases import Machine, phases_of
from metasched.signature.traces.trace import trace_of
from metasched.store.files.signatures import SIGNATURE, read_document, trace_of_signature
from metasched.store.files.ti_traces import read_ti_trace, write_ti_trace

BY_NAME = {each.name: each for each in APPLICATIONS}
#: As SimGrid 3.32 wrote it, for every kind of line.
RECORDED = """0 init
0 compute 2.5e+06
0 sendRecv 3 1 3 1 1 1
0 bcast 10 1 0\x20
0 allreduce 10 0 0\x20
0 alltoallv 3 1 2 4 2 2 0 0
0 gatherv 1 1 2 0 0 0
0 reducescatter 1 2 0 0
0 wait 1 0 -3335
0 isend -333 6 2 1
0 finalize
1 init
1 sendRecv 3 0 3 0 1 1
1 finalize
"""


@pytest.mark.parametrize(
    "action",
    ["send 1 0 -8 -1", "sendRecv 8 1 -8 1 -1 -1", "bcast -1 0 0", "alltoall_on 2 -8 -8 -1 -1", "compute -5",
     "alltoallv 3 1 -2 4 2 2 0 0", "waitall -1"],
)  # fmt: skip
def test_amounts_below_zero_are_refused(action: str, tmp_path: Path) -> None:
    (tmp_path / "run.ti").write_text(f"0 init\n0 {action}\n0 finalize\n1 init\n1 finalize\n", encoding="ascii")
    with pytest.raises(InputError, match="has an amount below 0"):
        read_ti_trace(tmp_path / "run.ti")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["isend", "sendRecv", "wait", "compute", "reducescatter"]),
            st.booleans(),
            st.lists(st.tuples(*[st.sampled_from([float(NULL), 0.0, 1.0, 2.5])] * 4), max_size=6),
        ),
        max_size=4,
    )
)
def test_actions_added_together_are_those_added_one_by_one(
    groups: list[tuple[str, bool, list[tuple[float, ...]]]],
) -> None:
    together, single = ActionTable(), ActionTable()
    for name, tail, rows in groups:
        numbers = [*together.extend(name, rows, tail)]
        assert numbers == [single.add(name, row, tail) for row in rows]
    actions = range(len(single.shape))
    assert [together.text(each) for each in actions] == [single.text(each) for each in actions]
    assert [together.shapes[each] for each in together.shape] == [single.shapes[each] for each in single.shape]
    assert together.numbers == single.numbers


@pytest.mark.parametrize(
    ("kind", "size"),
    [  # as MPI_Type_size tells them under SimGrid 3.32
        (0, 8), (1, 4), (2, 1), (3, 2), (5, 4), (BYTE, 1), (7, 8), (11, 4), (14, 16), (16, 1), (18, 2), (24, 8),
        (26, 16), (27, 32), (32, 16), (34, 8), (37, 16), (38, 4), (42, 8), (44, 16), (45, 4), (46, 2), (49, 16),
        (50, 32), (59, 8), (-1, 1),
    ],
)  # fmt: skip
def test_messages_have_the_bytes_of_the_types_that_simgrid_numbers(kind: int, size: int) -> None:
    table = ActionTable()
    assert table.volume(table.add("send", (1, 0, 10, kind))) == 10 * size
    assert table.volume(table.add("allreduce", (10, 0, kind))) == 10 * size


def test_the_bytes_of_operations_of_some_processes_count() -> None:
    table = ActionTable()
    volumes = [
        table.volume(table.add(name, numbers))
        for name, numbers in (
            ("alltoall_on", (4, 1000, 1000, -1, -1)), ("bcast_on", (4, 30, 0, -1)), ("barrier_on", (4,)),
        )
    ]  # fmt: skip
    assert volumes == [1000.0, 30.0, 0.0]


def test_lists_of_operations_of_some_processes_are_lists_and_their_bytes_count() -> None:
    table = ActionTable()
    shapes = []
    for many in (2, 4):
        each = [100.0] * many
        total = 100.0 * many
        actions = [
            table.add("alltoallv_on", [many, total, *each, total, *each, -1, -1]),
            table.add("reducescatter_on", [many, *each, 0, -1]),
            table.add("reducescatter", [*each, 0, -1]),
        ]
        assert [table.volume(action) for action in actions] == [total] * 3
        assert [len(table.lists[action][0]) for action in actions] == [many] * 3
        shapes.append([table.shape[action] for action in actions])
    assert shapes[0] == shapes[1]


@given(st.lists(st.integers(0, 3), max_size=60))
def test_folding_loses_nothing(sequence: list[int]) -> None:
    nodes = folded(sequence)
    assert unfolded(nodes).tolist() == sequence
    assert length(nodes) == len(sequence)


def test_a_trace_is_written_as_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "one.ti").write_text(RECORDED)
    trace = read_ti_trace(tmp_path / "one.ti")
    written = [f"{rank} {line}" for rank, process in enumerate(lines(trace)) for line in process]
    assert "\n".join([*written, ""]) == RECORDED
    write_ti_trace(tmp_path / "again.ti", lines(trace))
    assert (tmp_path / "again.ti").read_text().split() == [f"again.ti_files/0_rank-{rank}.txt" for rank in (1, 2)]
    again = read_ti_trace(tmp_path / "again.ti")
    assert [*lines(again)] == [*lines(trace)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "holds no action"),
        ("../../etc/passwd\n", "no file beside the trace"),
        ("/etc/passwd\n", "no file beside the trace"),
        ("0 init\n2 init\n", "process 1 of 2 or more is missing"),
        ("0 init\n0 send 1 0 nan 0\n", "row 2: 'nan' is no number"),
        ("0 init\n0 send 1 0 1e300 0\n", "row 2: '1e300' is no number"),
        ("0 init\n99999999999 init\n", "row 2: rank is"),
        ("0 init\n0 se$nd 1\n", "row 2: action is"),
        ("0 init\n0 finalize\n1 init\n", "process 1 is cut short"),
        ("0 send 1 0 5 0\n1 init\n", "1 more messages from 0 to 1 are sent than received"),
        ("0 send 7 0 5 0\n1 init\n", "names rank 7"),
        ("0 init\n\xff\n", "is not plain text"),
    ],
)
def test_bad_traces_are_refused_in_a_line(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "bad.ti").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_ti_trace(tmp_path / "bad.ti")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"programs": [[[1, [[1, [0]]]], "x"]]},
        {"programs": [[[10**12, [0]]]]},
        {"programs": [[-1]]},
        {"programs": []},
        {"actions": ["send 1 0 1e999 0"]},
        {"actions": 3},
    ],
)
def test_bad_signatures_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    good = {"kind": SIGNATURE, "version": 1, "actions": ["init"], "programs": [[0], [0]]}
    (tmp_path / "s.json").write_text(json.dumps(good | change))
    with pytest.raises(InputError):
        trace_of_signature(read_document(tmp_path / "s.json", SIGNATURE), "s.json")


def test_from_traces_to_a_larger_one_by_three_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for n in (4, 9, 16):
        write_ti_trace(f"{n}.ti", lines(BY_NAME["cannon"].trace(n)))
        _run(capsys, "extract", f"{n}.ti", "-o", f"{n}.json", "--json")
    answer = _run(capsys, "extract", "16.ti", "-o", "16.json", "--json")
    assert {"processes", "events", "duration", "coverage", "phases"} <= {*answer}
    assert answer["coverage"] >= 0.95
    fitted = _run(capsys, "fit", "4.json", "9.json", "16.json", "-o", "app.json", "--json")
    assert (fitted["ruled"], fitted["valid"]) == (1.0, "squares")
    assert {"phase", "weights", "equation"} <= {*fitted["weights"][0]}
    assert _run(capsys, "expand", "app.json", "--processes", "64", "-o", "64.ti", "--json")["processes"] == 64
    assert [*lines(read_ti_trace("64.ti"))] == [*lines(BY_NAME["cannon"].trace(64))]


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    status, out, err = call(capsys, "signature", *arguments)
    assert status == 0, err
    return dict(json.loads(out))


def test_what_is_received_from_nobody_hides_no_message_that_is_lost() -> None:
    nobody, lost = ("irecv", (NULL, 0, 8, -1)), ("send", (1, 0, 8, -1))
    # A receive from nobody may be one from any source, which takes one message.
    assert trace_of({0: [lost], 1: [nobody]}).checked().events == 2
    for actions in (
        {0: [nobody, lost], 1: []},
        {0: [lost, lost], 1: [nobody]},
        {0: [nobody], 1: [("recv", (0, 0, 8, -1))]},
    ):
        with pytest.raises(InputError, match="more messages from 0 to 1 are"):
            trace_of(actions).checked()


def test_borders_whose_calls_fold_another_way_have_the_phases_of_the_others() -> None:
    # Before each call there is some work, so that equal neighbours are a loop of two; a border folds three of four.
    def steps(peers: tuple[int, ...]) -> list[tuple[str, tuple[float, ...]]]:
        posts = [(name, (peer, 1, 8, -1)) for name in ("irecv", "isend") for peer in peers]
        calls = [*posts, ("waitall", (len([peer for peer in peers if peer >= 0]) * 2,))]
        return [part for call in calls for part in (("compute", (1e5,)), call)] * 20

    border, inner = steps((NULL, 1, 1, 1)), steps((0, 0, 1, 0))
    trace = trace_of({0: [("init", ()), *border], 1: [("init", ()), *inner]})
    found = phases_of(trace, Machine())
    first, *_ = found.phases
    assert (first.weight, first.share) == (1, 0.0)


def test_what_workers_do_belongs_to_the_loop_of_their_master() -> None:
    for workers in (3, 15):
        turns = 240 // workers
        task, answer = ("send", (1, 0, 8, -1)), ("recv", (1, 0, 8, -1))
        master = [task] * workers + [answer, ("compute", (10.0,)), task] * (240 - workers) + [answer] * workers
        worker = [("recv", (0, 0, 8, -1)), ("compute", (1e7,)), ("send", (0, 0, 8, -1))] * turns
        actions = {rank: worker if rank else master for rank in range(workers + 1)}
        found = phases_of(trace_of(actions), Machine())
        most = max(found.phases, key=lambda each: each.share)
        assert (most.weight, most.share > 0.9) == (240 - workers, True)


def test_a_measured_computation_has_the_mean_of_those_between_the_same_actions_also_at_either_end() -> None:
    amounts = [float(10 * number**2) for number in range(1, 103)]
    first, *inner, last = (("compute", (amount,)) for amount in amounts)
    trace = trace_of({0: [first, *(each for one in inner for each in (("barrier", ()), one)), ("barrier", ()), last]})
    steady = trace.steadied()
    of = [steady.table.numbers[action][0] for action in steady.processes[0][::2].tolist()]
    mean = float(f"{sum(amounts[1:-1]) / 100:.6g}")
    assert of == [amounts[0], *[mean] * 100, amounts[-1]]
    # Where amounts come again they were stated, and stay.
    stated = trace_of({0: [("compute", (float(number % 4),)) for number in range(200)]})
    assert stated.steadied() is stated
