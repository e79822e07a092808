"""Instructions counted while recording: by a counter of the kernel, by callgrind, or why they cannot be counted."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import status_of

from metasched.records import InputError
from metasched.store.files.recorded_traces import Recorded, read_recorded
from metasched.tracing.recording import Instructions, record, recorder
from tests.system.real_mpi import MPIRUN, allow_root

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("mpicc") is None or shutil.which("mpirun") is None, reason="MPI is not installed"),
]
#: The recorder with the processor time of a task, which every kernel counts, in the place of the instructions.
TASK_CLOCK = ("-DEVENT_TYPE=PERF_TYPE_SOFTWARE", "-DEVENT=PERF_COUNT_SW_TASK_CLOCK")

#: Each turn multiplies 60,000 times in all, which processes share unevenly: the first has twice as much as the others.
PROGRAM = r"""
#include <mpi.h>
int main(int argc, char** argv)
{
  int rank, n;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  volatile double value = 1.0;
  for (int turn = 0; turn < 20; turn++) {
    for (int i = 0; i < 60000 * (rank == 0 ? 2 : 1) / (n + 1); i++)
      value = value * 1.0000001;
    double sum = value;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""
#: Microseconds of a call that does nothing, the best of some rounds.
COST = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv)
{
  double best = 1e9;
  MPI_Init(&argc, &argv);
  for (int round = 0; round < 9; round++) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < 100000; i++)
      MPI_Send(0, 0, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    const double took = (MPI_Wtime() - begin) / 100000;
    best = took < best ? took : best;
  }
  printf("%.4f\n", 1e6 * best);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_root(monkeypatch)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("turns", PROGRAM), ("cost", COST)):
        (folder / f"{name}.c").write_text(text, encoding="utf-8")
        subprocess.run(["mpicc", "-O1", str(folder / f"{name}.c"), "-o", str(folder / name)], check=True)
    return {name: str(folder / name) for name in ("turns", "cost")}


def amounts(recorded: Recorded, rank: int, timed: bool = False) -> float:
    """What a process computes in all its turns, in instructions or nanoseconds."""
    trace = recorded.timed if timed else recorded.trace
    assert trace is not None
    return sum(trace.table.instructions(action) for action in trace.processes[rank].tolist())


def run(program: str, to: Path, way: Instructions, options: Sequence[str] = (), count: int = 2) -> Recorded:
    before = ["valgrind", "--tool=callgrind"] if way is Instructions.valgrind else []
    assert record([*MPIRUN, "-np", str(count), *before, program], to, instructions=way, options=options) == 0
    assert not [*to.glob(".*")]
    return read_recorded(to)


def test_a_counter_of_the_kernel_is_read_around_each_call(programs: dict[str, str], tmp_path: Path) -> None:
    found = run(programs["turns"], tmp_path / "run", Instructions.perf, TASK_CLOCK)
    assert found.instructions == "perf"
    for rank in range(2):
        # This event is the processor time itself, which the recorder also takes from the clock.
        assert amounts(found, rank) == pytest.approx(amounts(found, rank, timed=True), rel=0.3)
        assert amounts(found, rank) > 0


def _counts() -> bool:
    """Whether this machine counts instructions for its users."""
    if shutil.which("perf") is None:
        return False
    done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
    return done.returncode == 0 and done.stderr.strip()[:1].isdigit()


def test_without_a_counter_times_are_recorded(programs: dict[str, str], tmp_path: Path) -> None:
    if _counts():
        pytest.skip("this machine counts instructions")
    found = run(programs["turns"], tmp_path / "run", Instructions.auto)
    assert found.instructions == "time"
    with pytest.raises(InputError, match="instructions cannot be counted: this processor has no counter"):
        record([*MPIRUN, "-np", "2", programs["turns"]], tmp_path / "refused", instructions=Instructions.perf)
    assert not (tmp_path / "refused").exists()


