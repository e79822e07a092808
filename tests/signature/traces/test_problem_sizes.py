"""Problem sizes that were not run: numbers and loops grow, partners stay; rules then hold for more processes, too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import status_of
from hypothesis import given
from hypothesis import strategies as st

from metasched.records import InputError
from metasched.signature.rules.expanding import lines
from metasched.signature.traces.problem_sizes import at_size, resized
from metasched.signature.traces.trace import Trace, trace_of
from metasched.store.files.ti_traces import read_ti_trace, write_ti_trace

Action = tuple[str, tuple[float, ...]]


def mesh(size: int, n: int, turns: int = 20) -> Trace:
    """Faces of a square mesh in a ring of slabs, with two more rows at the borders, and a sum in each turn."""
    per = size // n
    processes = {}
    for rank in range(n):
        after, before = (rank + 1) % n, (rank - 1) % n
        turn: list[Action] = [
            ("compute", (float(5 * per * size),)),
            ("irecv", (before, 1, 8 * (size + 2), -1)),
            ("isend", (after, 1, 8 * (size + 2), -1)),
            ("waitall", (2,)),
            ("allreduce", (8, 0, -1)),
        ]
        processes[rank] = [("init", ()), ("bcast", (8 * size, 0, -1)), *(turns * turn), ("finalize", ())]
    return trace_of(processes)


def texts(trace: Trace, rank: int = 0) -> list[str]:
    return [trace.table.text(action) for action in trace.processes[rank].tolist()]


def test_a_run_of_another_size_is_that_run_action_by_action() -> None:
    made = resized({size: mesh(size, 4) for size in (64, 128, 256)}, 1024)
    wanted = mesh(1024, 4)
    assert [texts(made, rank) for rank in range(4)] == [texts(wanted, rank) for rank in range(4)]


def test_two_sizes_tell_powers_and_nearly_what_stands_beside_them() -> None:
    made, wanted = resized({size: mesh(size, 4) for size in (128, 256)}, 512), mesh(512, 4)
    assert texts(made)[1:3] == texts(wanted)[1:3]  # a broadcast, and computation
    got, true = (float(texts(each)[3].split()[3]) for each in (made, wanted))
    assert got == pytest.approx(true, rel=0.01)


def test_loops_turn_more_often_with_the_size() -> None:
    made = resized({size: mesh(size, 4, turns=size // 4) for size in (64, 128)}, 256)
    assert made.events == mesh(256, 4, turns=64).events


@given(st.floats(1.0, 1e6), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), st.floats(1.5, 4.0), st.floats(0.5, 8.0))
def test_any_power_is_found_from_two_sizes(coefficient: float, power: float, ratio: float, further: float) -> None:
    sizes = [100.0, 100.0 * ratio]
    told = at_size(sizes, [coefficient * size**power for size in sizes], 100.0 * further)
    assert told == pytest.approx(coefficient * (100.0 * further) ** power, rel=1e-6)


@given(st.integers(0, 1000), st.integers(1, 1000), st.sampled_from([1, 2, 3]))
def test_a_constant_beside_a_power_is_found_from_three_sizes(constant: int, slope: int, power: int) -> None:
    sizes = np.array([10.0, 20.0, 30.0])
    told = at_size(sizes.tolist(), (constant + slope * sizes**power).tolist(), 60.0)
    assert told == pytest.approx(constant + slope * 60.0**power, rel=1e-6)


def shifted(size: int) -> Trace:
    """Partners that depend on the size."""
    step = 1 if size < 100 else 3
    return trace_of({
        rank: [("send", ((rank + step) % 4, 0, 8, -1)), ("recv", ((rank - step) % 4, 0, 8, -1))] for rank in range(4)
    })  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ({64: mesh(64, 4)}, "problem size 64 alone, expected at least two"),
        ({64: mesh(64, 4), 128: mesh(128, 8)}, "the runs are of 4, 8 processes"),
        ({64: shifted(64), 128: shifted(128)}, "expected partners that do not depend on the problem size"),
        (
            {size: mesh(size, 4, turns=size) for size in (8, 16)},
            "the run comes to more than 50000000 actions with problem size 1e.08",
        ),
        ({64: mesh(64, 4), 128: shifted(128)}, "process 0 has other calls or loops with problem size 128 than with 64"),
    ],
)
def test_runs_that_do_not_stand_side_by_side_are_refused(runs: dict[float, Trace], told: str) -> None:
    with pytest.raises(InputError, match=told):
        resized(runs, 1e8)


def test_numbers_without_bounds_are_refused() -> None:
    with pytest.raises(InputError, match=r"4e\+06 with problem size 2000 grows beyond 1e\+18 with 1e\+25"):
        at_size([1000, 2000], [1e6, 4e6], 1e25)


def signature_of(size: int, n: int) -> str:
    write_ti_trace(Path(f"{size}-{n}.ti"), lines(mesh(size, n)))
    assert (
        status_of("signature", "extract", f"{size}-{n}.ti", "--problem-size", str(size), "-o", f"{size}-{n}.json") == 0
    )
    return f"{size}-{n}.json"


def test_more_processes_and_another_size_from_small_runs_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for n in (4, 8, 16):
        runs = [signature_of(size, n) for size in (64, 128, 192)]
        capsys.readouterr()
        assert status_of("signature", "resize", *runs, "--problem-size", "1024", "-o", f"{n}.json", "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["processes"], shown["problem_size"], shown["problem_sizes"]) == (n, 1024, [64, 128, 192])
        assert "outside of those that were run, 64 to 192" in shown["warnings"][0]
    assert status_of("signature", "fit", "4.json", "8.json", "16.json", "-o", "app.json") == 0
    assert status_of("signature", "expand", "app.json", "--processes", "64", "-o", "64.ti") == 0
    write_ti_trace(Path("true.ti"), lines(mesh(1024, 64)))
    told, true = (read_ti_trace(Path(name)) for name in ("64.ti", "true.ti"))
    assert [texts(told, rank) for rank in range(64)] == [texts(true, rank) for rank in range(64)]


def test_sizes_that_are_missing_or_mixed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small, large, other, last = signature_of(64, 4), signature_of(128, 4), signature_of(64, 8), signature_of(64, 16)
    assert status_of("signature", "extract", "64-4.ti", "-o", "none.json") == 0
    for words, told in (
        (["resize", small, "none.json", "--problem-size", "9", "-o", "x.json"], "none.json: states no problem size"),
        (["resize", small, small, "--problem-size", "9", "-o", "x.json"], "is of problem size 64, as another"),
        (["resize", small, other, "--problem-size", "9", "-o", "x.json"], "is of problem size 64, as another"),
        (["resize", small, large, "--problem-size", "-1", "-o", "x.json"], "--problem-size is -1, expected"),
        (["extract", "64-4.ti", "--problem-size", "0", "-o", "x.json"], "--problem-size is 0, expected"),
        (["fit", large, other, last, "-o", "x.json"], "expected one size, or sizes that grow with the processes"),
    ):
        assert status_of("signature", *words) == 2
        assert told in capsys.readouterr().err
        assert not Path("x.json").exists()
