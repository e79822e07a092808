"""``metasched advise-running``: whether a job that runs should move to a better place."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from metasched.cli import options, output
from metasched.cli.configured import ask_daemon
from metasched.cli.options import ConfigOption, JsonOption, UrlOption
from metasched.node_names import fold
from metasched.plain_numbers import plain, span
from metasched.records import InputError


@options.grouped
def advise_running(
    *,
    job: Annotated[str | None, typer.Argument(metavar="JOBID", help="Id of a running job.")] = None,
    application: Annotated[str | None, typer.Option(help="Application, for a job without a scheduler.")] = None,
    problem_size: Annotated[float | None, typer.Option(help="Its problem size N.")] = None,
    nodes: Annotated[str, typer.Option(help="Its nodes, such as n[1-4].")] = "",
    processors: Annotated[int | None, typer.Option(min=1, help="Its processors; by default one on each node.")] = None,
    stated: options.SettingsOptions,
    running_for: Annotated[float | None, typer.Option(min=0, help="Time since its last start (s).")] = None,
    done: Annotated[
        float, typer.Option(min=0, max=1, help="Fraction of the work that was done at its last start.")
    ] = 0.0,
    moved_ago: Annotated[float | None, typer.Option(min=0, help="Time since its last move (s).")] = None,
    checkpoint: Annotated[
        float | None, typer.Option(min=0, help="Time to stop with a checkpoint (s); by default as in its comment.")
    ] = None,
    restart: Annotated[float | None, typer.Option(min=0, help="Time to restart (s); by default as configured.")] = None,
    data: Annotated[float, typer.Option(min=0, help="Data to transfer to another scheduler (MB).")] = 0.0,
    bandwidth: Annotated[float, typer.Option(min=1e-3, help="Rate of that transfer (Mbit/s).")] = 1000.0,
    partition: Annotated[list[str] | None, typer.Option(help="Consider only this partition; repeatable.")] = None,
    cluster: Annotated[str, typer.Option("--scheduler", help="Scheduler, if there are several.")] = "",
    config: ConfigOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Advise whether a running job should move to a better place, with all costs of the move.

    The daemon knows the jobs of its schedulers by their ids. Describe any other job by the options.
    """
    described = {
        "application": application, "problem_size": problem_size, "nodes": nodes, "running_for": running_for,
    }  # fmt: skip
    if job is not None and any(value not in (None, "") for value in described.values()):
        raise InputError("a job and --application, --problem-size, --nodes or --running-for are given, expected one")
    if job is None and any(value in (None, "") for value in described.values()):
        raise InputError("expected a job, or all of --application, --problem-size, --nodes and --running-for")
    if done >= 1:
        raise InputError(f"--done is {done:g}, expected a fraction below 1")
    asked: dict[str, Any] = {
        "job": job, "scheduler": cluster, **described, "processors": processors, "done": done, "moved_ago": moved_ago,
        "checkpoint": checkpoint, "restart": restart, "data": data, "bandwidth": bandwidth,
        "partitions": partition, **stated.for_daemon(),
    }  # fmt: skip
    asked = {name: each for name, each in asked.items() if each is not None}
    document = ask_daemon(config, url, "POST", "/v1/running-jobs/advice", asked)
    if as_json:
        output.print_json(document)
        return
    output.warn(document["warnings"])
    for line in advice_lines(document):
        output.say(line)


def advice_lines(document: dict[str, Any]) -> list[str]:
    """The advice as lines of text, the recommendation first."""
    placement = document["placement"]
    where = f"{document['cluster']}: {document['nodes']}"
    if document["move"]:
        lines = [f"move to {placement['cluster']}: {fold(placement['nodes'])}: {document['why']}"]
    else:
        lines = [f"stay on {where}: {document['why']}"]
    lines.append(
        f"here: {1.0 - document['done']:.0%} of the work is left, {span(document['stay'])} with CPU "
        f"{document['available_cpu']:.2f} and {plain(document['available_bandwidth'])} Mbit/s"
    )
    if placement is not None:
        costs = document["costs"]
        lines.append(
            f"there ({placement['cluster']}: {fold(placement['nodes'])}): {span(document['leave'])} with CPU "
            f"{placement['available_cpu']:.2f} and {plain(placement['available_bandwidth'])} Mbit/s, of which "
            f"checkpoint {span(costs['checkpoint'])}, transfer {span(costs['transfer'])}, "
            f"restart {span(costs['restart'])}, wait {span(placement['queue_wait'])}"
        )
    return lines
