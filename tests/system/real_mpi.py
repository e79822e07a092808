"""Programs in C under a real MPI and the recorder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from metasched.signature.traces.trace import Trace
from metasched.store.files.recorded_traces import Recorded, read_recorded
from metasched.tracing.recording import record

MPIRUN = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
LAUNCHERS = {"openmpi": ["mpirun.openmpi", *MPIRUN[1:]], "mpich": ["mpiexec.mpich"]}


def allow_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Open MPI start processes though the tests run as root."""
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")


def compiler_of(library: str, wrapper: str = "mpicc") -> str:
    """The compiler of a library; the test is skipped where there is none."""
    compiler = f"{wrapper}.{library}"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    return compiler


def built(text: str, library: str, folder: Path) -> Path:
    """The program of a source in C, by the compiler of a library; the test is skipped where there is none."""
    source, program = folder / "program.c", folder / "program"
    source.write_text(text, encoding="utf-8")
    subprocess.run([compiler_of(library), "-w", "-pthread", str(source), "-o", str(program)], check=True)
    return program


def recorded(text: str, library: str, processes: int, folder: Path) -> Recorded:
    """The trace of a program on some processes."""
    program, to = built(text, library, folder), folder / "trace"
    launcher = [*LAUNCHERS[library], "-np", str(processes), str(program)]
    assert record(launcher, to, f"mpicc.{library}") == 0
    return read_recorded(to)


def calls(trace: Trace, rank: int) -> list[str]:
    """What a process called, without its computation."""
    actions = (trace.table.text(action) for action in trace.processes[rank].tolist())
    return [text for text in actions if not text.startswith("compute")]
