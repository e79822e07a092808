"""``metasched run`` and ``runs``: run a command under the monitors and store the run; show and export the stored."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.table import Table

from metasched.audit import audit
from metasched.cli import options, output
from metasched.cli.configured import ask_daemon, by_daemon, configuration, forgetting, listening
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of, plain
from metasched.records import InputError
from metasched.records.settings import parsed
from metasched.schedulers import local
from metasched.store import spool
from metasched.store.database.engine import default_location
from metasched.store.database.run_records import RecordedRun, Selection, forgotten_document
from metasched.store.database.store import Store
from metasched.store.files.runs import without_slips, write_runs

#: Runs that the daemon is asked for at most.
MOST = 1000

UNMEASURED = "not measured"


runs = typer.Typer(
    help="Show stored runs, export them as runs.csv, or exclude them from learning.", invoke_without_command=True
)


@options.grouped
def run(
    *,
    command: Annotated[list[str], typer.Argument(help="Command and its arguments, after --.")],
    application: Annotated[str, typer.Option(help="Name of the application.")],
    problem_size: Annotated[float, typer.Option(help="Problem size N.")],
    processors: Annotated[int, typer.Option(help="Number P of processes that the command starts.")],
    cluster: Annotated[str | None, typer.Option(help="Name of the cluster; by default that of this host.")] = None,
    phase: Annotated[str | None, typer.Option(help="Phase of a campaign: train or predict.")] = None,
    interface: Annotated[
        list[str] | None, typer.Option(help="Network interface that the job uses, by default loopback; repeatable.")
    ] = None,
    link_speed: Annotated[
        list[str] | None, typer.Option(help="INTERFACE=MBIT/S if the kernel does not know the speed; repeatable.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Sampling interval of the monitors (s).")] = 0.5,
    idle_watts: Annotated[
        float, typer.Option(min=0.0, help="Idle power of this host (W); the run is charged its share.")
    ] = 0.0,
    stated: options.SettingsOptions,
    database: options.DatabaseOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Run a command under the monitors and store the run; exit with the status of the command."""
    try:
        finished = local.run(
            command,
            application=application,
            problem_size=problem_size,
            processors=processors,
            cluster=cluster,
            phase=phase,
            settings=stated.settings(),
            interfaces=interface,
            speeds=_speeds(link_speed or ()),
            interval=interval,
            idle_watts=idle_watts,
            # With --json our stdout is for the document alone.
            stdout=sys.stderr if as_json else None,
        )
    except local.CommandError as error:
        output.to_stderr(str(error))
        raise typer.Exit(error.status) from None
    warnings = (*finished.warnings, *spool.keep(finished.record, database))
    output.warn(warnings)
    record = finished.record
    if as_json:
        output.print_json({**record.as_dict(), "warnings": list(warnings)})
    else:
        done = record.run
        ended = "" if record.exit_status == 0 else f", exit status {record.exit_status}, not learned"
        cpu, bandwidth = _share(done.min_avg_avail_cpu), _rate(done.min_avg_avail_bw, " Mbit/s")
        output.to_stderr(
            f"{done.application}, N = {done.problem_size:g}, P = {done.processors}: {plain(done.execution_time)} s, "
            f"available CPU {cpu}, bandwidth {bandwidth}{ended}"
        )
    raise typer.Exit(record.exit_status)


