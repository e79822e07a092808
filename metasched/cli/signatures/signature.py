"""``metasched signature``: scalability from a handful of small runs."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.signatures.prediction import MOST_PROCESSES, plot_verb, predict_verb
from metasched.cli.signatures.sizes import resize_verb
from metasched.cli.signatures.synthetic import run_verb
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.signature.traces.phases import Machine, phases_of
from metasched.signature.traces.trace import Trace
from metasched.store.files.otf2_archives import ANCHOR, read_otf2
from metasched.store.files.recorded_traces import PERF, STATED, TIME, VALGRIND, Recorded, read_recorded
from metasched.store.files.signatures import (
    APPLICATION,
    SIGNATURE,
    VERSION,
    measured_of,
    one_workload_of,
    points_of,
    read_application,
    read_document,
    signature_document,
    trace_of_signature,
    unrecorded_of,
    write_document,
)
from metasched.store.files.ti_traces import read_ti_trace, write_ti_trace
from metasched.tracing.recording import Instructions, record

signature = typer.Typer(help="Expand traces of message-passing applications to more processes.", no_args_is_help=True)


@signature.command("record", context_settings={"allow_interspersed_args": False})
def record_verb(
    launcher: Annotated[list[str], typer.Argument(help="Command that starts the program: mpirun -np 16 ./app")],
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Folder to write the trace to.")],
    compiler: Annotated[str, typer.Option(help="mpicc of the MPI that the program was built with.")] = "mpicc",
    instructions: Annotated[
        Instructions,
        typer.Option(help="How computation is counted: perf if processes can read a counter, else time, by default."),
    ] = Instructions.auto,
    as_json: JsonOption = False,
) -> None:
    """Run an MPI program and record what each process does."""
    status = record(launcher, to, compiler, instructions)
    found = read_recorded(to)
    shown = {
        "processes": len(found.trace.processes),
        "events": found.trace.events,
        "execution_time": found.duration,
        "instructions": found.instructions,
        "cut": list(found.cut),
        "unrecorded": found.unrecorded,
        "status": status,
        "trace": str(to),
    }
    line = f"{shown['events']} actions of {shown['processes']} processes in {found.duration:.6g} s"
    output.answer(as_json, shown, f"{line} written to {to}, computation by {COUNTED[found.instructions]}")
    output.warn(found.warnings)
    if status:
        output.to_stderr(f"{launcher[0]} ended with status {status}")
        raise typer.Exit(1)


#: How computation was counted, in words.
COUNTED = {
    TIME: "processor time",
    PERF: "processor time and the processor's counter of instructions",
    VALGRIND: "valgrind's count of instructions",
}


@signature.command("extract")
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

    for name, value in (("speed", speed), ("bandwidth", bandwidth)):
        if not 0.0 < value < 1e30:
            raise InputError(f"--{name} is {value:g}, expected a number above 0")
    if not 0.0 <= latency < 1e30:
        raise InputError(f"--latency is {latency:g}, expected a number of at least 0")
    for name, stated in (("time", measured), ("problem-size", problem_size)):
        if stated is not None and not 0.0 < stated < 1e30:
            raise InputError(f"--{name} is {stated:g}, expected a number above 0")
    with output.working("reading"):
        recorded = _recorded(trace)
        read = recorded.trace
        other = recorded if timed is None else _recorded(timed)
        measured = measured or recorded.execution_time or other.execution_time
        times = recorded.timed if timed is None else _in_nanoseconds(other, timed)
        measured_point = None if times is None else point(read, times)
        found = phases_of(read, Machine(speed, bandwidth, latency), times)
        document = signature_document(read, found)
    document["instructions"] = recorded.instructions
    if problem_size is not None:
        document["problem_size"] = problem_size
    if measured is not None:
        document["execution_time"] = measured
    if measured_point is not None:
        document["point"] = asdict(measured_point)
    if recorded.cut:
        document["cut"] = list(recorded.cut)
    if recorded.unrecorded:
        document["unrecorded"] = dict(recorded.unrecorded)
    output.warn(recorded.warnings)
    write_document(to, document)
    if as_json:
        shown = ("processes", "events", "duration", "instructions", "coverage", "phases")
        lost = {"cut": [*recorded.cut], "unrecorded": recorded.unrecorded}
        output.print_json({key: document[key] for key in shown} | lost | {"signature": str(to)})
        return
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
    output.say(
        f"{document['processes']} processes, {document['events']} events, {found.duration:.6g} s on the assumed machine"
        f"; the relevant phases cover {100.0 * found.coverage:.1f} %"
    )
    output.say(f"signature written to {to}")


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


@signature.command("mark")
def mark_verb(
    trace: Annotated[Path, typer.Argument(help="Folder of metasched signature record.")],
    campaign: Annotated[Path, typer.Argument(help="Folder with the runs.csv that has the run; phases.csv is written.")],
    run: Annotated[
        int | None, typer.Option(min=0, help="Row of runs.csv, from 0; by default the only one that matches.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write what each process of a recorded run did in each phase to phases.csv, for --method phased."""
    from metasched.records import PhaseMark
    from metasched.signature.traces.phases import worked
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
    free = [place for place, each in enumerate(runs) if each.processors == count and not each.marks]
    if run is None and len(free) != 1:
        raise InputError(f"has {len(free)} runs of {count} processors without marks, give --run", where=str(campaign))
    chosen = free[0] if run is None else run
    if chosen not in free:
        raise InputError(
            f"--run is {chosen}, expected a run of {count} processors without marks"
            + (f", such as {free[0]}" if free else ", and there is none"),
            where=str(campaign),
        )
    output.warn(recorded.warnings)
    found = phases_of(recorded.in_nanoseconds, Machine())
    # Runs of other counts have the same phases in the same places; those marked first say which matter.
    names = dict.fromkeys(mark.phase for each in runs for mark in each.marks)
    relevant = [int(name) for name in names if name.isascii() and name.isdigit()] if names else [
        each.phase for each in found.phases if each.relevant
    ]  # fmt: skip
    if len(relevant) < len(names) or max(relevant) >= len(found.phases):
        listed = ", ".join([*names][:8])
        raise InputError(
            f"has {len(found.phases)} phases, and those of the runs that are marked are {listed}: "
            "expected runs of one program, marked by this command alone",
            where=str(trace),
        )
    relevant.sort()
    seconds = worked(recorded.in_nanoseconds, recorded.durations, relevant, Machine())
    asked = runs[chosen].request
    marks = [
        PhaseMark(str(phase), process, asked.available_cpu, asked.available_bandwidth, max(float(each), 1e-9))
        for phase, of in zip(relevant, seconds, strict=True)
        for process, each in enumerate(of.tolist())
    ]
    add_marks(campaign / "phases.csv", chosen, marks)
    written = str(campaign / "phases.csv")
    shown = {"run": chosen, "phases": relevant, "processes": count, "marks": len(marks), "written": written}
    phases = number_of(len(relevant), "phase")
    output.answer(as_json, shown, f"{len(marks)} marks of {phases} of run {chosen} added to {written}")


