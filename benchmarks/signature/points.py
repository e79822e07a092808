"""An application that leaves its cache: its time with measurable points, and without them, beside the truth.

The points are runs on eight processes with the share of the work that makes each have as many instructions as a process
of many: half as much from one point to the next, so that none is chosen by where the truth is judged.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.signature.machine import built, run
from benchmarks.signature.times import MACHINE
from benchmarks.signature.truth import truth
from metasched.signature.computation.measurable_points import Point, paces, point
from metasched.signature.rules.fitting import fit
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import predictions
from metasched.signature.traces.trace import Trace
from metasched.store.files.hardware import read_entry
from metasched.store.files.ti_traces import read_ti_trace

PROGRAM, LEARNED, JUDGED = "relax", (16, 32, 64), (128, 256, 512, 1024)
#: Processes of a point, and the shares of the work that are run on them.
FEW, SHARES = 8, tuple(0.75 * 2.0**-power for power in range(8))


def _both(folder: Path, program: Path, count: int, share: float) -> tuple[Trace, Point, float]:
    """A run counted in instructions; what its phases had; and how long it took."""
    counted = read_ti_trace(run(folder, program, PROGRAM, count, more=("counted", str(share)))[2])
    seconds, _, path = run(folder, program, PROGRAM, count, more=("timed", str(share)))
    return counted, point(counted, read_ti_trace(path)), seconds


def judged() -> list[dict[str, Any]]:
    """One row for each judged count: the truth, and what blocks say with points and without."""
    known = truth()[PROGRAM]
    entry = read_entry(str(MACHINE))
    hardware = Hardware(entry, entry)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        program = built(folder)
        runs = {n: _both(folder, program, n, 1.0) for n in LEARNED}
        few = [_both(folder, program, FEW, share)[1] for share in SHARES]
    rules = fit([trace for trace, _, _ in runs.values()]).application
    measured = {n: seconds for n, (_, _, seconds) in runs.items()}
    with_points = replace(rules, paces=paces([*(of for _, of, _ in runs.values()), *few]))
    only_runs = replace(rules, paces=paces([of for _, of, _ in runs.values()]))
    ways = {"points": with_points, "runs only": only_runs, "speed only": rules}
    counts = [n for n in JUDGED if n in known]
    found = {
        way: predictions(by_blocks(each, hardware), "blocks", counts, measured, True) for way, each in ways.items()
    }
    return [
        {"processes": n, "measured": known[n]} | {way: found[way][at].execution_time for way in ways}
        for at, n in enumerate(counts)
    ]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Errors (%) of each way, as a table in Markdown."""
    ways = [name for name in rows[0] if name not in ("processes", "measured")]
    found = ["| processes | measured s | " + " | ".join(ways) + " |", "|" + "---|" * (len(ways) + 2)]
    for row in rows:
        errors = " | ".join(f"{100.0 * (row[way] / row['measured'] - 1.0):+.2f} %" for way in ways)
        found.append(f"| {row['processes']:,} | {row['measured']:.6g} | {errors} |")
    return found
