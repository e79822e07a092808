"""What the recorder writes is read back whole; what is missing, cut short or hostile is told in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.records import InputError
from metasched.signature.traces.folding import Loop, Node, folded, unfolded
from metasched.signature.traces.phases import Machine, phases_of
from metasched.store.files.recorded_traces import HEADER, read_recorded
from metasched.store.files.signatures import signature_document, trace_of_signature

ACTIONS = ["init", "isend 1 0 8 -1", "irecv 1 0 8 -1", "waitall 2", "finalize"]


def spelled(nodes: tuple[Node, ...], bodies: list[str]) -> str:
    words = []
    for node in nodes:
        if isinstance(node, Loop):
            text = spelled(node.body, bodies)
            if text not in bodies:
                bodies.append(text)
            words.append(f"{bodies.index(text)}x{node.count}")
        else:
            words.append(str(node))
    return " ".join(words)


def file_of(rank: int, count: int, actions: list[str], program: list[int], how: str = "end") -> str:
    bodies: list[str] = []
    whole = spelled(folded(program), bodies)
    lines = [HEADER, f"process {rank} {count}", "instructions time", "duration 1.5"]
    lines += [f"a {each}" for each in actions] + ["t 0 1 1 2000000"]
    return "\n".join([*lines, *(f"b {each}" for each in bodies), f"p {whole}", how, ""])


def written(folder: Path, *texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, text in enumerate(texts):
        (folder / f"rank-{rank}").write_text(text, encoding="ascii")
    return folder


def pair(folder: Path, turns: int, how: str = "end") -> Path:
    program = [0, *([1, 2, 3] * turns), 4]
    other = [each.replace(" 1 0 8", " 0 0 8") for each in ACTIONS]
    return written(folder, file_of(0, 2, ACTIONS, program, how), file_of(1, 2, other, program, how))


def test_loops_and_computing_times_come_back(tmp_path: Path) -> None:
    found = read_recorded(pair(tmp_path / "run", 1000))
    texts = [found.trace.table.text(action) for action in found.trace.processes[0].tolist()]
    assert texts[:4] == ["init", "compute 2e+06", "isend 1 0 8 6", "compute 1"]
    assert len(texts) == 1 + 2 * (3 * 1000 + 1)
    assert (found.duration, found.cut) == (1.5, ())


def test_the_types_of_earlier_recorders_are_those_of_this_one(tmp_path: Path) -> None:
    earlier = [*ACTIONS[:-1], "gather 16 16 0 -1 -1", "bcast 8 1 -1", "wait 1 0 -1", "finalize"]
    later = [each if each.startswith("wait ") else each.replace("-1", "6") for each in earlier]
    program = [0, 1, 2, 3, 4, 5, 7]

    def read(name: str, actions: list[str]) -> list[list[str]]:
        other = [each.replace(" 1 0 8", " 0 0 8") for each in actions]
        run = written(tmp_path / name, file_of(0, 2, actions, program), file_of(1, 2, other, program))
        trace = read_recorded(run).trace
        document = signature_document(trace, phases_of(trace, Machine()))
        # An earlier signature of the run holds its actions as they were recorded.
        document["actions"] = [text.replace(" 6", " -1") if name == "earlier" else text for text in document["actions"]]
        again = trace_of_signature(document | {"instructions": "time"}, "")
        assert [[again.table.text(each) for each in actions] for actions in again.processes] == [
            [trace.table.text(each) for each in actions] for actions in trace.processes
        ]
        return [[trace.table.text(each) for each in actions.tolist()] for actions in trace.processes]

    assert read("earlier", earlier) == read("later", later)


def test_receives_that_were_cancelled_are_left_out_with_what_cancels_them(tmp_path: Path) -> None:
    actions = [*ACTIONS, "irecv 1 3 8 -1", "cancel 1 3 8 -1", "cancel 1 9 8 -1"]
    program = [0, 5, 5, *([1, 5, 2, 6, 3] * 4), 6, 7, 6, 4]
    other = [0, *([1, 2, 3] * 4), 4]
    mine = file_of(0, 2, actions, program).replace("t 0 1 1 2000000", "t 0 5 1 100\nt 5 5 1 200\nt 5 1 1 300")
    found = read_recorded(
        written(tmp_path / "run", mine, file_of(1, 2, [each.replace(" 1 0 8", " 0 0 8") for each in ACTIONS], other))
    )
    mine, others = ([found.trace.table.text(action) for action in one.tolist()] for one in found.trace.processes)
    assert mine[:3] == ["init", "compute 600", "isend 1 0 8 6"]
    assert [each.replace(" 1 0 8", " 0 0 8") for each in mine if "compute" not in each] == [
        each for each in others if "compute" not in each
    ]
    assert len(mine) == len(others)
    assert "cancel" not in {shape.name for shape in found.trace.table.shapes}


@given(st.lists(st.integers(1, 3), max_size=60))
def test_any_program_comes_back(program: list[int]) -> None:
    bodies: list[str] = []
    assert unfolded(folded([0, *program])).tolist() == [0, *program]
    assert spelled(folded([0, *program]), bodies)


def test_processes_that_were_cut_short_are_named(tmp_path: Path) -> None:
    assert read_recorded(pair(tmp_path / "run", 5, "cut")).cut == (0, 1)


def test_what_a_program_did_that_is_not_recorded_is_named(tmp_path: Path) -> None:
    folder = pair(tmp_path / "run", 5)
    assert read_recorded(folder).warnings == []
    for rank, lost in enumerate(("3 MPI_Put", "4 MPI_Put\nunrecorded 2 MPI_Send by other threads")):
        file = folder / f"rank-{rank}"
        text = file.read_text(encoding="ascii")
        file.write_text(text.replace("end\n", f"unrecorded {lost}\nend\n"), encoding="ascii")
    found = read_recorded(folder)
    assert found.unrecorded == {"MPI_Put": 7, "MPI_Send by other threads": 2}
    assert found.warnings == ["the trace lacks calls: 7 of MPI_Put, 2 of MPI_Send by other threads"]


def test_calls_without_a_number_as_earlier_recorders_wrote_them_count_once(tmp_path: Path) -> None:
    folder = pair(tmp_path / "run", 5)
    last = (folder / "rank-1").read_text(encoding="ascii")
    (folder / "rank-1").write_text(last.replace("end\n", "unrecorded file operations\nend\n"), encoding="ascii")
    assert read_recorded(folder).unrecorded == {"file operations": 1}


def test_messages_without_an_end_are_told_with_the_calls_that_are_not_recorded(tmp_path: Path) -> None:
    folder = pair(tmp_path / "run", 5)
    last = (folder / "rank-1").read_text(encoding="ascii").replace("irecv 0 0 8 -1", "barrier")
    (folder / "rank-1").write_text(last.replace("end\n", "unrecorded 5 MPI_Recv_c\nend\n"), encoding="ascii")
    with pytest.raises(InputError, match="sent than received; the trace lacks calls: 5 of MPI_Recv_c"):
        read_recorded(folder)


def halves(folder: Path, turns: tuple[int, int], call: str = "barrier") -> Path:
    """Two processes that were written down after different numbers of turns."""
    files = []
    for rank, many in enumerate(turns):
        actions = ["init", f"isend {1 - rank} 0 8 -1", f"irecv {1 - rank} 0 8 -1", "waitall 2", call]
        files.append(file_of(rank, 2, actions, [0, *([1, 2, 3, 4] * many), 1], "cut"))
    return written(folder, *files)


def test_what_all_processes_did_before_they_were_cut_short_is_kept(tmp_path: Path) -> None:
    found = read_recorded(halves(tmp_path / "run", (7, 5)))
    calls = [
        [text for text in map(found.trace.table.text, each.tolist()) if not text.startswith("compute")]
        for each in found.trace.processes
    ]
    # The message of the next turn, which each has started, was received by nobody.
    assert [len(each) for each in calls] == [1 + 5 * 4] * 2
    assert [each[-1] for each in calls] == ["barrier"] * 2
    assert found.left_out == 2 * (2 * 4 + 1)
    assert "2 of 2 processes did not end normally, process 0 first" in found.warnings[0]


def test_without_operations_of_all_processes_messages_tell_how_far_they_got(tmp_path: Path) -> None:
    found = read_recorded(halves(tmp_path / "run", (4, 9), "bsend -333 0 8 -1"))
    calls = [sum(not found.trace.table.text(action).startswith("compute") for action in each)
             for each in found.trace.processes]  # fmt: skip
    # In the fifth turn the slower one has received nothing.
    assert calls == [1 + 4 * 4] * 2


def test_processes_cut_short_before_they_did_anything_together_are_refused(tmp_path: Path) -> None:
    first, second = (file_of(rank, 2, ["barrier", "barrier"], [0], "cut") for rank in range(2))
    folder = written(tmp_path / "run", first, second.replace("p 0\n", "p\n"))
    with pytest.raises(InputError, match="cut short before they had done anything together"):
        read_recorded(folder)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text.replace(HEADER, "metasched-trace 9"), "expected 'metasched-trace 1'"),
        (lambda text: text.replace("process 0 2", "process 0 3"), "is of process 1 of 2, expected 1 of 3"),
        (lambda text: text.replace("p 0 ", "p 77 "), "not a line of the recorder"),
        (lambda text: text.replace("x5", "x5000000000"), "more than"),
        (lambda text: text.replace("x5", "x1"), "not a line of the recorder"),
        (lambda text: text.replace("b 1 2 3\n", "b \n"), "not a line of the recorder"),
        (lambda text: text.replace("end\n", ""), "has no last line"),
        (lambda text: text.replace("instructions time", "instructions perf"), "not a line of the recorder"),
        (lambda text: text.replace("instructions time", "instructions guessed"), "not a line of the recorder"),
        (lambda text: text.replace("1 2000000", "1 2000000 7"), "not a line of the recorder"),
        (lambda text: text.replace("1 2000000", "1 2" + 400 * "0"), "not a line of the recorder"),
        *(
            (lambda text, row=row: text.replace("t 0 1 1 2000000", row), "not a line of the recorder")
            for row in ("t -2 1 1 5", "t 5 1 1 5", "t 0 -1 1 5", "t 0 5 1 5", "t 0 1 0 5", "t 0 1 1 -1", "t 0 1 1")
        ),
        (lambda text: text.replace("duration 1.5", "duration -1"), "not a line of the recorder"),
        (lambda text: text.replace("duration 1.5", "duration nan"), "not a line of the recorder"),
        (
            lambda text: text.replace("end\n", "".join(f"unrecorded 1 f{i}\n" for i in range(1001)) + "end\n"),
            "not a line of the recorder",
        ),
        (lambda text: text.replace("end\n", "unrecorded 9999999999999999999 f\nend\n"), "not a line of the recorder"),
        (lambda text: text.replace("end\n", "unrecorded \x1b[2J\nend\n"), "not a line of the recorder"),
        (lambda text: text.replace("isend 1", "isend 7"), "names rank 7, expected one of 2 processes"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, change: object, told: str) -> None:
    folder = pair(tmp_path / "run", 5)
    first = folder / "rank-0"
    first.write_text(change(first.read_text(encoding="ascii")), encoding="ascii")  # type: ignore[operator]
    with pytest.raises(InputError, match=told):
        read_recorded(folder)


def counted(folder: Path, *ways: str) -> Path:
    """Processes that compute 3 ms, 2,000 instructions a microsecond, before each of ten barriers."""
    texts = []
    for rank, way in enumerate(ways):
        text = file_of(rank, len(ways), ["init", "barrier", "finalize"], [0, *([1] * 10), 2])
        rows = [f"t 0 1 1 3000000{'' if way == 'time' else ' 6000000'}"]
        rows += [f"t 1 1 9 27000000{'' if way == 'time' else ' 54000000'}"]
        text = text.replace("instructions time", f"instructions {way}").replace("t 0 1 1 2000000", "\n".join(rows))
        texts.append(text)
    return written(folder, *texts)


def test_instructions_come_back_beside_the_times(tmp_path: Path) -> None:
    found = read_recorded(counted(tmp_path / "run", "perf", "perf"))
    assert found.timed is not None
    for trace, first in ((found.trace, "compute 6e+06"), (found.timed, "compute 3e+06")):
        texts = [trace.table.text(action) for action in trace.processes[1].tolist()]
        assert texts[:4] == ["init", first, "barrier", first]
    assert (found.instructions, found.execution_time) == ("perf", 1.5)


def test_times_are_taken_where_some_processes_have_no_counter(tmp_path: Path) -> None:
    found = read_recorded(counted(tmp_path / "run", "perf", "time"))
    assert (found.instructions, found.timed) == ("time", None)
    assert found.trace.table.text(int(found.trace.processes[0][1])) == "compute 3e+06"


def test_times_under_valgrind_are_not_the_programs(tmp_path: Path) -> None:
    found = read_recorded(counted(tmp_path / "run", "valgrind", "valgrind"))
    assert found.trace.table.text(int(found.trace.processes[0][1])) == "compute 6e+06"
    assert (found.instructions, found.in_nanoseconds, found.execution_time) == ("valgrind", None, None)
    with pytest.raises(InputError, match="process 1 was not counted by valgrind to its end"):
        read_recorded(counted(tmp_path / "mixed", "valgrind", "time"))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_missing_process_is_named(tmp_path: Path, rank: int) -> None:
    folder = pair(tmp_path / "run", 5)
    (folder / f"rank-{rank}").unlink()
    said = f"process {rank} of 2 is missing, expected one that ran a second, on a node that has the folder"
    with pytest.raises(InputError, match=said):
        read_recorded(folder)


@pytest.mark.parametrize("place", [1, 5, 8])
def test_a_line_that_is_none_of_the_recorders_is_named_with_its_row(tmp_path: Path, place: int) -> None:
    folder = pair(tmp_path / "run", 5)
    file = sorted(each for each in folder.iterdir() if each.is_file())[0]
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:place], "x y z", *lines[place:], ""]))
    with pytest.raises(InputError, match=f"{file.name}, row {place + 1}: "):
        read_recorded(folder)