SignaturesArgument = Annotated[list[Path], typer.Argument(help="Signatures of runs on different numbers of processes.")]


@signature.command("fit")
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
    from metasched.signature.computation.instruction_table import drifting, instruction_table
    from metasched.signature.computation.measurable_points import paces
    from metasched.signature.rules.fitting import fit
    from metasched.signature.rules.reporting import equations, lacked, open_rules, unruled, valid_counts, weights

    documents = [read_document(each, SIGNATURE) for each in signatures]
    ways = [each.get("instructions", STATED) for each in documents]
    for each, way, path in zip(documents, ways, signatures, strict=True):
        if each.get("cut"):
            raise InputError("is of a run that did not end normally, expected complete runs", where=str(path))
        if (way == TIME) != (ways[0] == TIME):
            raise InputError(
                f"holds {'processor time' if way == TIME else 'instructions'}, and {signatures[0]} "
                f"{'processor time' if ways[0] == TIME else 'instructions'}: expected signatures of one kind",
                where=str(path),
            )
    one_workload_of(documents, signatures)
    unrecorded = {
        each["processes"]: unrecorded_of(each, path) for each, path in zip(documents, signatures, strict=True)
    }
    with output.working("fitting"):
        traces = [trace_of_signature(each, str(path)) for each, path in zip(documents, signatures, strict=True)]
        found = fit(traces, any(way != STATED for way in ways))
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
    table = Table(box=box.SIMPLE)
    for heading in ("role", "action", "number", "rule"):
        table.add_column(heading, overflow="fold")
    for each in document["equations"][:SHOWN]:
        table.add_row(each["role"], each["action"], each["number"], each["rule"])
    output.show(table)
    if len(document["equations"]) > SHOWN:
        output.say(f"and {len(document['equations']) - SHOWN} more with --json")
    output.say(f"{100.0 * found.ruled:.2f} % of the actions follow rules; valid for {document['valid']}")
    if found.in_order:
        output.warn(["messages that are started together are put in order of their partners"])
    output.warn([*lacked(document), *unruled(document)])
    for phase, share, totals in drifting(groups):
        if share >= SAID:
            listed = ", ".join(f"{total:.4g} with {n}" for n, total in sorted(totals.items()))
            share_of_time = f"phase {phase} together, {100.0 * share:.2f} % of the time"
            outside = "totals that drift are outside the method, rules and power laws continue them"
            output.warn([f"the instructions of {share_of_time}, are {listed} processes: {outside}"])
    output.warn(document["open"])
    output.say(f"application written to {to}")


#: Share of the time from which a warning says that the instructions of a phase drift.
SAID = 0.05
#: Most rules that are shown without --json.
SHOWN = 40


@signature.command("expand")
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
    from metasched.signature.rules.reporting import checked_count

    known = read_application(application)[0]
    checked_count(known, processes)
    with output.working("expanding"):
        trace = sound(known, processes)
        write_ti_trace(to, lines(trace))
    shown = {"processes": processes, "events": trace.events, "trace": str(to)}
    if as_json:
        rows = [row.as_dict() for row in instruction_table(trace, Machine())]
        output.print_json(shown | {"instructions": rows})
    else:
        output.say(f"{trace.events} actions of {processes} processes written to {to}")


signature.command("resize")(resize_verb)
signature.command("run")(run_verb)
signature.command("predict")(predict_verb)
signature.command("plot")(plot_verb)
