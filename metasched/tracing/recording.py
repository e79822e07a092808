"""Runs an MPI program under the recorder, which is built with the user's mpicc when it is first needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from metasched.records import InputError
from metasched.store.files.user_folders import cache_folder
from metasched.tracing.compiled import compiled
from metasched.tracing.launchers import check_installed
from monitors.launched import launched

SOURCE = Path(__file__).with_name("recorder.c")
HEADERS = [
    SOURCE.with_name(f"{name}.h")
    for name in (
        "unrecorded_calls",
        "requests",
        "communicators",
        "folded_trace",
        "call_counts",
        "instruction_counter",
        "fortran_bindings",
    )
]
#: Callgrind collects between calls only, which the recorder switches; of its results only the log is used.
VALGRIND = (
    "--callgrind:collect-atstart=no",
    "--callgrind:callgrind-out-file=/dev/null",
    "--log-file=%q{METASCHED_TRACE}/.valgrind-%p",
)
#: Where a process leaves the reason for not being recorded.
REFUSED = "refused"


class Instructions(StrEnum):
    """How the instructions between calls are counted: auto is perf where processes can read a counter, else time."""

    auto = "auto"
    perf = "perf"
    valgrind = "valgrind"
    time = "time"


def recorder(compiler: str = "mpicc", options: Sequence[str] = ()) -> Path:
    """The recorder for a compiler of MPI, compiled once for each state of its source and its options.

    Raises
    ------
    InputError : when there is no such compiler, or it fails.
    """
    return compiled(SOURCE, compiler, ["-shared", "-fPIC", "-O2", *options], ".so", HEADERS)


def record(
    launcher: Sequence[str],
    to: Path,
    compiler: str = "mpicc",
    instructions: Instructions = Instructions.auto,
    options: Sequence[str] = (),
) -> int:
    """Run a launcher with its program; every process of it that starts MPI leaves a file in a folder.

    Parameters
    ----------
    launcher : the command, word by word.
    to : the folder, which is empty or not there.
    compiler : of the MPI that the program was built with.
    instructions : how they are counted.
    options : of the compiler, beside its own.

    Returns
    -------
    The launcher's status.

    Raises
    ------
    InputError : when the folder holds other things, the launcher cannot be started, instructions cannot be counted as
        asked for, no process has left a file, or the recorder's path is none that can be preloaded.
    """
    if {" ", ":"} & {*str(cache_folder())}:  # between libraries to be preloaded
        raise InputError(
            "holds a blank or a colon, expected a folder that the dynamic linker can load a library from: "
            "set XDG_CACHE_HOME",
            where=str(cache_folder()),
        )
    under_valgrind = instructions is Instructions.valgrind
    library = recorder(compiler, [*options, "-DWITH_VALGRIND"] if under_valgrind else options)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError("is there and not an empty folder", where=str(to))
    check_installed(launcher)
    to.mkdir(parents=True, exist_ok=True)
    preload = " ".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))
    environment = {
        **os.environ,
        "METASCHED_TRACE": str(to.resolve()),
        "METASCHED_INSTRUCTIONS": instructions,
        "LD_PRELOAD": preload,
    }
    if under_valgrind:
        environment["VALGRIND_OPTS"] = " ".join([os.environ.get("VALGRIND_OPTS", ""), *VALGRIND]).strip()
    try:
        status = launched(list(launcher), env=environment).returncode
    except BaseException:
        shutil.rmtree(to)
        raise
    for part in (*to.glob(".rank-*.part"), *to.glob(".valgrind-*")):
        part.unlink()
    if (to / REFUSED).exists():
        why = (to / REFUSED).read_text(encoding="ascii").strip()
        shutil.rmtree(to)
        raise InputError(why)
    if not any(to.glob("rank-*")):
        to.rmdir()
        raise InputError(
            f"no process was recorded, and {launcher[0]} ended with status {status}, "
            f"expected a launcher that works and a program that calls MPI_Init, built with the MPI of {compiler}"
        )
    return status