@runs.callback()
def show_runs(
    context: typer.Context,
    target: Annotated[
        Path | None,
        WRITTEN,
        typer.Option("-o", "--output", help="Write the runs that can be learned to this runs.csv."),
    ] = None,
    application: options.ApplicationOption = None,
    cluster: options.ClusterOption = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest runs to show.")] = 20,
    database: options.DatabaseOption = None,
    url: options.UrlOption = None,
    config: options.ConfigOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show the stored runs, or export those that can be learned from.

    If the user has no database, the daemon is asked for the runs of the user's jobs.
    """
    if context.invoked_subcommand is not None:
        return
    location = database or default_location()
    asked = url is not None or (
        database is None and "://" not in location and not Path(location).exists() and listening(configuration(config))
    )
    if asked:
        name, warnings, stored, records = _asked(url, config, application, cluster, last if target is None else MOST)
    else:
        with Store.open(database, new=False) as store:
            name, warnings = store.name, spool.drain(store)
            records = store.runs.all(application=application, platform=cluster)
        stored = len(records)
    output.warn(warnings)
    learnable = [record.run for record in records if record.learnable]
    if target is not None:
        if not learnable:
            of, on = application or "any application", cluster or "any cluster"
            raise InputError(f"no run of {of} on {on} can be learned", where=name)
        learnable, slips = without_slips(learnable)
        output.warn(slips)
        write_runs(target, learnable)
    if as_json:
        document: dict[str, Any] = {"database": name, "stored": stored, "learnable": len(learnable)}
        if target is None:
            document["runs"] = [record.as_dict() for record in records[-last:]]
        else:
            document["written"] = str(target)
        output.print_json(document)
    elif target is None:
        output.show(_table(records[-last:], stored), empty="no run is stored, or none of those that are asked for")
    else:
        output.say(f"{number_of(len(learnable), 'run')} written to {target}")


def _asked(
    url: str | None, config: Path | None, application: str | None, platform: str | None, last: int
) -> tuple[str, tuple[str, ...], int, tuple[RecordedRun, ...]]:
    """The user's runs as the daemon lists them: its database, warnings, their total number, and the runs."""
    given = {"application": application, "platform": platform, "last": min(last, MOST)}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    answer = ask_daemon(config, url, "GET", f"/v1/runs?{query}")
    records = tuple(RecordedRun.of_dict(each) for each in answer["runs"])
    return answer["database"], (), answer["stored"], records


@runs.command("forget")
def forget(
    ids: Annotated[list[str] | None, typer.Option("--id", help="Id of a run, as --json shows it; repeatable.")] = None,
    user: Annotated[str | None, typer.Option(help="Only runs of this user.")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only runs started at this time or later: seconds, or a time such as 2026-03-01T12:00."),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only runs started before this time.")] = None,
    application: options.ApplicationOption = None,
    cluster: options.ClusterOption = None,
    database: options.DatabaseOption = None,
    config: options.ConfigOption = None,
    url: options.DaemonOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Exclude all matching runs from learning. They stay stored, marked as forgotten.

    With --url or --config a running daemon also refits the affected models at once; this needs an admin's token in
    $METASCHED_TOKEN. Otherwise the database is changed, which no daemon may be using, and the models are refitted when
    a daemon starts with it.
    """
    to_daemon = by_daemon(database, config, url)
    selected = Selection(
        None if not ids else tuple(ids),
        user,
        _moment("--since", since),
        _moment("--until", until),
        application,
        cluster,
    )
    if to_daemon:
        asked = {
            "ids": ids or None, "user": user, "since": selected.since, "until": selected.until,
            "application": application, "platform": cluster,
        }  # fmt: skip
        answer = ask_daemon(config, url, "POST", "/v1/runs/forget", asked)
    else:
        with Store.open(database, new=False) as store, forgetting(store):
            answer = forgotten_document(store.runs.forget(selected))
        audit(f"{number_of(answer['forgotten'], 'run')} forgotten")
    refitted = [f"the model of {each['application']} on {each['platform']} is refitted" for each in answer["models"]]
    output.answer(as_json, answer, f"{number_of(answer['forgotten'], 'run')} forgotten", *refitted)


def _moment(option: str, text: str | None) -> float | None:
    """Seconds since 1970 of a time given as such or in ISO 8601, there in UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        return parsed(text)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} is {text!r}, expected seconds or a time such as 2026-03-01T12:00") from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def _speeds(texts: Sequence[str]) -> dict[str, float]:
    speeds = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            speeds[name] = parsed(number)
        except ValueError:
            speeds[name] = 0.0
        if not name or not 0 < speeds[name] < float("inf"):
            raise InputError(f"--link-speed is {text}, expected INTERFACE=MBITS, such as eth0=1000")
    return speeds


def _table(records: Sequence[RecordedRun], stored: int) -> Table:
    table = Table(title=f"newest {len(records)} of {number_of(stored, 'run')}", title_justify="left")
    unmeasured = any(math.isnan(each.run.min_avg_avail_cpu + each.run.min_avg_avail_bw) for each in records)
    metered = any(each.run.energy is not None for each in records)
    headings = ("application", "cluster", "N", "P", "CPU", "Mbit/s", "execution s", *["J"] * metered, "exit", "learned")
    for heading in headings:
        # Wide enough for a minimum that was "not measured", on two lines.
        width = 8 if heading in ("CPU", "Mbit/s") and unmeasured else None
        left = heading in ("application", "cluster", "learned")
        table.add_column(heading, justify="left" if left else "right", min_width=width)
    for record in records:
        run = record.run
        table.add_row(
            run.application,
            run.cluster,
            f"{run.problem_size:g}",
            str(run.processors),
            _share(run.min_avg_avail_cpu),
            _rate(run.min_avg_avail_bw),
            plain(run.execution_time),
            *["" if run.energy is None else plain(run.energy)] * metered,
            str(record.exit_status),
            "yes" if record.learnable else "no",
        )
    return table


def _share(value: float) -> str:
    return UNMEASURED if math.isnan(value) else f"{value:.2f}"


def _rate(value: float, unit: str = "") -> str:
    return UNMEASURED if math.isnan(value) else f"{plain(value)}{unit}"
