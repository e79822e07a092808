"""``metasched walltime``: time limits to ask for, each with the chance that the job is killed by it."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.placing import ApplicationOption, DatabaseOption, SizeOption
from metasched.cli.service import ConfigOption, configuration
from metasched.records import InputError
from metasched.store.database import Store

#: Chances of being killed that limits are suggested for.
CHANCES = (0.1, 0.05, 0.02, 0.01)


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
    """Suggest time limits for a job, each with the chance that the job is killed by it."""
    from metasched.placement.walltime import ExecutionTimes, Limit, loads_met
    from metasched.store.models import stored_model

    told = []
    with Store.open(database or configuration(config).database) as store:
        known = [name for app, name, _, _ in store.models() if app == application and cluster in (None, name)]
        if not known:
            where = "" if cluster is None else f" on {cluster}"
            raise InputError(f"no model of {application}{where}, expected one to be learned first", where=store.name)
        for name in known:
            runs = store.runs(application=application, cluster=name)
            met = loads_met(runs) if cpu is None or bandwidth is None else (np.ones(1), np.ones(1))
            expected = [
                each if value is None else np.full(each.size, value)
                for value, each in zip((cpu, bandwidth), met, strict=True)
            ]
            times = ExecutionTimes(stored_model(store, application, name), problem_size, processors, *expected)
            limits = [times.limit(each) for each in chance or (() if limit else CHANCES)]
            limits += [Limit(each, times.chance(each)) for each in limit or ()]
            told.append((name, times.limit(0.5).seconds, sorted(limits, key=lambda each: each.seconds)))
    if as_json:
        output.print_json(
            {
                "application": application,
                "problem_size": problem_size,
                "processors": processors,
                "clusters": [
                    {
                        "cluster": name,
                        "median": median,
                        "limits": [
                            {"seconds": each.seconds, "minutes": each.minutes, "chance": each.chance} for each in limits
                        ],
                    }
                    for name, median, limits in told
                ],
            }
        )
        return
    table = Table(
        "cluster", "half the runs end within", "limit", "sbatch", "chance of being killed", box=box.SIMPLE_HEAD
    )
    for name, median, limits in told:
        for each in limits:
            table.add_row(name, f"{median:.1f} s", f"{each.seconds:.1f} s", f"-t {each.minutes}", f"{each.chance:.1%}")
    output.out.print(table)