def test_instructions_of_the_processor_are_those_of_the_loop(programs: dict[str, str], tmp_path: Path) -> None:
    if not _counts():
        pytest.skip("this machine counts no instructions")
    found = run(programs["turns"], tmp_path / "run", Instructions.perf)
    assert amounts(found, 0) == pytest.approx(2 * amounts(found, 1), rel=0.05)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_callgrind_counts_the_instructions_of_the_loop(programs: dict[str, str], tmp_path: Path) -> None:
    found = run(programs["turns"], tmp_path / "run", Instructions.valgrind)
    first, second = (amounts(found, rank) for rank in range(2))
    # So many for each multiplication, and a few around each call: none of those of MPI.
    each = (first - second) / (20 * 20_000)
    assert each == pytest.approx(round(each), abs=0.01)
    assert 0 < second - 20 * 20_000 * each < 20 * 1_000
    # The same again, to the last digit that is kept but for what surrounds the first and the last turn.
    again = run(programs["turns"], tmp_path / "again", Instructions.valgrind)
    assert amounts(again, 1) == pytest.approx(second, rel=1e-3)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_rules_hold_for_instructions_that_callgrind_counted(programs: dict[str, str], tmp_path: Path) -> None:
    signatures = []
    for count in (2, 3, 4, 5):
        run(programs["turns"], tmp_path / str(count), Instructions.valgrind, count=count)
        signatures.append(str(tmp_path / f"{count}.json"))
        assert status_of("signature", "extract", str(tmp_path / str(count)), "-o", signatures[-1]) == 0
    # The largest of the four runs is predicted from the others.
    assert status_of("signature", "fit", *signatures[:3], "-o", str(tmp_path / "app.json")) == 0
    assert status_of("signature", "expand", tmp_path / "app.json", "--processes", 5, "-o", tmp_path / "5.ti") == 0
    status_of("signature", "extract", str(tmp_path / "5.ti"), "-o", str(tmp_path / "told.json"), "--json")
    told, counted = (
        max(json.loads((tmp_path / name).read_text())["phases"], key=lambda each: float(each["instructions"]))
        for name in ("told.json", "5.json")
    )
    assert told["instructions"] == pytest.approx(counted["instructions"], rel=0.05)


def test_valgrind_that_is_not_there_is_missed(programs: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    with pytest.raises(InputError, match="the program does not run under valgrind, expected a launcher such as"):
        record([*MPIRUN, "-np", "2", programs["turns"]], tmp_path / "run", instructions=Instructions.valgrind)
    assert not (tmp_path / "run").exists()


#: A page that lets processes read the processor's time stamps, which takes the processor about as long as a counter.
TIME_STAMPS = r"""
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdint.h>
static struct perf_event_mmap_page stamps = {.cap_user_rdpmc = 1, .index = 1, .pmc_width = 64};
#define MAPPED(file) &stamps
#define READ_PROCESSOR(number) __builtin_ia32_rdtsc()
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86's counters are read without the kernel")
def test_what_a_counted_call_costs(programs: dict[str, str], tmp_path: Path) -> None:
    command = [*MPIRUN, "-np", "1", programs["cost"]]
    (tmp_path / "stamps.h").write_text(TIME_STAMPS, encoding="ascii")
    ways = {
        "time": ("time", TASK_CLOCK),
        "asking the kernel": ("perf", TASK_CLOCK),
        "asking the processor": ("perf", (*TASK_CLOCK, "-include", str(tmp_path / "stamps.h"))),
    }
    costs = {}
    for name, (way, options) in ways.items():
        (tmp_path / name).mkdir()
        environment = {**os.environ, "METASCHED_INSTRUCTIONS": way, "METASCHED_TRACE": str(tmp_path / name)}
        environment["LD_PRELOAD"] = str(recorder(options=options))
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        costs[name] = float(done.stdout)
    for name in [*ways][1:]:
        print(f"\na call costs {costs[name] - costs['time']:.3f} us more with a counter, {name}")
    assert costs["asking the processor"] - costs["time"] < 0.5
