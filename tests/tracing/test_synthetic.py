"""The synthetic signature's program: what it is given, and what its lines make of the result."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from benchmarks.signature.applications import APPLICATIONS
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.fitting import fit
from metasched.signature.synthetic.collective_times import Collective
from metasched.signature.synthetic.plan import Plan, planned
from metasched.signature.synthetic.result import Result, digest
from metasched.tracing.synthetic import run_synthetic
from tests.tracing.programs import compiler, script


@pytest.fixture(scope="module")
def application() -> Application:
    halo = next(each for each in APPLICATIONS if each.name == "2-D halo, borders")
    return fit([halo.trace(n) for n in (16, 32, 64)]).application


@pytest.fixture(scope="module")
def plan(application: Application) -> Plan:
    return planned(application, 64, 18, 1, 1e-9)


@pytest.fixture
def cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return compiler(tmp_path)


def run(application: Application, cc: str, tmp_path: Path, printed: str, *more: str, **asked: Any) -> Result:
    """Run a launcher that prints lines, keeps the plan and goes on as ``more`` says."""
    lines = [f"cat <<'END'\n{printed}\nEND", f'cp "$2" "{tmp_path}/given"', f'echo "$1" >"{tmp_path}/program"', *more]
    own = script(tmp_path / "launch", *lines)
    return run_synthetic(application, 64, 18, [own], tmp_path / "result.json", cc, **asked)


def test_the_program_gets_the_plan_and_nothing_of_it_stays(
    application: Application, plan: Plan, cc: str, tmp_path: Path
) -> None:
    result = run(application, cc, tmp_path, "end 2.5")
    given = np.frombuffer((tmp_path / "given").read_bytes(), dtype=np.int64)
    assert given.tolist() == plan.words.tolist()
    built = Path((tmp_path / "program").read_text(encoding="utf-8").strip()).read_text(encoding="utf-8").splitlines()
    assert built[0] == "-O2"
    assert built[1].endswith("synthetic.c")
    assert not [*tmp_path.glob(".metasched-*")]
    assert (result.application, result.processes, result.cores) == (digest(application), 64, 18)
    assert (result.per_node, result.instruction_time) == (1, 1e-9)
    assert (dict(result.messages), dict(result.collectives)) == ({}, {})
    assert result.figures == {
        "ranges": [[list(one), list(other)] for one, other in plan.ranges],
        "measurable": plan.measurable,
        "black_holes": list(plan.black_holes),
        "noise": 2,
        "hosts": 0,
        "kinds": len(plan.kinds),
        "measured_kinds": 0,
        "synthetic_time": 2.5,
        "core_seconds": 45.0,
    }


def test_instructions_of_another_speed_and_nodes_of_several_processes_are_planned(
    application: Application, cc: str, tmp_path: Path
) -> None:
    result = run(application, cc, tmp_path, "end 1", per_node=4, speed=5e8)
    given = np.frombuffer((tmp_path / "given").read_bytes(), dtype=np.int64)
    assert given.tolist() == planned(application, 64, 18, 4, 2e-9).words.tolist()
    assert (result.per_node, result.instruction_time) == (4, 2e-9)


def test_hosts_are_counted_once_and_lines_of_other_forms_are_passed_over(
    application: Application, plan: Plan, cc: str, tmp_path: Path
) -> None:
    first = next(place for place, kind in enumerate(plan.kind.tolist()) if kind >= 0)
    lines = ["host 0 node a", "host 1 node b", "host 2 node a", "iteration 0 1.5", "end 1", "end 9"]
    other = ["seen 1", f"seen {first} 1 1", f"seen {first} nan", f"seen {first} x", "unknown 1", "", "seen -1 1.0"]
    result = run(application, cc, tmp_path, "\n".join([*lines, *other, f"seen {plan.kind.size} 1.0"]))
    assert result.figures["hosts"] == 2
    assert result.figures["synthetic_time"] == 1.0
    assert dict(result.messages) == {}


def test_a_kind_takes_the_median_of_what_was_seen_or_else_the_least_it_can_have_taken_at_most(
    application: Application, plan: Plan, cc: str, tmp_path: Path
) -> None:
    kinds = plan.kind.tolist()
    # Of the kind of the first message both are known, of another one only bounds.
    one = kinds[0]
    other = next(kind for kind in kinds if kind not in (one, -1))
    of_one = [place for place, kind in enumerate(kinds) if kind == one][:3]
    of_other = [place for place, kind in enumerate(kinds) if kind == other][:2]
    assert one >= 0
    assert of_one[0] == 0
    seen = [1e-3 * (2 + k) ** 2 for k in range(len(of_one))]
    lines = [f"seen {place} {seconds}" for place, seconds in zip(of_one, seen, strict=True)]
    lines += [f"most {place} 1e-9" for place in of_one] + [f"most {place} {3 - k}" for k, place in enumerate(of_other)]
    result = run(application, cc, tmp_path, "\n".join([*lines, "end 1"]))
    expected = {plan.kinds[one]: pytest.approx(median(seen)), plan.kinds[other]: float(4 - len(of_other))}
    assert dict(result.messages) == expected
    assert result.figures["measured_kinds"] == 2


def test_collective_operations_take_the_median_by_size_and_processes_and_never_less_than_nothing(
    application: Application, cc: str, tmp_path: Path
) -> None:
    rows = [(3, 8, 2, 1.0), (3, 8, 2, 2.0), (3, 8, 2, 9.0), (3, 8, 4, 3.0), (3, 16, 2, 4.0), (0, 0, 2, -1.0)]
    lines = [f"collective {kind} {size} {count} {seconds}" for kind, size, count, seconds in rows]
    result = run(application, cc, tmp_path, "\n".join([*lines, "end 1"]))
    assert {each: dict(times) for each, times in result.collectives.items()} == {
        Collective("allreduce", 8.0): {2: 2.0, 4: 3.0},
        Collective("allreduce", 16.0): {2: 4.0},
        Collective("barrier", 0.0): {2: 0.0},
    }


@pytest.mark.parametrize(
    ("printed", "more", "expected"),
    [
        ("end 1", ["echo 'first' >&2", "echo 'synthetic: no room' >&2", "echo 'synthetic: b' >&2"], "no room"),
        ("end 1", ["echo 'a' >&2", "echo ' b ' >&2", "echo >&2", "exit 3"], "{} ended with status 3 and said: b"),
        ("", [], "{} ended with status 0 and said: nothing"),
        ("end inf", [], "{} ended with status 0 and said: nothing"),
        (
            "end 1",
            [f"echo {'x' * 400} >&2", "exit 1"],
            "{} ended with status 1 and said: " + "x" * 300,
        ),
        ("end 1", ["printf '\\377' >&2", "exit 1"], "{} ended with status 1 and said: \ufffd"),
    ],
)
def test_what_the_program_says_of_a_failure_is_told(
    printed: str, more: list[str], expected: str, application: Application, cc: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refusal:
        run(application, cc, tmp_path, printed, *more)
    assert str(refusal.value) == expected.format(tmp_path / "launch")


def test_a_launcher_or_a_folder_that_is_missing_is_told(application: Application, cc: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        run_synthetic(application, 64, 18, ["no-mpirun"], tmp_path / "result.json", cc)
    assert str(refusal.value) == "no-mpirun is not installed, expected the command that starts MPI programs"
    with pytest.raises(InputError) as refusal:
        run_synthetic(application, 64, 18, ["sh"], tmp_path / "none" / "result.json", cc)
    assert str(refusal.value) == f"{tmp_path / 'none'}: is no folder"


@pytest.mark.parametrize(("launcher", "usual"), [("smpirun", "smpicc"), ("mpirun", "mpicc")])
def test_the_usual_compiler_is_that_of_the_launchers_mpi(
    launcher: str, usual: str, application: Application, cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / launcher, "echo end 1")
    script(tmp_path / usual, f'echo used >"{tmp_path}/used"', f'exec "{cc}" "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    run_synthetic(application, 64, 18, [launcher, "-np", "18"], tmp_path / "result.json")
    assert (tmp_path / "used").exists()
