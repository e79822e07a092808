"""Clocks of broadcasts and reductions beside those of SMPI, from the times of two and three processes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.signature.machine import write_machine
from metasched.signature.times.trees import RENDEZVOUS, broadcast, reduction

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not shutil.which("smpirun"), reason="SimGrid is not installed"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "broadcasts"
    subprocess.run(["smpicc", "-O2", str(Path(__file__).with_name("broadcasts.c")), "-o", str(path)], check=True)
    return path


def seconds(program: Path, count: int, reduces: bool, size: int, turns: int, step: int) -> float:
    platform, hosts = write_machine(program.parent, count)
    command = ["smpirun", "-np", str(count), "-platform", str(platform), "-hostfile", str(hosts)]
    command += ["--cfg=smpi/simulate-computation:no", str(program)]
    words = [str(int(reduces)), str(size), str(turns), str(step)]
    done = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


@pytest.mark.parametrize("size", [384, 24_576, int(RENDEZVOUS) + 34_464])
@pytest.mark.parametrize(("reduces", "step"), [(False, 0), (False, 1), (False, 5), (True, 0)])
def test_operations_one_after_another_take_as_long_as_under_smpi(
    program: Path, size: int, reduces: bool, step: int
) -> None:
    alone, shared = (seconds(program, count, False, size, 1, 0) for count in (2, 3))
    busy = min(shared - alone, alone)
    late = alone - busy
    count, turns = 16, 8
    clock = np.zeros(count)
    for turn in range(turns):
        root = turn * step % count
        clock = reduction(clock, root, size, alone) if reduces else broadcast(clock, root, size, late, busy)
    assert clock.max() == pytest.approx(seconds(program, count, reduces, size, turns, step), rel=0.03)
