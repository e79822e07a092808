"""Bad input to ``metasched signature``: one line that says what is wrong, exit status 2, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from tests.pages import ROOT
from tests.tracing.test_recorded_traces import halves

Answer = tuple[int, str]
COUNTS = (4, 8, 16)
MACHINE = ROOT / "benchmarks/signature/machine.toml"


def trace(path: Path, n: int, call: str = "barrier", work: float = 1e9, without: int = -1) -> None:
    """A ring of ``n`` processes with loops of five turns, as SimGrid writes it in one file."""
    lines = []
    for rank in range(n):
        if rank == without:
            continue
        turn = [f"compute {work / n:g}", f"isend {(rank + 1) % n} 0 800 1", f"recv {(rank - 1) % n} 0 800 1"]
        turn += ["waitall 1", call]
        lines += [f"{rank} {action}" for action in ["init", *(5 * turn), "finalize"]]
    path.write_text("\n".join([*lines, ""]))


def butterfly(path: Path, n: int) -> None:
    """Exchanges with the processes whose ranks differ in one bit."""
    lines = []
    for rank in range(n):
        partners = [rank ^ 1 << bit for bit in range(n.bit_length() - 1)]
        turn = [f"sendRecv 100 {peer} 100 {peer} 1 1" for peer in partners]
        lines += [f"{rank} {action}" for action in ["init", *turn, "finalize"]]
    path.write_text("\n".join([*lines, ""]))


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    monkeypatch.chdir(tmp_path)

    def answer(*words: object) -> Answer:
        status, _, err = call(capsys, "signature", *words)
        return status, err.replace("\n", " ")

    return answer


def extracted(told: Callable[..., Answer], n: int, **changed: Any) -> str:
    trace(Path(f"{n}.ti"), n, **changed)
    assert told("extract", f"{n}.ti", "-o", f"{n}.json")[0] == 0
    return f"{n}.json"


def refused(answer: Answer, line: str, *unwritten: str) -> None:
    status, err = answer
    assert status == 2
    assert line in err
    assert "Traceback" not in err
    assert err.count("metasched:") == 1
    assert [name for name in unwritten if Path(name).exists()] == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"call": "allreduce 8 0 1"}, "calls allreduce"),
        ({"work": 3e9}, "expected runs with one workload"),
    ],
)
def test_runs_of_other_programs_or_workloads_are_refused(
    told: Callable[..., Answer], changed: dict[str, Any], line: str
) -> None:
    files = [extracted(told, 4), extracted(told, 8), extracted(told, 16, **changed)]
    refused(told("fit", *files, "-o", "app.json"), line, "app.json")


def test_fewer_than_three_counts_say_what_can_still_be_told(told: Callable[..., Answer]) -> None:
    files = [extracted(told, 4), extracted(told, 8)]
    refused(told("fit", *files, "-o", "app.json"), "each run alone still gives its phases", "app.json")
    refused(told("fit", *files, files[0], "-o", "app.json"), "there are 2 signatures of", "app.json")


def test_rules_that_the_counts_leave_open_name_the_run_that_would_decide(
    told: Callable[..., Answer],
) -> None:
    lines = {n: [] for n in (4, 16, 64)}  # type: dict[int, list[str]]
    for n, of in lines.items():
        for rank in range(n):
            of += [
                f"{rank} init",
                f"{rank} compute {1440000 // n}",
                f"{rank} bcast {1440 // n} 0 1",
                f"{rank} finalize",
            ]
        Path(f"{n}.ti").write_text("\n".join([*of, ""]))
        assert told("extract", f"{n}.ti", "-o", f"{n}.json")[0] == 0
    status, err = told("fit", *(f"{n}.json" for n in lines), "-o", "app.json")
    assert status == 0
    assert "would decide" in err
    for words in (("predict", "--hardware", MACHINE), ("plot", "--hardware", MACHINE, "-o", "a.png"), ("expand",)):
        more = ("-o", "128.ti") if words == ("expand",) else ()
        counts = "128,256" if words[0] == "plot" else "128"
        status, err = told(words[0], "app.json", "--processes", counts, *words[1:], *more)
        assert (status, "would decide" in err) == (0, True)
    status, err = told("predict", "app.json", "--processes", "16", "--hardware", MACHINE)
    assert (status, "would decide" in err) == (0, False)  # both rules are right for a number that was learned


def test_processes_that_are_missing_or_cut_short_are_named(told: Callable[..., Answer]) -> None:
    trace(Path("missing.ti"), 4, without=2)
    refused(told("extract", "missing.ti", "-o", "a.json"), "2", "a.json")
    trace(Path("cut.ti"), 4)
    Path("cut.ti").write_text(Path("cut.ti").read_text().replace("3 finalize\n", ""))
    refused(told("extract", "cut.ti", "-o", "a.json"), "process 3", "a.json")


def test_a_run_that_ended_early_has_phases_but_no_rules(told: Callable[..., Answer]) -> None:
    for n in COUNTS:
        extracted(told, n)
    whole = json.loads(Path("8.json").read_text())
    folder = halves(Path("cut"), (7, 5))
    status, err = told("extract", folder, "-o", "cut.json")
    assert status == 0
    assert "warning: 2 of 2 processes did not end normally, process 0 first" in err
    found = json.loads(Path("cut.json").read_text())
    assert (found["cut"], found["events"], "execution_time" in found) == ([0, 1], 2 * 42, False)
    assert max(each["weight"] for each in found["phases"]) == 5
    assert "cut" not in whole
    refused(told("fit", "4.json", "cut.json", "8.json", "-o", "app.json"), "did not end normally", "app.json")


def test_messages_with_one_end_are_refused(told: Callable[..., Answer]) -> None:
    trace(Path("a.ti"), 4)
    lines = Path("a.ti").read_text().splitlines()
    lines.remove("1 recv 0 0 800 1")
    Path("a.ti").write_text("\n".join([*lines, ""]))
    refused(told("extract", "a.ti", "-o", "a.json"), "1 more messages from 0 to 1 are sent than received", "a.json")


def test_counts_for_which_the_rules_are_not_valid_name_the_nearest(told: Callable[..., Answer]) -> None:
    for n in COUNTS:
        butterfly(Path(f"{n}.ti"), n)
        assert told("extract", f"{n}.ti", "-o", f"{n}.json")[0] == 0
    assert told("fit", *(f"{n}.json" for n in COUNTS), "-o", "app.json")[0] == 0
    refused(told("expand", "app.json", "--processes", 48, "-o", "48.ti"), "try 32 or 64", "48.ti", "48.ti_files")
    refused(told("predict", "app.json", "--processes", 48, "--hardware", "galera-plus"), "try 32 or 64")
    refused(told("expand", "app.json", "--processes", 0, "-o", "0.ti"), "0", "0.ti")


def hostile(path: Path, **changed: Any) -> None:
    document = {"kind": "metasched-signature", "version": 1, "processes": 1, "actions": ["init"], "programs": [[0]]}
    path.write_text(json.dumps(document | changed))


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"kind": "other"}, "is no metasched-signature"),
        ({"version": 99}, "version is 99, expected 1"),
        ({"actions": 5}, "expected to be lists"),
        ({"actions": ["x; rm 1"]}, "expected a name and numbers"),
        ({"actions": ["compute 1e400"]}, "expected a name and numbers"),
        ({"programs": [[[10**12, [0]]]]}, "comes to more than"),
        ({"programs": [[[10**6, [[10**6, [[10**6, [0]]]]]]]]}, "comes to more than"),
        ({"programs": [[7]]}, "expected an action or a loop"),
        ({"programs": []}, "expected to be lists"),
    ],
)
def test_hostile_signatures_are_refused_before_anything_is_made_of_them(
    told: Callable[..., Answer], changed: dict[str, Any], line: str
) -> None:
    hostile(Path("a.json"), **changed)
    refused(told("fit", "a.json", "a.json", "a.json", "-o", "app.json"), line, "app.json")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"kind": NaN}', "is not JSON"),
        ('{"kind": "metasched-scaled-application", "version": 1, "application": {"roles": 3}}', "of another form"),
    ],
)
def test_hostile_applications_are_refused(told: Callable[..., Answer], text: str, line: str) -> None:
    Path("app.json").write_text(text)
    refused(told("expand", "app.json", "--processes", 8, "-o", "8.ti"), line, "8.ti", "8.ti_files")


@pytest.mark.parametrize("words", [("expand", "a.json"), ("run", "a.json", "--cores", "2", "mpirun")])
def test_numbers_of_processes_that_no_machine_has_are_refused(
    told: Callable[..., Answer], words: tuple[str, ...]
) -> None:
    status, said = told(*words[:2], "--processes", "9" * 23, "-o", "x", *words[2:])
    assert (status, "--processes" in said, " 9999999 " in said) == (2, True, True)
