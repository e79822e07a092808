"""The programs that rules were designed on, replayed on the simulated cluster: what intervals are calibrated on.

None of them is judged. Each is replayed with an eighth and with a 64th of its computation, so that messages take
between hardly anything and most of the time. What is written down in ``design.csv`` is kept.
"""

from __future__ import annotations

import csv
import tempfile
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.signature.applications import APPLICATIONS, Judged
from benchmarks.signature.machine import replayed
from benchmarks.signature.times import MACHINE, synthetic_result
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import other_applications
from metasched.signature.synthetic.result import by_synthetic
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import LEVEL, predictions
from metasched.store.files.hardware import read_entry

Floats = NDArray[np.float64]

TIMES = Path(__file__).with_name("design.csv")
HEAD = "application,work,processes,execution_time,simulated_in"
#: Shares of the computation.
WORK = (1 / 8, 1 / 64)
#: Of each kind of program one, with the counts it is judged at; messages to nobody cannot be replayed.
CHOSEN = {
    "multipartition": (144, 256, 529),
    "butterfly": (128, 256, 512),
    "wavefront, 4 corners": (128, 256, 512),
    "wavefront, SimGrid's grid": (144, 256, 512),
    "ring": (128, 256, 512),
    "2-D halo, borders": (128, 256, 512),
    "2-D halo, around": (128, 256, 512),
    "3-D halo, powers": (128, 256, 512),
    "3-D halo, around": (128, 256, 512),
    "faces around": (128, 256, 512),
    # More takes minutes to replay.
    "transpose": (128,),
    "panels": (128, 256, 512),
    "strips": (128, 256, 512),
    "farm": (128, 256, 512),
    "cannon": (144, 256, 529),
}


def designed() -> dict[str, Judged]:
    """The programs by name."""
    return {each.name: each for each in APPLICATIONS if each.name in CHOSEN}


def times() -> dict[tuple[str, float], dict[int, float]]:
    """Execution times (s) by number of processes, of each program and share of its computation."""
    found: dict[tuple[str, float], dict[int, float]] = {}
    if TIMES.exists():
        with TIMES.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = row["application"], float(row["work"])
                found.setdefault(key, {})[int(row["processes"])] = float(row["execution_time"])
    return found


def record() -> None:
    """Replay what has not been replayed; each row is written as soon as it is there."""
    if not TIMES.exists():
        TIMES.write_text(HEAD + "\n", encoding="utf-8")
    known = times()
    programs = designed()
    wanted = [(n, name, work) for name in CHOSEN for work in WORK for n in (*programs[name].counts, *CHOSEN[name])]
    with tempfile.TemporaryDirectory() as folder:
        for n, name, work in sorted(wanted):
            if n in known.get((name, work), {}):
                continue
            seconds, took = replayed(Path(folder), programs[name].trace(n, work))
            with TIMES.open("a", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerow([name, work, n, f"{seconds:.9g}", f"{took:.1f}"])
            print(f"{name} {n}, work {work:g}: {seconds:.9g} s, replayed in {took:.1f} s", flush=True)


def intervals(synthetic: bool) -> list[dict[str, Any]]:
    """Of each larger run its error, and the half-width of its interval, both of the logarithm of time, by engine.

    Parameters
    ----------
    synthetic : whether synthetic signatures are run, too; these take a minute or more.
    """
    known, programs = times(), designed()
    entry = read_entry(str(MACHINE))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for (name, work), measured in known.items():
            one = programs[name]
            application = fit([one.trace(n, work) for n in one.counts]).application
            learned = {n: measured[n] for n in one.counts}
            counts = [n for n in CHOSEN[name] if n in measured]
            here = Hardware(entry, entry)
            others = [by_blocks(each, here) for each in other_applications(application, counts)]
            found = predictions(by_blocks(application, here), "blocks", counts, learned, True, others=others)
            if synthetic:
                rehearsed = max(one.counts)
                results = {str(n): synthetic_result(application, n, Path(folder)) for n in (rehearsed, *counts)}
                engine = by_synthetic(application, results)
                found += predictions(engine, "synthetic", counts, {rehearsed: measured[rehearsed]}, False)
            rows += [
                {
                    "application": name, "work": work, "processes": each.processes, "engine": each.engine,
                    "error": (error := log(each.execution_time / measured[each.processes])),
                    # To the side of the true time.
                    "half-width": abs(log(each.interval[int(error < 0.0)] / each.execution_time)),
                }
                for each in found
            ]  # fmt: skip
    return rows


def intervals_table(rows: list[dict[str, Any]]) -> list[str]:
    """Errors and half-widths, and the coverage: as it is, and with the scale that the other kinds of programs ask for.

    Variants of one program are of one kind, and each kind counts the same.
    """
    lines = ["| program | work | processes | engine | error | half-width |", "|" + "---|" * 6]
    lines += [
        f"| {row['application']} | 1/{1 / row['work']:g} | {row['processes']} | {row['engine']} "
        f"| {100 * row['error']:+.2f} % | {100 * row['half-width']:.2f} % |"
        for row in rows
    ]
    for engine in dict.fromkeys(row["engine"] for row in rows):
        some = [row for row in rows if row["engine"] == engine]
        kinds = np.array([row["application"].split(",")[0] for row in some])
        scores = np.array([abs(row["error"]) / row["half-width"] for row in some])
        left = [scores[kinds == kind] <= _quantile(scores[kinds != kind], kinds[kinds != kind]) for kind in {*kinds}]
        lines.append(
            f"{engine}: coverage of {scores.size} intervals {100 * np.mean(scores <= 1.0):.1f} %, scaled on the other "
            f"kinds of programs {100 * np.concatenate(left).mean():.1f} %; 90 % with {_quantile(scores, kinds):.3f} of "
            "the width"
        )
    return lines


def _quantile(scores: Floats, kinds: NDArray[np.str_]) -> float:
    """The score that 90 % do not exceed; each kind counts the same."""
    weights = np.array([1.0 / np.count_nonzero(kinds == kind) for kind in kinds])
    order = np.argsort(scores)
    place = int(np.searchsorted(np.cumsum(weights[order]) / weights.sum(), LEVEL))
    return float(scores[order][min(place, scores.size - 1)])
