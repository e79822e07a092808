"""``metasched signature fit`` and ``expand``: the rules that runs share, and the actions of more processes by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.signatures.prediction import MOST_PROCESSES
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.signature.traces.phases import Machine
from metasched.store.files.recorded_traces import STATED, TIME
from metasched.store.files.signatures import (
    APPLICATION,
    SIGNATURE,
    VERSION,
    measured_of,
    one_workload_of,
    points_of,
    read_application,
    read_document,
    trace_of_signature,
    unrecorded_of,
    write_document,
)
from metasched.store.files.ti_traces import write_ti_trace

if TYPE_CHECKING:
    from metasched.signature.computation.instruction_table import GroupOfPhase

#: Share of the time from which a warning says that the instructions of a phase drift.
SAID = 0.05
#: Most rules that are shown without --json.
SHOWN = 40

SignaturesArgument = Annotated[list[Path], typer.Argument(help="Signatures of runs on different numbers of processes.")]


def fit_verb(
    signatures: SignaturesArgument,
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Application to write (JSON).")],
    points: Annotated[
        list[Path] | None,
        typer.Option(help="Signature (extract --timed) of a small workload on few processes; repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the rules that runs of one program on at least three numbers of processes share."""
    from metasched.signature.computation.instruction_table import instruction_table
    from metasched.signature.computation.measurable_points import paces
    from metasched.signature.rules.fitting import fit
    from metasched.signature.rules.open_choices import open_rules
    from metasched.signature.rules.reporting import equations, valid_counts, weights

    documents = [read_document(each, SIGNATURE) for each in signatures]
    _check_kinds(documents, signatures)
    one_workload_of(documents, signatures)
    unrecorded = {
        each["processes"]: unrecorded_of(each, path) for each, path in zip(documents, signatures, strict=True)
    }
    with output.working("fitting"):
        traces = [trace_of_signature(each, str(path)) for each, path in zip(documents, signatures, strict=True)]
        found = fit(traces, any(_counted(each) != STATED for each in documents))
    measured = points_of(documents, signatures)
    if points:
        small = points_of([read_document(each, SIGNATURE) for each in points], points)
        if len(small) < len(points):
            raise InputError("--points have no times, expected signatures of metasched signature extract --timed")
        measured += small
    everywhere = len(measured) >= len(documents)
    application = replace(found.application, paces=paces(measured) if points or everywhere else ())
    groups = {len(each.processes): instruction_table(each, Machine()) for each in traces}
    document: dict[str, Any] = {
        "ruled": found.ruled,
        "without_rule": found.unruled,
        "time_without_rule": found.times,
        "valid": valid_counts(application),
        "open": open_rules(application),
        "learned": list(application.learned),
        "irregular": [asdict(each) for each in found.irregular],
        "in_order": found.in_order,
        "roles": sum(len(each.roles) for each in application.each()),
        "equations": equations(application, traces),
        "weights": weights(documents),
        "points": [asdict(each) for each in measured],
        "instructions": {str(n): [row.as_dict() for row in rows] for n, rows in groups.items()},
        "measured": measured_of(documents, signatures),
        "unrecorded": {str(n): lost for n, lost in unrecorded.items() if lost},
    }
    write_document(to, {"kind": APPLICATION, "version": VERSION} | document | {"application": application.as_dict()})
    if as_json:
        output.print_json(document | {"application": str(to)})
        return
    _show(document, groups)
    output.say(f"application written to {to}")


def _counted(document: dict[str, Any]) -> str:
    """How the instructions of a signature are known."""
    return str(document.get("instructions", STATED))


def _check_kinds(documents: Sequence[dict[str, Any]], paths: Sequence[Path]) -> None:
    """Refuse signatures of runs that were cut short, and processor time beside instructions."""
    first = _counted(documents[0]) == TIME
    for each, path in zip(documents, paths, strict=True):
        if each.get("cut"):
            raise InputError("is of a run that did not end normally, expected complete runs", where=str(path))
        if (_counted(each) == TIME) != first:
            held, expected = ("instructions", "processor time") if first else ("processor time", "instructions")
            raise InputError(
                f"holds {held}, and {paths[0]} {expected}: expected signatures of one kind", where=str(path)
            )


def _show(document: dict[str, Any], groups: Mapping[int, Sequence[GroupOfPhase]]) -> None:
    """Print the rules of a fitted application, and all that is to be known before they are relied on."""
    from metasched.signature.computation.instruction_table import drifting
    from metasched.signature.rules.reporting import caveats

    table = Table(box=box.SIMPLE)
    for heading in ("role", "action", "number", "rule"):
        table.add_column(heading, overflow="fold")
    for each in document["equations"][:SHOWN]:
        table.add_row(each["role"], each["action"], each["number"], each["rule"])
    output.show(table)
    if len(document["equations"]) > SHOWN:
        output.say(f"and {len(document['equations']) - SHOWN} more with --json")
    output.say(f"{100.0 * document['ruled']:.2f} % of the actions follow rules; valid for {document['valid']}")
    if document["in_order"]:
        output.warn(["messages that are started together are put in order of their partners"])
    output.warn([*caveats(document), *document["open"]])
    for phase, share, totals in drifting(groups):
        if share >= SAID:
            listed = ", ".join(f"{total:.4g} with {n}" for n, total in sorted(totals.items()))
            share_of_time = f"phase {phase} together, {100.0 * share:.2f} % of the time"
            outside = "totals that drift are outside the method, rules and power laws continue them"
            output.warn([f"the instructions of {share_of_time}, are {listed} processes: {outside}"])


def expand_verb(
    application: Annotated[Path, typer.Argument(help="Application written by metasched signature fit.")],
    processes: Annotated[int, typer.Option(max=MOST_PROCESSES, help="Number of processes.")],
    to: Annotated[
        Path, WRITTEN, typer.Option("-o", "--output", help="Trace to write, with its folder in the same place.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Write the trace for more processes, in SimGrid's format."""
    from metasched.signature.computation.instruction_table import instruction_table
    from metasched.signature.rules.expanding import lines, sound
    from metasched.signature.rules.open_choices import open_rules
    from metasched.signature.rules.reporting import caveats, checked_count

    known, document = read_application(application)
    checked_count(known, processes)
    with output.working("expanding"):
        trace = sound(known, processes)
        write_ti_trace(to, lines(trace))
    shown = {"processes": processes, "events": trace.events, "trace": str(to)}
    warnings = [*caveats(document), *open_rules(known, [processes])]
    if as_json:
        rows = [row.as_dict() for row in instruction_table(trace, Machine())]
        output.print_json(shown | {"instructions": rows, "warnings": warnings})
    else:
        output.say(
            f"{number_of(trace.events, 'action')} of {number_of(processes, 'process', 'processes')} written to {to}"
        )
        output.warn(warnings)
