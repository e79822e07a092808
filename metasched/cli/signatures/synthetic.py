"""``metasched signature run``: the synthetic signature, which measures the messages of many processes on few."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.signatures.prediction import MOST_PROCESSES
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.signature.rules.reporting import checked_count
from metasched.signature.traces.phases import Machine
from metasched.store.files.signatures import SYNTHETIC, VERSION, read_application, within_bounds, write_document

#: What share of the core-seconds of a run its prediction is to take at most.
CHEAP = 0.05


def run_verb(
    application: Annotated[Path, typer.Argument(help="Application written by metasched signature fit.")],
    launcher: Annotated[list[str], typer.Argument(help="Command that starts MPI programs: mpirun -np 32")],
    processes: Annotated[int, typer.Option(max=MOST_PROCESSES, help="Number of processes of the application.")],
    cores: Annotated[int, typer.Option(help="Processes that the launcher starts.")],
    to: Annotated[
        Path, WRITTEN, typer.Option("-o", "--output", help="Result to write (JSON), where all nodes can read.")
    ],
    compiler: Annotated[
        str | None, typer.Option(help="mpicc of the launcher's MPI; by default smpicc for smpirun, else mpicc.")
    ] = None,
    per_node: Annotated[
        int, typer.Option("--processes-per-node", min=1, help="Processes of the application on each node.")
    ] = 1,
    speed: Annotated[float, typer.Option(help="Instructions per second of a process.")] = Machine().speed,
    as_json: JsonOption = False,
) -> None:
    """Run the phases of an application on few processes, and predict its time from what its messages take."""
    from metasched.signature.synthetic.result import timed
    from metasched.tracing.synthetic import run_synthetic

    within_bounds("--speed", speed)
    known = read_application(application)[0]
    checked_count(known, processes)
    with output.working("running"):
        result = run_synthetic(known, processes, cores, launcher, to, compiler, per_node, speed)
        phases = timed(known, result).phases
    figures, seconds = result.figures, sum(each.weight * each.time for each in phases)
    cost = figures["core_seconds"] / max(processes * seconds, 1e-30)
    document = result.as_dict() | {
        "execution_time": seconds,
        "application_core_seconds": processes * seconds,
        "cost": cost,
        "phases": [asdict(each) for each in phases],
    }
    write_document(to, {"kind": SYNTHETIC, "version": VERSION} | document)
    if missing := figures["kinds"] - figures["measured_kinds"]:
        outside = f"{missing} of {figures['kinds']} kinds of messages lie in no pair of ranges"
        output.warn([f"{outside}; those of their size are used: more --cores hold more"])
    if cost > CHEAP:
        taken = f"the measurement took {100.0 * cost:.3g} % of the core-seconds of the run that it predicts"
        output.warn([f"{taken}, more than {100.0 * CHEAP:g} %: it takes as long for short runs as for long ones"])
    if as_json:
        shown = ("processes", "cores", "hosts", "execution_time", "phases", "ranges", "black_holes", "noise")
        rest = ("kinds", "measured_kinds", "synthetic_time", "core_seconds", "application_core_seconds", "cost")
        output.print_json({key: document[key] for key in (*shown, *rest)} | {"result": str(to)})
        return
    take = "takes" if processes == 1 else "take"
    output.say(f"{number_of(processes, 'process', 'processes')} {take} {document['execution_time']:.6g} s")
    output.say(
        f"measured in {figures['synthetic_time']:.6g} s on {number_of(cores, 'core')} of "
        f"{number_of(figures['hosts'], 'host')}, "
        f"{number_of(len(figures['ranges']), 'pair')} of ranges: {figures['core_seconds']:.6g} core-seconds, "
        f"{100.0 * cost:.3g} % of the {document['application_core_seconds']:.6g} of the run (Eq. 7)"
    )
    output.say(f"result written to {to}")
