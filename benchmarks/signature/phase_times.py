"""The time of each phase beside that of a replay of the same actions, in the process that ends last."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.signature.machine import built, write_machine
from benchmarks.signature.times import MACHINE, learned, synthetic_result
from benchmarks.signature.truth import JUDGED, LEARNED, truth
from metasched.signature.synthetic.result import timed
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import predictions
from metasched.store.files.hardware import read_entry
from metasched.tracing.smpi import by_replay

#: Share of the time from which on a phase is judged.
LARGE = 0.05


def judged(only: str = "", place: int = 0) -> list[dict[str, Any]]:
    """One row for each large phase of each program.

    Parameters
    ----------
    only : a part of the programs' names.
    place : which of the judged numbers of processes.
    """
    entry = read_entry(str(MACHINE))
    machine = Hardware(entry, entry)
    rows = []
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        program = built(folder)
        for name in LEARNED:
            if only not in name:
                continue
            n = JUDGED[name][place]
            measured = {count: truth()[name][count] for count in LEARNED[name]}
            application = learned(name, folder, program)
            blocks = predictions(by_blocks(application, machine), "blocks", [n], measured, True)[0].phases
            ways = {
                "replay": by_replay(application, *write_machine(folder, n), False)(n).phases,
                "blocks": blocks,
                "synthetic": timed(application, synthetic_result(application, n, folder)).phases,
            }
            found = {way: {each.phase: each.weight * each.time for each in phases} for way, phases in ways.items()}
            whole = sum(found["replay"].values())
            rows += [
                {"application": name, "processes": n, "phase": phase, "share": seconds / whole, "replay": seconds}
                | {way: found[way][phase] for way in ("blocks", "synthetic")}
                | {"run": whole / truth()[name][n] - 1.0}
                for phase, seconds in found["replay"].items()
                if seconds >= LARGE * whole
            ]
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Errors (%) of each phase as a table in Markdown, and the worst."""
    ways = ("blocks", "synthetic")
    found = ["| program | processes | phase | share | replayed s | blocks | synthetic |", "|" + "---|" * 7]
    for row in rows:
        errors = " | ".join(f"{100.0 * (row[way] / row['replay'] - 1.0):+.2f} %" for way in ways)
        found.append(
            f"| {row['application']} | {row['processes']} | {row['phase']} | {100.0 * row['share']:.1f} % "
            f"| {row['replay']:.6g} | {errors} |"
        )
    for way in ways:
        worst = max(rows, key=lambda row: abs(row[way] / row["replay"] - 1.0))
        error = 100.0 * (worst[way] / worst["replay"] - 1.0)
        found.append(f"{way}: at most {error:+.2f} % (phase {worst['phase']} of {worst['application']})")
    found.append(f"whole replays: at most {100.0 * max(abs(row['run']) for row in rows):.2f} % beside the runs")
    return found
