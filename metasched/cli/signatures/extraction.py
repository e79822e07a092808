"""``metasched signature extract``: the phases of a recorded run, and what each process does in them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich import box

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.signature.traces.phases import Machine, Phases, phases_of
from metasched.signature.traces.trace import Trace
from metasched.store.files.otf2_archives import ANCHOR, read_otf2
from metasched.store.files.recorded_traces import STATED, Recorded, read_recorded
from metasched.store.files.signatures import MOST, signature_document, within_bounds, write_document
from metasched.store.files.ti_traces import read_ti_trace


def extract_verb(
    trace: Annotated[
        Path,
        typer.Argument(
            help="Folder of metasched signature record, trace of smpirun -trace-ti, or anchor file (.otf2) of Score-P."
        ),
    ],
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Signature to write (JSON).")],
    speed: Annotated[float, typer.Option(help="Flop/s of the machine for which times are computed.")] = Machine().speed,
    bandwidth: Annotated[
        float, typer.Option(help="Bytes/s of the machine for which times are computed.")
    ] = Machine().bandwidth,
    latency: Annotated[
        float, typer.Option(help="Seconds of each call on the machine for which times are computed.")
    ] = Machine().latency,
    measured: Annotated[
        float | None, typer.Option("--time", help="Execution time of the run (s), where it was measured.")
    ] = None,
    problem_size: Annotated[
        float | None, typer.Option(help="Problem size of the run, for metasched signature resize.")
    ] = None,
    timed: Annotated[
        Path | None,
        typer.Option(help="Trace of the same run with nanoseconds in place of instructions, for measurable points."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the phases of a run and their weights, and store the actions of each process."""
    from metasched.signature.computation.measurable_points import point

    given = {"--speed": speed, "--bandwidth": bandwidth, "--time": measured, "--problem-size": problem_size}
    for name, value in given.items():
        if value is not None:
            within_bounds(name, value)
    if not 0.0 <= latency < MOST:
        raise InputError(f"--latency is {latency:g}, expected a number of at least 0")
    with output.working("reading"):
        recorded = _recorded(trace)
        read = recorded.trace
        other = recorded if timed is None else _recorded(timed)
        measured = measured or recorded.execution_time or other.execution_time
        times = recorded.timed if timed is None else _in_nanoseconds(other, timed)
        found = phases_of(read, Machine(speed, bandwidth, latency), times)
        known = {
            "problem_size": problem_size,
            "execution_time": measured,
            "point": None if times is None else asdict(point(read, times)),
            "cut": list(recorded.cut) or None,
            "unrecorded": dict(recorded.unrecorded) or None,
        }
        document = signature_document(read, found) | {"instructions": recorded.instructions}
    output.warn(recorded.warnings)
    write_document(to, document | {name: value for name, value in known.items() if value is not None})
    if as_json:
        shown = ("processes", "events", "duration", "instructions", "coverage", "phases")
        lost = {"cut": [*recorded.cut], "unrecorded": recorded.unrecorded}
        output.print_json({key: document[key] for key in shown} | lost | {"signature": str(to)})
        return
    _show(found)
    output.say(
        f"{number_of(document['processes'], 'process', 'processes')}, {number_of(document['events'], 'event')}, "
        f"{found.duration:.6g} s on the assumed machine"
        f"; the relevant phases cover {100.0 * found.coverage:.1f} %"
    )
    output.say(f"signature written to {to}")


def _show(found: Phases) -> None:
    headings = ("phase", "weight", "share", "time s", "instructions", "bytes", "events", "")
    table = output.table(*headings, box=box.SIMPLE)
    for each in found.phases:
        table.add_row(
            str(each.phase),
            str(each.weight),
            f"{100.0 * each.share:.2f} %",
            f"{each.time:.6g}",
            f"{each.instructions:.6g}",
            f"{each.bytes:.6g}",
            f"{each.events:g}",
            "relevant" if each.relevant else "",
        )
    output.show(table)


def _recorded(path: Path) -> Recorded:
    """A trace of any format; durations are 0 where it has none."""
    if path.is_dir():
        return read_recorded(path)
    if path.suffix == ANCHOR:
        return read_otf2(path)
    return Recorded(read_ti_trace(path).steadied(), (0.0,), (), instructions=STATED)


def _in_nanoseconds(recorded: Recorded, path: Path) -> Trace:
    """The trace that --timed names; one in SimGrid's format states nanoseconds."""
    found = recorded.trace if recorded.instructions == STATED else recorded.in_nanoseconds
    if found is None:
        raise InputError("was recorded under valgrind, expected a run with its own times", where=str(path))
    return found
