"""``metasched history``: what a site's accounting tells of run times and waits."""

from __future__ import annotations

import time
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.history.replay import Policy
from metasched.records import InputError

history = typer.Typer(
    help="Expect run times and waits from a job log alone, and judge it by replays.", no_args_is_help=True
)


class PredictorName(StrEnum):
    """What expects the run times."""

    requests = "requests"
    last_two = "last-two"
    keyed = "keyed"
    metasched = "metasched"
    clairvoyant = "clairvoyant"


@history.callback()
def _group() -> None:
    pass


@history.command()
def evaluate(
    log: Annotated[Path, typer.Argument(help="Job log: SWF, CSV, or what sacct -P prints, packed by gzip or not.")],
    processors: Annotated[
        int | None,
        typer.Option(min=1, help="Processors of the cluster; by default as the log says, or what it makes likely."),
    ] = None,
    policy: Annotated[Policy, typer.Option(help="Who starts before their turn.")] = Policy.easy,
    predictor: Annotated[PredictorName, typer.Option(help="What expects the run times.")] = PredictorName.metasched,
    shakes: Annotated[
        int, typer.Option(min=0, max=1000, help="Replay the shaken log so many times, and tell the means of these.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Decides how the log is shaken.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Replay a job log, and judge the run times and waits that are expected in it."""
    from metasched.history.evaluation import evaluate as judge
    from metasched.history.run_times.known import PREDICTORS
    from metasched.store.files.job_logs import read_job_log

    begun = time.perf_counter()
    with output.working(f"reading {log.name}"):
        recorded = read_job_log(log)
    size, said = processors or recorded.capacity, []
    if not size:
        size = recorded.likely_capacity()
        said.append(f"the log names no number of processors: {size} are taken for likely (--processors says better)")
    jobs = recorded.fitting(size)
    if not len(jobs):
        raise InputError(f"no job asks for {size} processors or fewer, expected some", where="--processors")
    if not jobs.has_requests:
        said.append("the log has no requested times: each job is taken to ask for the longest run time of all")
    if "user" not in jobs.labels:
        said.append("the log names no users: jobs are known by what they ask for")

    def bar(steps: Iterable[int], total: int) -> Iterable[int]:
        return output.progress(steps, total=total, what="replaying")

    found: dict[str, Any] = judge(
        jobs, size, policy, PREDICTORS[predictor.value], shakes=shakes, seed=seed, progress=bar
    )
    document = {
        **found, "seconds": time.perf_counter() - begun, "processors": size, "policy": policy.value,
        "predictor": predictor.value, "shakes": shakes, "wrong": dict(jobs.wrong), "notes": said,
    }  # fmt: skip
    if as_json:
        output.print_json(document)
        return
    for line in (*(f"{count} jobs {reason}" for reason, count in jobs.wrong.items()), *said):
        output.complain(line)
    output.out.print(_table(document))


def _table(document: dict[str, Any]) -> Table:
    """What was found, for people."""
    replays = f"mean of {document['shakes']} shaken replays" if document["shakes"] else "one replay"
    table = Table(
        title=f"{document['jobs']:,} jobs, {document['processors']} processors, {document['policy']}, "
        f"{document['predictor']}",
        box=box.SIMPLE, show_header=False,
    )  # fmt: skip
    rows: list[tuple[str, float | None, str]] = [
        ("mean absolute error of run times", document["mae"], "{:,.0f} s"),
        ("median absolute error", document["median_error"], "{:,.0f} s"),
        ("run times above what was expected", document["underestimated"], "{:.1%}"),
        ("90 % intervals that held", document["interval_coverage"], "{:.1%}"),
        (f"average bounded slowdown, {replays}", document["avebsld"], "{:.2f}"),
        ("mean wait", document["mean_wait"], "{:,.0f} s"),
        (f"mean absolute error of {document['waits_judged']:,} waits", document["wait_mae"], "{:,.0f} s"),
        ("90 % intervals of waits that held", document["wait_coverage"], "{:.1%}"),
    ]
    for what, value, form in rows:
        table.add_row(what, "-" if value is None else form.format(value))
    return table
