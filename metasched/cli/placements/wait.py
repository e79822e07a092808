"""``metasched wait``: how long a job waits until it starts."""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.configured import ask_daemon
from metasched.cli.job_words import ArgumentsOption, ScriptOption, numbers_in
from metasched.cli.options import ConfigOption, JsonOption, UrlOption
from metasched.plain_numbers import span
from metasched.records import InputError


def wait(
    job: Annotated[str | None, typer.Argument(metavar="JOBID", help="A pending job; by default all.")] = None,
    partition: Annotated[str | None, typer.Option(help="Partition of a job to be submitted.")] = None,
    processors: Annotated[int | None, typer.Option(min=1, help="Processors that it would request.")] = None,
    requested: Annotated[float | None, typer.Option(min=1, help="Time limit that it would request (s).")] = None,
    user: Annotated[str | None, typer.Option(help="User who would submit it; by default the current user.")] = None,
    job_name: Annotated[str, typer.Option("--name", help="Name of the job.")] = "",
    arguments: ArgumentsOption = "",
    script: ScriptOption = None,
    cluster: Annotated[str | None, typer.Option(help="Scheduler, if there are several.")] = None,
    config: ConfigOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the wait of pending jobs, or of a job to be submitted, next to the scheduler's plan.

    The daemon simulates the queue with the predicted run times of its jobs.
    """
    described = {
        "--partition": partition, "--processors": processors, "--requested": requested, "--user": user,
        "--name": job_name, "--arguments": arguments, "--script": script,
    }  # fmt: skip
    given = [option for option, value in described.items() if value]
    if job is not None and given:
        raise InputError(f"a job and {', '.join(given)} are given, expected either the job or these options")
    if given:
        if not (partition and processors and requested):
            raise InputError("expected all of --partition, --processors and --requested")
        asked: dict[str, Any] = {
            "partition": partition, "processors": processors, "requested_time": requested, "name": job_name,
            "user": user or getpass.getuser(), "cluster": cluster, **numbers_in(arguments, script),
        }  # fmt: skip
        document = ask_daemon(config, url, "POST", "/v1/waits", asked)
        if as_json:
            output.print_json(document)
        else:
            output.say(
                f"{span(document['wait'])} ({span(document['low'])} to {span(document['high'])}); assumed run time "
                f"{span(document['run_time'])}: {document['reason']}"
            )
        return
    query = "" if cluster is None else f"?{urlencode({'cluster': cluster})}"
    found = ask_daemon(config, url, "GET", f"/v1/waits{'' if job is None else '/' + quote(job, safe='')}{query}")
    if as_json:
        output.print_json(found)
    else:
        output.show(_table(found if job is None else [found]), empty="no job is pending")


def _table(jobs: list[dict[str, Any]]) -> Table:
    table = Table("job", "partition", "processors", "state", "wait", "90 % interval", "scheduler", box=box.SIMPLE)
    for each in jobs:
        known = each["wait"] is not None
        table.add_row(
            each["job"], each["partition"], str(each["processors"]), each["state"],
            span(each["wait"]) if known else "-",
            f"{span(each['low'])} to {span(each['high'])}" if known else "-",
            "-" if each["scheduler_start"] is None
            else f"{datetime.fromtimestamp(each['scheduler_start']).astimezone():%Y-%m-%d %H:%M}",
        )  # fmt: skip
    return table
