"""Runs the synthetic signature of an application under the user's launcher of MPI, and reads what it measured."""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import sound
from metasched.signature.synthetic.collective_times import MEASURED, Collective
from metasched.signature.synthetic.message_kinds import MessageKind
from metasched.signature.synthetic.plan import Plan, planned
from metasched.signature.synthetic.result import Result, digest
from metasched.tracing.compiled import compiled
from metasched.tracing.launchers import check_installed
from monitors.launched import launched

SOURCE = Path(__file__).with_name("synthetic.c")
#: How many numbers stand behind each word that the program prints.
_LINES = {"seen": 2, "most": 2, "collective": 4, "iteration": 2, "end": 1}


def run_synthetic(
    application: Application, count: int, cores: int, launcher: Sequence[str], to: Path, compiler: str | None = None,
    per_node: int = 1, speed: float = 1e9,
) -> Result:  # fmt: skip
    """Run the synthetic signature of an application.

    Parameters
    ----------
    application, count : what, and its processes.
    cores : processes that the launcher starts.
    launcher : command that starts them, without the program.
    to : where the result will be; the plan lies beside it while the program runs.
    compiler : mpicc of the launcher's MPI; by default smpicc for smpirun, else mpicc.
    per_node : processes of the application on each node, in the order of their ranks.
    speed : instructions per second of a process.

    Raises
    ------
    InputError : when the rules do not hold, the launcher fails, or the program ends early.
    """
    check_installed(launcher)
    if not to.parent.is_dir():
        raise InputError("is no folder", where=str(to.parent))
    smpi = Path(launcher[0]).name == "smpirun"
    sound(application, count)
    plan = planned(application, count, cores, per_node, 1.0 / speed)
    program = compiled(SOURCE, compiler or ("smpicc" if smpi else "mpicc"), ["-O2"])
    # Beside the result, since every node can read from where the user writes to.
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".metasched-") as folder:
        words = Path(folder) / "plan"
        words.write_bytes(plan.words.astype(np.int64).tobytes())
        command = [*launcher, str(program), str(words.resolve())]
        done = launched(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    said = [line for line in done.stderr.splitlines() if line.startswith("synthetic: ")]
    if said:
        raise InputError(said[0].removeprefix("synthetic: "))
    rows = _rows(done.stdout)
    if done.returncode or "end" not in rows:
        last = next((line.strip() for line in reversed(done.stderr.splitlines()) if line.strip()), "nothing")
        raise InputError(f"{launcher[0]} ended with status {done.returncode} and said: {last[:300]}")
    hosts = {line.split(maxsplit=2)[2] for line in done.stdout.splitlines() if line.startswith("host ")}
    messages = _messages(plan, rows)
    seconds = rows["end"][0][0]
    figures = {
        "ranges": [list(map(list, pair)) for pair in plan.ranges],
        "measurable": plan.measurable,
        "black_holes": list(plan.black_holes),
        "noise": 2,
        "hosts": len(hosts),
        "kinds": len(plan.kinds),
        "measured_kinds": len(messages),
        "synthetic_time": seconds,
        "core_seconds": cores * seconds,
    }
    return Result(digest(application), count, cores, per_node, 1.0 / speed, messages, _collectives(rows), figures)


def _rows(text: str) -> dict[str, list[list[float]]]:
    """Numbers of the lines that the program prints, by their first word."""
    found: dict[str, list[list[float]]] = {}
    for line in text.splitlines():
        word, *rest = line.split(" ")
        if len(rest) == _LINES.get(word, -1):
            try:
                numbers = [float(each) for each in rest]
            except ValueError:
                continue
            if all(map(math.isfinite, numbers)):
                found.setdefault(word, []).append(numbers)
    return found


def _messages(plan: Plan, rows: dict[str, list[list[float]]]) -> dict[MessageKind, float]:
    """Seconds of a message of each kind: where none was seen to arrive, the least that it can have taken at most."""
    times: dict[str, dict[int, list[float]]] = {"seen": defaultdict(list), "most": defaultdict(list)}
    for word, of in times.items():
        for message, seconds in rows.get(word, []):
            if 0 <= message < plan.kind.size:
                of[int(plan.kind[int(message)])].append(seconds)
    found = {kind: min(some) for kind, some in times["most"].items()}
    found |= {kind: float(np.median(some)) for kind, some in times["seen"].items()}
    return {plan.kinds[kind]: seconds for kind, seconds in sorted(found.items())}


def _collectives(rows: dict[str, list[list[float]]]) -> dict[Collective, dict[int, float]]:
    times: dict[tuple[int, float, int], list[float]] = defaultdict(list)
    for kind, size, processes, seconds in rows.get("collective", []):
        times[int(kind), size, int(processes)].append(seconds)
    found: dict[Collective, dict[int, float]] = {}
    for (kind, size, processes), some in times.items():
        found.setdefault(Collective(MEASURED[kind], size), {})[processes] = max(float(np.median(some)), 0.0)
    return found
