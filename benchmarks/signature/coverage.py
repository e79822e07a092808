"""How many intervals by blocks contain the true time, on the judged programs, and what so few of them can say.

Each program is learned from three successive counts of its runs, the smallest first, and judged at all larger ones.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from benchmarks.signature.machine import built
from benchmarks.signature.times import MACHINE, learned
from benchmarks.signature.truth import JUDGED, LEARNED, truth
from metasched.signature.rules.open_choices import other_applications
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import LEVEL, predictions
from metasched.store.files.hardware import read_entry


def judged(most: int, only: str = "") -> list[dict[str, Any]]:
    """One row for each prediction: its runs, its error, and whether its interval contains the true time.

    Parameters
    ----------
    most : the largest number of processes that is traced.
    only : programs whose name holds this.
    """
    known, entry = truth(), read_entry(str(MACHINE))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder))
        for name in (each for each in LEARNED if only in each):
            counts = [n for n in (*LEARNED[name], *JUDGED[name]) if n in known[name]]
            for first in range(len(counts) - 3):
                three, larger = counts[first : first + 3], counts[first + 3 :]
                if three[-1] > most:
                    break
                application = learned(name, Path(folder), program, three)
                measured = {n: known[name][n] for n in three}
                here = Hardware(entry, entry)
                others = [by_blocks(each, here) for each in other_applications(application, larger)]
                engine = by_blocks(application, here)
                for each in predictions(engine, "blocks", larger, measured, True, others=others):
                    true, (low, high) = known[name][each.processes], each.interval
                    error = each.execution_time / true - 1.0
                    row = {"application": name, "learned": three, "processes": each.processes, "error": error}
                    rows.append(row | {"holds": low <= true <= high})
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The intervals that fail, and of each place of the three counts, and of all, how many are right."""
    lines = [
        f"{row['application']} learned from {', '.join(map(str, row['learned']))}: {row['processes']} is missed, "
        f"with an error of {100.0 * row['error']:+.2f} %"
        for row in rows
        if not row["holds"]
    ]
    places: dict[str, list[bool]] = {}
    for row in rows:
        counts = [*LEARNED[row["application"]], *JUDGED[row["application"]]]
        place = counts.index(row["learned"][0])
        places.setdefault(f"learned from runs {place + 1} to {place + 3}", []).append(row["holds"])
    if len(places) > 1:
        places["all"] = [row["holds"] for row in rows]
    return lines + [f"{name}: {held(sum(some), len(some))}" for name, some in places.items()]


def held(many: int, of: int) -> str:
    """How many intervals are right, and what the binomial distribution makes of it.

    Examples
    --------
    >>> held(27, 28)
    '27 of 28 are right, 96.4 %; 81.7 to 99.9 % with 95 % confidence, p = 0.36 for 90 %'
    """
    found = binomtest(many, of, LEVEL)
    low, high = found.proportion_ci(0.95)
    return (
        f"{many} of {of} are right, {100.0 * many / of:.1f} %; {100.0 * low:.1f} to {100.0 * high:.1f} % with "
        f"95 % confidence, p = {found.pvalue:.2f} for {100.0 * LEVEL:g} %"
    )
