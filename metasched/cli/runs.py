"""``metasched run`` and ``runs``: run a command under the monitors and store the run; show and export the stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import ApplicationOption, ClusterOption, JsonOption
from metasched.records import InputError
from metasched.schedulers import local
from metasched.store import spool
from metasched.store.campaigns import write_runs
from metasched.store.database import RecordedRun, Store
from metasched.store.engine import default_location

DatabaseOption = Annotated[
    str | None,
    typer.Option("--db", help="File or URL of the database; by default $METASCHED_DB or the user's data folder."),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    # What follows the command's name is the command's, with or without -- before it.
    app.command("run", context_settings={"allow_interspersed_args": False})(run)
    app.command("runs")(runs)


def run(
    command: Annotated[list[str], typer.Argument(help="Command and its arguments, after --.")],
    application: Annotated[str, typer.Option(help="Name of the application.")],
    problem_size: Annotated[float, typer.Option(help="N.")],
    processors: Annotated[int, typer.Option(help="P, how many processes the command starts.")],
    cluster: Annotated[str | None, typer.Option(help="Name of the cluster; by default of this host.")] = None,
    phase: Annotated[str | None, typer.Option(help="Part of a campaign that the run belongs to.")] = None,
    interface: Annotated[
        list[str] | None, typer.Option(help="Network interface that the job uses, by default loopback; repeatable.")
    ] = None,
    link_speed: Annotated[
        list[str] | None, typer.Option(help="INTERFACE=MBIT/S where the kernel does not know it; repeatable.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two readings of the monitors.")] = 0.5,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a command under the monitors and store the run; leave with the command's exit status."""
    try:
        finished = local.run(
            command,
            application=application,
            problem_size=problem_size,
            processors=processors,
            cluster=cluster,
            phase=phase,
            interfaces=interface,
            speeds=_speeds(link_speed or ()),
            interval=interval,
            # With --json our stdout is for the document alone.
            stdout=sys.stderr if as_json else None,
        )
    except local.CommandError as error:
        output.complain(str(error))
        raise typer.Exit(error.status) from None
    warnings = (*finished.warnings, *spool.keep(finished.record, database))
    for warning in warnings:
        output.complain(f"warning: {warning}")
    record = finished.record
    if as_json:
        output.print_json({**_document(record), "warnings": list(warnings)})
    else:
        done = record.run
        ended = "" if record.exit_status == 0 else f", exit status {record.exit_status}, not learned from"
        output.complain(
            f"{done.application}, N = {done.problem_size:g}, P = {done.processors}: {done.execution_time:.4g} s "
            f"with CPU {done.min_avg_avail_cpu:.2f} and {done.min_avg_avail_bw:.4g} Mbit/s available{ended}"
        )
    raise typer.Exit(record.exit_status)


def runs(
    target: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the runs that can be learned from to this runs.csv.")
    ] = None,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest runs to show.")] = 20,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the runs that are stored, or export them as runs.csv for ``metasched fit``."""
    with Store.open(_existing(database)) as store:
        warnings = spool.drain(store)
        records = store.recorded_runs(application=application, cluster=cluster)
    for warning in warnings:
        output.complain(f"warning: {warning}")
    learnable = [record.run for record in records if record.learnable]
    if target is not None:
        if not learnable:
            of, on = application or "any application", cluster or "any cluster"
            raise InputError(f"no run of {of} on {on} can be learned from", where=store.name)
        write_runs(target, learnable)
    if as_json:
        document: dict[str, Any] = {"database": store.name, "stored": len(records), "learnable": len(learnable)}
        if target is None:
            document["runs"] = [_document(record) for record in records[-last:]]
        else:
            document["written"] = str(target)
        output.print_json(document)
    elif target is None:
        output.out.print(_table(records[-last:], len(records)))
    else:
        output.out.print(f"{len(learnable)} runs written to {target}", markup=False, soft_wrap=True)


def _existing(database: str | None) -> str:
    """The database to read; reading makes no new one."""
    location = database or default_location()
    if "://" not in location and not Path(location).exists():
        raise InputError("no such database; metasched run makes one", where=location)
    return location


def _speeds(texts: Sequence[str]) -> dict[str, float]:
    speeds = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            speeds[name] = float(number)
        except ValueError:
            speeds[name] = 0.0
        if not name or not 0 < speeds[name] < float("inf"):
            raise InputError(f"--link-speed is {text}, expected such as eth0=1000")
    return speeds


def _document(record: RecordedRun) -> dict[str, Any]:
    run = record.run
    return {
        "application": run.application,
        "cluster": run.cluster,
        "problem_size": run.problem_size,
        "processors": run.processors,
        "min_avg_avail_cpu": run.min_avg_avail_cpu,
        "min_avg_avail_bw": run.min_avg_avail_bw,
        "execution_time": run.execution_time,
        "start_time": run.start_time,
        "nodes": list(run.nodes),
        "phase": run.phase,
        "exit_status": record.exit_status,
        "learnable": record.learnable,
    }


def _table(records: Sequence[RecordedRun], stored: int) -> Table:
    table = Table(title=f"newest {len(records)} of {stored} runs", title_justify="left")
    for heading in ("application", "cluster", "N", "P", "CPU", "Mbit/s", "execution s", "exit", "learned"):
        table.add_column(heading, justify="left" if heading in ("application", "cluster", "learned") else "right")
    for record in records:
        run = record.run
        table.add_row(
            run.application,
            run.cluster,
            f"{run.problem_size:g}",
            str(run.processors),
            f"{run.min_avg_avail_cpu:.2f}",
            f"{run.min_avg_avail_bw:.4g}",
            f"{run.execution_time:.4g}",
            str(record.exit_status),
            "yes" if record.learnable else "no",
        )
    return table
