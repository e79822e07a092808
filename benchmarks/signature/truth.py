"""The truth that predictions are judged with: programs.c run under SMPI, smallest counts first.

What is written down is kept: only what is missing in ``truth.csv`` and ``calls.csv`` is run. Of large traces the number
of calls and a digest are kept: an expansion with the same digest has every call right.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np

from benchmarks.signature.machine import built, run
from metasched.signature.traces.trace import Trace
from metasched.store.files.ti_traces import read_ti_trace

TRUTH = Path(__file__).with_name("truth.csv")
CALLS = Path(__file__).with_name("calls.csv")
#: From which number of processes on calls are judged by digests: simulating them again takes minutes.
DIGESTED = 512
#: The programs, and the counts that each is learned from and judged at.
LEARNED = {
    "partition": (16, 36, 64),
    "gradient": (16, 32, 64),
    "lower": (16, 32, 64),
    "sweep": (16, 36, 64),
    "bodies": (16, 32, 64),
    "plate": (16, 32, 64),
    "box": (16, 32, 64),
    "spectral": (16, 32, 64),
    "panels": (16, 32, 64),
}
JUDGED = {name: (144, 256, 529, 1024) if name == "partition" else (128, 256, 512, 1024) for name in LEARNED}

#: The program that leaves its cache, which measurable points are judged with.
CACHED = {"relax": (128, 256, 512, 1024)}


def digest(trace: Trace) -> tuple[int, str]:
    """How many calls there are, and a digest of the calls of all processes in order; computations are left out."""
    texts = [trace.table.text(action) for action in range(len(trace.table.shape))]
    calls = np.array([not text.startswith(("compute", "sleep")) for text in texts], dtype=bool)
    whole, many = hashlib.sha256(), 0
    for process in trace.processes:
        some = process[calls[process]]
        many += some.size
        whole.update("\n".join([*(texts[action] for action in some.tolist()), "", ""]).encode())
    return many, whole.hexdigest()[:32]


def record(folder: Path, most: int, only: str = "") -> None:
    """Run what has not been run with at most so many processes; each row is written as soon as it is there."""
    program = built(folder)
    for path, head in (
        (TRUTH, "application,processes,execution_time,simulated_in"),
        (CALLS, "application,processes,calls,digest"),
    ):
        if not path.exists():
            path.write_text(head + "\n", encoding="utf-8")
    known, called = truth(), digests()
    judged = {name: (*LEARNED[name], *JUDGED[name]) for name in LEARNED} | CACHED
    pairs = sorted((count, name) for name, counts in judged.items() for count in counts if count <= most)
    for count, name in pairs:
        missing = count not in known.get(name, {})
        digested = count >= DIGESTED and name in LEARNED
        if only not in name or not (missing or (digested and (name, count) not in called)):
            continue
        seconds, took, trace = run(folder, program, name, count, traced=digested)
        if digested:
            calls, of = digest(read_ti_trace(trace))
            with CALLS.open("a", encoding="utf-8") as file:
                file.write(f"{name},{count},{calls},{of}\n")
        if missing:
            with TRUTH.open("a", encoding="utf-8") as file:
                file.write(f"{name},{count},{seconds:.9g},{took:.1f}\n")
        print(f"{name} {count}: {seconds:.9g} s, simulated in {took:.1f} s", flush=True)


def truth() -> dict[str, dict[int, float]]:
    """Execution times (s) by program and count."""
    found: dict[str, dict[int, float]] = {}
    with TRUTH.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["application"], {})[int(row["processes"])] = float(row["execution_time"])
    return found


def digests() -> dict[tuple[str, int], tuple[int, str]]:
    """The number of calls, and their digest, by program and count."""
    with CALLS.open(encoding="utf-8") as file:
        return {
            (row["application"], int(row["processes"])): (int(row["calls"]), row["digest"])
            for row in csv.DictReader(file)
        }
