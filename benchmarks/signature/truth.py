"""The truth that predictions are judged with: programs.c run under SMPI, smallest counts first.

What is written down is kept: only what is missing in ``truth.csv`` is run.
"""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.signature.machine import built, run

TRUTH = Path(__file__).with_name("truth.csv")
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


def record(folder: Path, most: int) -> None:
    """Run what has not been run with at most so many processes; each row is written as soon as it is there."""
    program = built(folder)
    known = truth() if TRUTH.exists() else {}
    if not known:
        TRUTH.write_text("application,processes,execution_time,simulated_in\n", encoding="utf-8")
    pairs = sorted((count, name) for name in LEARNED for count in (*LEARNED[name], *JUDGED[name]) if count <= most)
    for count, name in pairs:
        if count in known.get(name, {}):
            continue
        seconds, took, _ = run(folder, program, name, count, traced=False)
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
