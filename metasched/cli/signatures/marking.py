"""``metasched signature mark``: a recorded run's phases for predictors by phases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.plain_numbers import number_of
from metasched.records import InputError, Run
from metasched.store.files.recorded_traces import read_recorded
from metasched.validation import Located


def mark_verb(
    trace: Annotated[Path, typer.Argument(help="Folder of metasched signature record.")],
    campaign: Annotated[Path, typer.Argument(help="Folder with the runs.csv that has the run; phases.csv is written.")],
    run: Annotated[
        int | None, typer.Option(min=0, help="Row of runs.csv, from 0; by default the only one that matches.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write what each process of a recorded run did in each phase to phases.csv, for --method phased."""
    from metasched.signature.traces.phase_marks import phase_marks, phases_to_mark
    from metasched.store.files.campaigns import read_campaign
    from metasched.store.files.phases import add_marks

    recorded = read_recorded(trace)
    if recorded.cut:
        raise InputError(f"process {recorded.cut[0]} did not end normally, expected a complete run", where=str(trace))
    if recorded.in_nanoseconds is None:
        raise InputError("was recorded under valgrind, expected a run with its own times", where=str(trace))
    if (campaign / "phases.csv.gz").exists():
        raise InputError("is compressed, expected phases.csv or none", where=str(campaign / "phases.csv.gz"))
    runs, count = read_campaign(campaign).runs, len(recorded.trace.processes)
    with Located(str(campaign)):
        chosen = _unmarked(runs, count, run)
    output.warn(recorded.warnings)
    with Located(str(trace)):
        phases = phases_to_mark(recorded.in_nanoseconds, (mark.phase for each in runs for mark in each.marks))
    marks = phase_marks(recorded.in_nanoseconds, recorded.durations, phases, runs[chosen].request)
    add_marks(campaign / "phases.csv", chosen, marks)
    written = str(campaign / "phases.csv")
    shown = {"run": chosen, "phases": phases, "processes": count, "marks": len(marks), "written": written}
    of = number_of(len(phases), "phase")
    output.answer(as_json, shown, f"{len(marks)} marks of {of} of run {chosen} added to {written}")


def _unmarked(runs: Sequence[Run], count: int, asked: int | None) -> int:
    """The row of the run to mark: the one asked for, else the only one without marks that had so many processors."""
    free = [place for place, each in enumerate(runs) if each.processors == count and not each.marks]
    if asked is None and len(free) != 1:
        raise InputError(f"has {len(free)} runs of {count} processors without marks, give --run")
    chosen = free[0] if asked is None else asked
    if chosen not in free:
        such = f", such as {free[0]}" if free else ", and there is none"
        raise InputError(f"--run is {chosen}, expected a run of {count} processors without marks{such}")
    return chosen
