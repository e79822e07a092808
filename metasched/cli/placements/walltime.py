"""``metasched walltime``: time limits for a job, each with the probability that it kills the job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from metasched.cli import options, output
from metasched.cli.configured import ask_daemon, configuration
from metasched.cli.options import ConfigOption, DatabaseOption, JsonOption
from metasched.records import InputError, Settings
from metasched.service.configuration import Configuration


@options.grouped
def walltime(
    *,
    application: Annotated[str | None, typer.Option(help="Name of the application.")] = None,
    problem_size: Annotated[float | None, typer.Option(help="Problem size N.")] = None,
    processors: Annotated[int | None, typer.Option(min=1, help="Number of processors P.")] = None,
    placement: Annotated[
        str | None, typer.Option(help="Id of a placement, in place of the options above; its prediction is used.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster where the job will run; by default every cluster with a model.")
    ] = None,
    stated: options.LearnedSettingsOptions,
    chance: Annotated[
        list[float] | None, typer.Option(help="Accepted probability that the job is killed; repeatable.")
    ] = None,
    limit: Annotated[list[float] | None, typer.Option(help="Time limit to evaluate (s); repeatable.")] = None,
    cpu: Annotated[float | None, typer.Option(help="Available CPU to expect; by default that of past runs.")] = None,
    bandwidth: Annotated[
        float | None, typer.Option(help="Available bandwidth to expect (Mbit/s); by default that of past runs.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model file; by default the daemon's models, or those of the database.")
    ] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Suggest time limits for a job, each with the probability that the job would be killed.

    The daemon is asked, unless --model or --database is given; if it does not answer, its database is read.
    """
    if placement is not None:
        described = (application, problem_size, processors, cluster, cpu, bandwidth, model)
        if any(each is not None for each in described) or stated != options.LearnedSettingsOptions():
            raise InputError("--placement already gives application, size and processors, expected it alone")
        _show(_by_placement(placement, config, database, list(chance or ()), list(limit or ())), as_json)
        return
    predictor = None if model is None else _read(model, cluster)
    application = application or getattr(predictor, "application", None)
    told_apart = {"application": application, "problem-size": problem_size, "processors": processors}
    missing = [name for name, value in told_apart.items() if value is None]
    if missing:
        raise InputError(f"--{missing[0]} is missing, expected it or --placement")
    question = {"application": application, "problem_size": problem_size, "processors": processors, "cluster": cluster,
                "chances": list(chance or ()), "limits": list(limit or ()), "available_cpu": cpu,
                "available_bandwidth": bandwidth, **stated.for_daemon()}  # fmt: skip
    if predictor is not None:
        _show(_by_model(predictor, question, str(model)), as_json)
        return
    limits, refused = (None, "") if database is not None else _asked(configuration(config), question)
    if limits is None:
        try:
            limits = _computed(database or configuration(config).database, question)
        except InputError as error:
            raise InputError(f"{error}{f'; {refused}' if refused else ''}") from None
    _show(limits, as_json)


def _show(limits: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(limits)
        return
    table = Table("cluster", "median run time", "limit", "sbatch", "probability of being killed", box=box.SIMPLE_HEAD)
    for each in limits["clusters"]:
        for one in each["limits"]:
            table.add_row(
                Text(each["cluster"]),
                f"{each['median']:.1f} s",
                f"{one['seconds']:.1f} s",
                f"-t {one['minutes']}",
                f"{one['chance']:.1%}",
            )
    output.show(table)


def _by_placement(
    uid: str, config: Path | None, database: str | None, chances: list[float], limits: list[float]
) -> dict[str, Any]:
    """Limits by the prediction that a placement was made with, the same that ``metasched explain`` shows."""
    from metasched.placement.explaining.documents import PlacementTable
    from metasched.predictors.walltime import of_placement

    if not re.fullmatch("[0-9a-f]{32}", uid):
        raise InputError(f"--placement is {uid!r}, expected the id of a placement, 32 digits and letters a to f")
    if database is None:
        found = ask_daemon(config, None, "GET", f"/v1/placements/{uid}")
    else:
        from metasched.store.database.store import Store

        with Store.open(database, new=False) as store:
            advice = store.placements.find(uid)
            if advice is None:
                raise InputError(f"no placement {uid}", where=store.name)
            found = advice.as_dict()
    answer, asked = found["answer"], found["question"]
    if answer["placement"] is None:
        raise InputError(f"no placement was made: {answer['message']}")
    placed = PlacementTable.model_validate(answer["placement"]).record()
    job = {"application": asked["application"], "problem_size": asked["problem_size"]}
    return job | {"processors": placed.resource_set.processors} | of_placement(placed, chances, limits)


def _asked(settings: Configuration, question: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What the daemon says; None where it cannot be asked, with why where it denies who asks."""
    from metasched.client.connection import DeniedError, ask_configured

    try:
        return ask_configured(settings.listen, "POST", "/v1/walltimes", question), ""
    except RuntimeError:
        return None, ""
    except DeniedError as error:
        return None, str(error)


def _read(model: Path, cluster: str | None) -> Any:
    from metasched.store.files.models import read_model

    return options.on_one_platform(read_model(model), cluster)


def _by_model(predictor: Any, question: dict[str, Any], where: str) -> dict[str, Any]:
    """The same document, computed from a model file and the loads of the runs that it has learned."""
    from metasched.predictors.walltime import suggestions

    if predictor.application != question["application"]:
        raise InputError(f"a model of {predictor.application}, expected one of {question['application']}", where=where)
    loads = getattr(predictor, "window", ())
    return suggestions(_job(question), {predictor.cluster: predictor}, lambda _: tuple(loads))


def _job(question: dict[str, Any]) -> Any:
    from metasched.predictors.walltime import Question

    settings = {name: question[name] for name in Settings.of().as_dict() if name in question}
    rest = {name: value for name, value in question.items() if name not in ("cluster", *settings)}
    return Question(**rest, settings=Settings.of(**settings), usual_threads="threads" not in settings)


def _computed(database: str | None, question: dict[str, Any]) -> dict[str, Any]:
    """The same document, computed from the models and runs in the database."""
    from metasched.predictors.walltime import MOST_LOADS, suggestions
    from metasched.store.database.store import Store

    job, cluster = _job(question), question["cluster"]
    with Store.open(database, new=False) as store:
        known = [name for app, name, _, _ in store.models.all() if app == job.application and cluster in (None, name)]
        if not known:
            where = "" if cluster is None else f" on {cluster}"
            raise InputError(
                f"no model of {job.application}{where}, expected one that the daemon has learned, or --model",
                where=store.name,
            )
        return suggestions(
            job, {name: store.models.predictor(job.application, name) for name in known},
            lambda name: store.runs.learnable(application=job.application, platform=name, last=MOST_LOADS),
        )  # fmt: skip
