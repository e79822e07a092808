"""``metasched history``: run times and waits predicted from accounting."""

from __future__ import annotations

import getpass
import time
from collections import Counter
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.audit import audit
from metasched.cli import output
from metasched.cli.configured import ask_daemon, by_daemon, configuration, forgetting, opened
from metasched.cli.job_words import ArgumentsOption, ScriptOption, numbers_in
from metasched.cli.options import ConfigOption, DaemonOption, DatabaseOption, JsonOption
from metasched.cli.written_files import WRITTEN
from metasched.history.job_log import JobLog
from metasched.history.replay import Policy
from metasched.plain_numbers import number_of, span
from metasched.records import InputError

history = typer.Typer(
    help="Predict run times and waits from accounting data: import, predict, report, and evaluate by replays.",
    no_args_is_help=True,
)

LogArgument = Annotated[
    Path, typer.Argument(help="Job log: SWF, CSV, or output of sacct -P; may be compressed by gzip.")
]


class PredictorName(StrEnum):
    """How run times are predicted in a replay; the names of ``--predictor``."""

    requests = "requests"
    last_two = "last-two"
    keyed = "keyed"
    metasched = "metasched"
    clairvoyant = "clairvoyant"


@history.command()
def evaluate(
    log: LogArgument,
    processors: Annotated[
        int | None,
        typer.Option(min=1, help="Processors of the cluster; by default the number in the log, or an estimate."),
    ] = None,
    policy: Annotated[Policy, typer.Option(help="How predictions are used in backfill.")] = Policy.easy,
    predictor: Annotated[PredictorName, typer.Option(help="Predictor of the run times.")] = PredictorName.metasched,
    shakes: Annotated[
        int, typer.Option(min=0, max=1000, help="Also replay this many perturbed logs, and report their means.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the perturbations.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Replay a job log, and evaluate the predicted run times and waits."""
    from metasched.history.evaluation import evaluate as judge
    from metasched.history.run_times.known import PREDICTORS
    from metasched.store.files.job_logs import read_job_log

    begun = time.perf_counter()
    with output.working(f"reading {log.name}"):
        recorded = read_job_log(log)
    jobs, size, said = _on(recorded, processors)
    bar = partial(output.progress, what="replaying")
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
    for line in (*(f"{number_of(count, 'job')} {reason}" for reason, count in jobs.wrong.items()), *said):
        output.to_stderr(line)
    output.show(_table(document))


@history.command("import")
def import_verb(
    logs: Annotated[list[Path], typer.Argument(metavar="FILE", help="Job logs: SWF, CSV, or output of sacct -P.")],
    cluster: Annotated[
        str | None,
        typer.Option(help="Cluster where the jobs ran; by default the configured one, if there is only one."),
    ] = None,
    plain_users: Annotated[
        bool, typer.Option("--plain-users", help="Store the names of users, which are hashed by default.")
    ] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Store past jobs from accounting data, each once; run times and waits are predicted from them."""
    from metasched.store.files.job_logs import read_job_log
    from metasched.store.pseudonyms import pseudonyms_of

    begun, settings = time.perf_counter(), configuration(config)
    location = database or settings.database
    known = settings.schedulers
    if cluster is None and len(known) > 1:
        raise InputError(f"{', '.join(known)} are configured, expected one of them", where="--cluster")
    if cluster is not None and not (cluster.strip() and cluster.isprintable()):
        raise InputError(f"--cluster is {cluster!r}, expected the name of a cluster")
    where = cluster if cluster is not None else next(iter(known), "")
    bar = partial(output.progress, what="storing")
    read = []
    for path in logs:  # all are read before any is stored
        with output.working(f"reading {path.name}"):
            read.append(read_job_log(path))
    with opened(config, database, new=True) as store:
        called = pseudonyms_of(store.past_jobs, location, plain=plain_users)
        new = sum(store.past_jobs.add(each, where, called, bar) for each in read)
        name = store.name
    wrong: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for each in read:
        wrong.update(each.wrong)
        states.update(each.named("state"))
    jobs = sum(map(len, read))
    document: dict[str, Any] = {
        "database": name, "cluster": where, "jobs": jobs, "stored": new, "known": jobs - new,
        "users": len({user for each in read for user in each.names.get("user", ())}), "hashed": called.hides,
        "states": {state or "unknown": count for state, count in states.most_common()}, "wrong": dict(wrong),
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip
    if as_json:
        output.print_json(document)
        return
    for reason, count in wrong.items():
        output.to_stderr(f"{number_of(count, 'job')} {reason}")
    ended = ", ".join(f"{count:,} {state}" for state, count in document["states"].items())
    ends = "" if set(document["states"]) <= {"unknown"} else f"; they ended as {ended}"
    output.say(f"{number_of(jobs, 'job')} read, {new} of them new in {name}{ends}")


@history.command("predict")
def predict(
    requested: Annotated[float, typer.Option(min=1, help="Time limit of the job (s).")],
    processors: Annotated[int, typer.Option(min=1, help="P.")],
    user: Annotated[str | None, typer.Option(help="User who submits the job; by default the current user.")] = None,
    job_name: Annotated[str, typer.Option("--name", help="Name of the job.")] = "",
    executable: Annotated[str, typer.Option(help="Name of its script or program, without folders.")] = "",
    arguments: ArgumentsOption = "",
    script: ScriptOption = None,
    partition: Annotated[str, typer.Option(help="Partition; by default that of the user's last job.")] = "",
    account: Annotated[str, typer.Option(help="Account that is charged; by default likewise.")] = "",
    cluster: Annotated[str | None, typer.Option(help="Cluster, if there are several.")] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    url: DaemonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the run time of a job at its submission from past jobs.

    By default the daemon is asked, which shows users only predictions from their own jobs; --database reads a database
    instead, and no models of applications.
    """
    asked: dict[str, Any] = {
        "user": user or getpass.getuser(), "processors": processors, "requested_time": requested, "name": job_name,
        "executable": executable, "partition": partition, "account": account, "cluster": cluster,
    }  # fmt: skip
    if database is None:
        asked |= numbers_in(arguments, script)
        document = ask_daemon(config, url, "POST", "/v1/history/predictions", asked)
    else:
        from metasched.history.playback import FEW
        from metasched.service.state.job_history import JobHistory

        with opened(config, database) as store, output.working("learning"):
            past = JobHistory(store)
            past.restore(newest=FEW, rest=0.0)
            limit = asked.pop("requested_time")
            document = past.predict(limit=limit, now=time.time(), **asked)
    if as_json:
        output.print_json(document)
        return
    low, high = (span(document["interval"][end]) for end in ("low", "high"))
    output.say(f"{span(document['run_time'])} ({low} to {high}): {document['reason']}")
    output.say(f"fails early: {document['early_failure']:.0%}; reaches its limit: {document['time_limit']:.0%}")


@history.command("report")
def report_verb(
    log: Annotated[Path | None, typer.Argument(metavar="LOG", help="Job log: SWF, CSV, or output of sacct -P.")] = None,
    from_store: Annotated[bool, typer.Option("--from-store", help="Report on the imported jobs instead.")] = False,
    cluster: Annotated[str | None, typer.Option(help="Only imported jobs of this cluster.")] = None,
    processors: Annotated[
        int | None,
        typer.Option(min=1, help="Processors of the cluster; by default the number in the log, or an estimate."),
    ] = None,
    replayed: Annotated[int, typer.Option(min=100, help="Number of the newest jobs to replay.")] = 5000,
    html: Annotated[
        Path | None, WRITTEN, typer.Option(help="Write the report with pictures to this HTML file.")
    ] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report requested and used time, waits, and the effect of better limits and orders."""
    from metasched.history.report import report
    from metasched.store.files.job_logs import read_job_log

    if (log is None) != from_store:
        raise InputError("expected a LOG or --from-store, and not both")
    if log is not None and (given := cluster or database or config):
        option = "--cluster" if cluster else "--database" if database else "--config"
        raise InputError(f"{option} {given} selects stored jobs, expected --from-store in place of a LOG")
    if log is not None:
        with output.working(f"reading {log.name}"):
            recorded, title = read_job_log(log), f"Jobs of {log.name}"
    else:
        with opened(config, database) as store, output.working("reading"):
            known = tuple(store.past_jobs.counts())
            expected = f"expected one of {', '.join(map(repr, known))}"
            if cluster is None and len(known) > 1:
                raise InputError(f"there are jobs of several clusters, {expected}", where="--cluster")
            if cluster is not None and known and cluster not in known:
                raise InputError(f"no jobs of {cluster} are known, {expected}", where="--cluster")
            recorded = store.past_jobs.log(known if cluster is None else [cluster])
        title = f"Jobs of {cluster or next(iter(known), '') or 'the cluster'}"
    jobs, size, said = _on(recorded, processors)
    bar = partial(output.progress, what="replaying")
    document = report(jobs, size, replayed=replayed, progress=bar) | {"wrong": dict(jobs.wrong), "notes": said}
    if html is not None:
        from metasched.cli.history.report import page
        from metasched.store.files.whole_files import write_text_atomically

        write_text_atomically(html, page(document, jobs, title))
    if as_json:
        output.print_json(document)
        return
    from metasched.cli.history.report import confirmations, for_terminal, summary

    for line in (*(f"{number_of(count, 'job')} {reason}" for reason, count in jobs.wrong.items()), *said):
        output.to_stderr(line)
    output.say(summary(document))
    output.show(for_terminal(document))
    for confirmation in confirmations(document):
        output.say(confirmation)
    if html is not None:
        output.say(f"pictures written to {html}")


@history.command("forget")
def forget(
    user: Annotated[str, typer.Option(help="Name of the user.")],
    config: ConfigOption = None,
    database: DatabaseOption = None,
    url: DaemonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the stored jobs of a user. Their identifiers are kept, so that they are not imported again.

    With --url or --config a running daemon deletes them at once; this needs an admin's token in
    $METASCHED_TOKEN. Otherwise the database is changed, which no daemon may be using.
    """
    if by_daemon(database, config, url):
        document = ask_daemon(config, url, "POST", "/v1/history/forget", {"user": user})
    else:
        from metasched.store.pseudonyms import pseudonyms_of

        location = database or configuration(config).database
        with opened(config, database) as store, forgetting(store):
            document = {"forgotten": store.past_jobs.forget([pseudonyms_of(store.past_jobs, location)(user)])}
        audit(f"{number_of(document['forgotten'], 'past job')} of a user forgotten")
    output.answer(as_json, document, f"{number_of(document['forgotten'], 'job')} forgotten")


def _on(recorded: JobLog, processors: int | None) -> tuple[JobLog, int, list[str]]:
    """The jobs that fit on a cluster, its processors, and warnings about what the log lacks."""
    size, said = processors or recorded.capacity, []
    if not size:
        size = recorded.likely_capacity()
        said.append(f"the log does not state the number of processors: {size} is an estimate (set it by --processors)")
    jobs = recorded.fitting(size)
    if not len(jobs):
        raise InputError(f"no job requests {size} processors or fewer, expected at least one", where="--processors")
    if not jobs.has_requests:
        said.append("the log has no requested times: the longest run time of all jobs is assumed for each")
    if "user" not in jobs.labels:
        said.append("the log has no users: jobs are distinguished only by what they request")
    return jobs, size, said


def _table(document: dict[str, Any]) -> Table:
    """A table of the results for a terminal."""
    replays = f"mean of {document['shakes']} perturbed replays" if document["shakes"] else "one replay"
    table = Table(
        title=f"{number_of(document['jobs'], 'job', '', ',')}, {number_of(document['processors'], 'processor')}, "
        f"{document['policy']}, {document['predictor']}",
        box=box.SIMPLE, show_header=False,
    )  # fmt: skip
    judged = number_of(document["waits_judged"], "wait", "", ",")
    rows: list[tuple[str, float | None, str]] = [
        ("mean absolute error of run times", document["mae"], "{:,.0f} s"),
        ("median absolute error", document["median_error"], "{:,.0f} s"),
        ("run times underestimated", document["underestimated"], "{:.1%}"),
        ("coverage of 90 % intervals", document["interval_coverage"], "{:.1%}"),
        (f"average bounded slowdown, {replays}", document["avebsld"], "{:.2f}"),
        ("mean wait", document["mean_wait"], "{:,.0f} s"),
        (f"mean absolute error of {judged}", document["wait_mae"], "{:,.0f} s"),
        ("the same simulation with requested times", document["wait_mae_of_requests"], "{:,.0f} s"),
        ("coverage of 90 % wait intervals", document["wait_coverage"], "{:.1%}"),
    ]
    for what, value, form in rows:
        table.add_row(what, "-" if value is None else form.format(value))
    return table
