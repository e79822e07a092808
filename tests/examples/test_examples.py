"""The demo's parts: the solver solves, however many processes it has, and the load comes, goes and leaves nothing."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from waiting import until

from metasched.records import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(EXAMPLES.parent)}


def load_module(name: str = "load") -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def solve(size: int, processors: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / "conjugate_gradient.py", "--problem-size", str(size)]
    return subprocess.run([*command, "--processors", str(processors)], capture_output=True, text=True, timeout=60)


def test_the_solver_takes_the_same_steps_on_any_number_of_processes() -> None:
    steps = set()
    for processors in (1, 2, 5):
        done = solve(61, processors)
        found = re.fullmatch(r"N 61  P \d  iterations (\d+)  residual (\S+)  seconds \S+\n", done.stdout)
        assert done.returncode == 0, done.stderr
        assert found is not None
        assert float(found[2]) < 1e-7
        steps.add(int(found[1]))
    assert max(steps) - min(steps) <= 1  # sums in another order may round differently


@pytest.mark.parametrize("processors", [0, 9])
def test_the_solver_refuses_more_processes_than_rows(processors: int) -> None:
    done = solve(8, processors)
    assert done.returncode == 2
    assert f"--processors is {processors}, expected a number from 1 to the problem size, 8" in done.stderr


def test_the_same_seed_draws_the_same_spells_of_load() -> None:
    module = load_module()

    def spells(seed: int) -> list[object]:
        source = random.Random(seed)
        return [module.draw(source, 4) for _ in range(50)]

    assert spells(3) == spells(3)
    assert spells(3) != spells(4)
    for spell in spells(3):
        assert 1 <= len(spell.shares) <= 4  # type: ignore[attr-defined]
        assert all(0 < share <= 1 for share in spell.shares)  # type: ignore[attr-defined]
        assert spell.length >= 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_the_load_computes_until_it_is_stopped_and_leaves_nothing_behind(
    signal_number: signal.Signals, status: int
) -> None:
    generator = subprocess.Popen([sys.executable, EXAMPLES / "load.py", "--seed", "1"])
    watched = psutil.Process(generator.pid)
    workers = until(watched.children)
    generator.send_signal(signal_number)
    assert generator.wait(timeout=60) == status
    assert not psutil.wait_procs(workers, timeout=60)[1]


def test_the_demo_corrects_what_it_sees_before_a_run_by_what_the_runs_before_met() -> None:
    outlook = load_module("demo").Outlook(seen={1: 0.8, 2: 0.6}, bandwidth=9000.0)
    assert (outlook.cpu(1), outlook.cpu(2), outlook.cpu(4)) == (0.8, 0.6, 0.6)
    unknown = outlook.doubt(2)
    for met in (0.3, 0.3, 0.3):
        outlook.met(Run("cg", "here", 100, 2, met, 9000.0, 1.0))
    assert (outlook.cpu(1), outlook.cpu(2), outlook.cpu(4)) == (0.8, pytest.approx(0.3), 0.6)
    outlook.seen[2] = 1.0
    assert outlook.cpu(2) == pytest.approx(0.5)
    known = outlook.doubt(2)
    assert unknown.cpu[0] < known.cpu[0] < 1 < known.cpu[1] < unknown.cpu[1]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_demo_does_the_main_job(tmp_path: Path) -> None:
    output = tmp_path / "demo"
    command = [sys.executable, EXAMPLES / "demo.py", "--output", output]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.name for path in output.iterdir()}
    assert {"runs.csv", "model.json", "clusters.toml", "metasched.db", "predicted.png", "scaling.png"} <= names
    assert (output / "predicted.png").read_bytes().startswith(b"\x89PNG")
    assert "times within their intervals" in done.stdout


def test_the_demo_does_not_remove_what_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    command = [sys.executable, EXAMPLES / "demo.py", "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 2
    assert "holds other files" in done.stderr
    assert (tmp_path / "thesis.tex").exists()
