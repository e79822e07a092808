"""``metasched walltime``: time limits to ask for, each with the chance that the job is killed by it."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.placing import ApplicationOption, DatabaseOption, SizeOption
from metasched.cli.service import ConfigOption, configuration
from metasched.records import InputError
from metasched.service.configuration import Configuration
from metasched.store.database import Store


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("walltime")(walltime)


def walltime(
    application: ApplicationOption,
    problem_size: SizeOption,
    processors: Annotated[int, typer.Option(min=1, help="P.")],
    cluster: Annotated[
        str | None, typer.Option(help="Where it will run; every cluster with a model without it.")
    ] = None,
    chance: Annotated[list[float] | None, typer.Option(help="Chance of being killed to allow; repeatable.")] = None,
    limit: Annotated[list[float] | None, typer.Option(help="Limit to judge (s); repeatable.")] = None,
    cpu: Annotated[float | None, typer.Option(help="Available CPU to expect; what past runs met without it.")] = None,
    bandwidth: Annotated[float | None, typer.Option(help="Available bandwidth to expect (Mbit/s); so too.")] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Suggest time limits for a job, each with the chance that the job is killed by it.

    The daemon is asked; where none answers, or a database is named, its models are read.
    """
    question = {"application": application, "problem_size": problem_size, "processors": processors, "cluster": cluster,
                "chances": list(chance or ()), "limits": list(limit or ()), "available_cpu": cpu,
                "available_bandwidth": bandwidth}  # fmt: skip
    told, refused = (None, "") if database is not None else _asked(configuration(config), question)
    if told is None:
        try:
            told = _computed(database or configuration(config).database, question)
        except InputError as error:
            raise InputError(f"{error}{f'; {refused}' if refused else ''}") from None
    if as_json:
        output.print_json(told)
        return
    table = Table(
        "cluster", "half the runs end within", "limit", "sbatch", "chance of being killed", box=box.SIMPLE_HEAD
    )
    for each in told["clusters"]:
        for one in each["limits"]:
            table.add_row(
                Text(each["cluster"]),
                f"{each['median']:.1f} s",
                f"{one['seconds']:.1f} s",
                f"-t {one['minutes']}",
                f"{one['chance']:.1%}",
            )
    output.out.print(table)


def _asked(settings: Configuration, question: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What the daemon says; None where it cannot be asked, with why it refuses where it does."""
    from metasched.service.talk import address_of, ask

    listen = settings.listen
    token, verify = os.environ.get("METASCHED_TOKEN"), listen.certificate or True
    try:
        return ask(address_of(listen), "POST", "/v1/walltimes", question, token=token, verify=verify), ""
    except RuntimeError:
        return None, ""
    except InputError as error:
        return None, str(error)


def _computed(database: str | None, question: dict[str, Any]) -> dict[str, Any]:
    """The same, from the database."""
    from metasched.placement.walltime import CHANCES, MOST_LOADS, ExecutionTimes, loads_to_expect, suggested
    from metasched.store.models import stored_model

    application, cluster = question["application"], question["cluster"]
    size, processors = question["problem_size"], question["processors"]
    told = []
    with Store.open(database) as store:
        known = [name for app, name, _, _ in store.models() if app == application and cluster in (None, name)]
        if not known:
            where = "" if cluster is None else f" on {cluster}"
            raise InputError(f"no model of {application}{where}, expected one to be learned first", where=store.name)
        for name in known:
            runs = store.runs(application=application, cluster=name, last=MOST_LOADS)
            loads = loads_to_expect(runs, question["available_cpu"], question["available_bandwidth"])
            times = ExecutionTimes(stored_model(store, application, name), size, processors, *loads)
            chances = question["chances"] or (() if question["limits"] else CHANCES)
            told.append(suggested(name, times, chances, question["limits"]).as_dict())
    return {"application": application, "problem_size": size, "processors": processors, "clusters": told}
