"""Measures the blocks of applications on this cluster by a small MPI program."""

from __future__ import annotations

import re
import statistics
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from monitors.bounded_commands import ExitError
from monitors.launched import launched

#: The program, and the options that a compiler of MPI is given.
SOURCE, OPTIONS = Path(__file__).with_name("blocks.c"), ("-O1",)
#: Bytes of a message at most: MPI counts them by an int.
LARGEST_MESSAGE = 2**31 - 1
HEADER = "block,value,data_size,nodes,threads,instructions"
#: A line of the program; launchers print others of their own.
_MEASURED = re.compile(r"([a-z0-9]+),(\d{1,3}(?:\.\d{1,20})?e[+-]?\d{1,3}),(\d{0,20},\d{0,20},\d{0,20},\d{0,20})")


def measure(
    launcher: Sequence[str],
    program: Path,
    processes: Sequence[int],
    sizes: Sequence[int],
    repetitions: int,
    file: str = "",
    timeout: float = 3600.0,
    warn: Callable[[str], None] | None = None,
) -> str:
    """Run the program with several numbers of processes.

    Parameters
    ----------
    launcher : what starts an MPI program, with its arguments; ``-np P`` is added.
    program : :data:`SOURCE`, compiled for the launcher's MPI.
    processes : numbers of processes, each on a node of its own.
    sizes : of messages (bytes).
    repetitions : of each block with each size.
    file : to make on the disk that is to be measured, where none may be yet; empty for none.
    timeout : seconds for each number of processes.
    warn : called with a line where processes share a host, so that messages are copied in its memory.

    Returns
    -------
    CSV with the median of the repetitions of each point. What takes no time that a clock can see is left out.

    Raises
    ------
    ValueError : when the launcher fails, starts each process by itself, or what it starts tells nothing.
    """
    points: dict[tuple[str, str], list[float]] = {}
    for count in processes:
        words = [*launcher, "-np", str(count), str(program), str(repetitions), file or "-", *map(str, sizes)]
        for line in _run(words, timeout).splitlines():
            if found := _MEASURED.fullmatch(line):
                block, value, point = found.groups()
                if block == "hosts":
                    if warn is not None and int(float(value)) < count:
                        ran = f"{count} processes ran on {float(value):g} host{'s' * (float(value) > 1)}"
                        warn(f"{ran}, expected one on each node: {launcher[0]} needs an option such as --map-by node")
                    continue
                # A launcher of another MPI starts programs that know nothing of each other.
                if block == "barrier" and (together := point.split(",")[1]) != str(count):
                    raise ValueError(
                        f"{launcher[0]} started {together} of {count} processes together, "
                        "expected the launcher of the compiler's MPI"
                    )
                points.setdefault((block, point), []).append(float(value))
    medians = {each: statistics.median(values) for each, values in points.items()}
    rows = [f"{block},{value:.9g},{point}" for (block, point), value in medians.items() if value > 0]
    if not rows:
        raise ValueError(f"{' '.join(launcher)} ran, but nothing was measured")
    return "\n".join([HEADER, *rows]) + "\n"


def _run(words: Sequence[str], timeout: float) -> str:
    try:
        done = launched(
            words, timeout=timeout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise ValueError(f"{words[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"{words[0]} took longer than {timeout:g} s") from None
    if done.returncode:
        raise ValueError(str(ExitError(words[0], " ".join(done.stderr.split()), done.returncode)))
    return str(done.stdout)
