"""``metasched signature record``: what each process of a run does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.store.files.recorded_traces import PERF, TIME, VALGRIND, read_recorded
from metasched.tracing.recording import Instructions, record

#: How computation was counted, in words.
COUNTED = {
    TIME: "processor time",
    PERF: "processor time and the processor's counter of instructions",
    VALGRIND: "valgrind's count of instructions",
}


def record_verb(
    launcher: Annotated[list[str], typer.Argument(help="Command that starts the program: mpirun -np 16 ./app")],
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Folder to write the trace to.")],
    compiler: Annotated[str, typer.Option(help="mpicc of the MPI that the program was built with.")] = "mpicc",
    instructions: Annotated[
        Instructions,
        typer.Option(help="How computation is counted; auto takes perf if processes can read a counter, else time."),
    ] = Instructions.auto,
    as_json: JsonOption = False,
) -> None:
    """Run an MPI program and record what each process does."""
    status = record(launcher, to, compiler, instructions)
    found = read_recorded(to)
    shown = {
        "processes": len(found.trace.processes),
        "events": found.trace.events,
        "execution_time": found.duration,
        "instructions": found.instructions,
        "cut": list(found.cut),
        "unrecorded": found.unrecorded,
        "status": status,
        "trace": str(to),
    }
    processes = number_of(len(found.durations), "process", "processes")
    line = f"{number_of(found.trace.events, 'action')} of {processes} in {found.duration:.6g} s"
    output.answer(as_json, shown, f"{line} written to {to}, computation by {COUNTED[found.instructions]}")
    output.warn(found.warnings)
    if status:
        output.to_stderr(f"{launcher[0]} ended with status {status}")
        raise typer.Exit(1)
