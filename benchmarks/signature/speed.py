"""How long it takes to extract phases, to fit rules, to expand a trace and to predict a time by blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.signature import many_turns
from benchmarks.signature.design import CHOSEN, designed, times
from benchmarks.signature.times import MACHINE
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.hardware import Hardware
from metasched.signature.times.prediction import predictions
from metasched.signature.traces.phases import Machine, phases_of
from metasched.store.files.hardware import read_entry

#: Processes of the large run, and most seconds that each step may take.
LARGE = 4096
TARGETS = {"extract, a million events": 10.0, "fit": 5.0, "expand": 10.0, "predict": 2.0}
#: Share of the computation in the runs that are learned.
WORK = 1 / 8
MILLION = 1_000_000


def measured(only: str = "") -> list[dict[str, Any]]:
    """Processor seconds of each step, by program.

    Parameters
    ----------
    only : programs whose name holds this.
    """
    entry, known = read_entry(str(MACHINE)), times()
    rows: list[dict[str, Any]] = []
    for name in (each for each in (*CHOSEN, *many_turns.PROGRAMS) if only in each):
        if name in CHOSEN:
            program = designed()[name]
            traces = [program.trace(n, WORK) for n in program.counts]
        else:
            traces = many_turns.traces(many_turns.PROGRAMS[name])
        fitting, found = _timed(partial(fit, traces))
        counts = [len(each.processes) for each in traces]
        # Of many turns the runs themselves are large.
        expanding, large = _timed(partial(expanded, found.application, LARGE if name in CHOSEN else max(counts)))
        # The machine only says how the time is divided among the phases.
        extracting, _ = _timed(partial(phases_of, large, Machine()))
        events = sum(each.size for each in large.processes)
        blocks = by_blocks(found.application, Hardware(entry, entry))
        # How long runs took makes no difference to how long it takes to predict.
        learned = {n: known.get((name, WORK), {}).get(n, 1.0) for n in counts}
        predicting, _ = _timed(partial(predictions, blocks, "blocks", [LARGE], learned, True))
        seconds = (extracting * MILLION / events, fitting, expanding, predicting)
        rows.append({"application": name} | dict(zip(TARGETS, seconds, strict=True)))
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as a table of Markdown, the last one with the targets."""
    lines = [f"| program | {' | '.join(TARGETS)} |", "|---|" + "---|" * len(TARGETS)]
    for row in rows:
        lines.append(f"| {row['application']} | " + " | ".join(f"{row[step]:.2f}" for step in TARGETS) + " |")
    within = [sum(row[step] <= most for row in rows) for step, most in TARGETS.items()]
    ends = [f"{many} of {len(rows)} within {most:g}" for many, most in zip(within, TARGETS.values(), strict=True)]
    return [*lines, f"| **target** | {' | '.join(ends)} |"]


def _timed(step: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    result = step()
    return time.process_time() - begin, result
