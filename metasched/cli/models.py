"""``metasched fit``, ``predict`` and ``evaluate``: learn a model from runs, ask it, judge it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from metasched.cli import output
from metasched.cli.lists import fitted_document, list_document, show_list
from metasched.cli.options import ApplicationOption, ClusterOption, JsonOption
from metasched.cli.profiled import HardwareOption, Profiled, ProfiledSizeOption, ProfilesOption, profiled_by
from metasched.predictors.conditions import Conditions, Forecast, observed
from metasched.predictors.contract import Predictor
from metasched.predictors.evaluation import Adaptive, Evaluation, Outcome, evaluate, follow, split
from metasched.predictors.listed import WithList, sorted_lists
from metasched.predictors.peers import GaussianProcess, RidgeQuadratic
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.published import PublishedPredictor
from metasched.predictors.robust import RobustPredictor
from metasched.predictors.spmd.predictor import SpmdPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import InputError, Request, Run
from metasched.store.campaigns import Campaign, read_campaign
from metasched.store.models import read_model, write_model


class Method(StrEnum):
    """Ways to build the adaptive model."""

    published = "published"
    robust = "robust"
    phased = "phased"
    spmd = "spmd"
    cloud = "cloud"
    tournament = "tournament"


class Models(StrEnum):
    """Whether the published method keeps learning or is frozen after training."""

    single = "single"
    multiple = "multiple"


class LoadsFrom(StrEnum):
    """Loads that predictions are asked with."""

    observed = "observed"
    forecast = "forecast"


MethodOption = Annotated[Method, typer.Option(help="How to model.")]
LevelOption = Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("fit")(fit)
    app.command("predict")(predict)
    app.command("evaluate")(evaluate_verb)


def fit(
    runs: Annotated[Path, typer.Argument(help="Measured runs (runs.csv), or the folder with them and phases.csv.")],
    model: Annotated[Path, typer.Option("-o", "--output", help="Model file to write.")],
    method: MethodOption = Method.robust,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    profile: ProfilesOption = None,
    hardware: HardwareOption = None,
    profiled_size: ProfiledSizeOption = None,
    top: Annotated[int, typer.Option(min=1, help="How many models of the sorted list to show.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Learn a model from measured runs and print the top of its sorted list, or of that of each phase."""
    chosen = select(read_campaign(runs).runs, application, cluster, where=str(runs))
    predictor = make(method, Models.multiple, chosen, profiled_by(profile, hardware, profiled_size))
    with output.working(f"searching with {len(chosen)} runs"):
        predictor.fit(chosen)
    write_model(model, predictor)
    parts = sorted_lists(predictor) if isinstance(predictor, WithList) else {}
    notes = list(dict.fromkeys(note for part in parts.values() for note in part.notes))
    document: dict[str, Any] = {
        "method": method.value,
        "application": chosen[0].application,
        "cluster": chosen[0].cluster,
        "runs": len(chosen),
        "notes": notes,
        "model": str(model),
    }
    if isinstance(predictor, PhasedPredictor):
        document["phases"] = [
            {
                "phase": phase.name,
                "processes": phase.processes is not None,
                "work": phase.profile.density,
                "sorted_list": list_document(parts[phase.name].models, top),
            }
            for phase in predictor.state.phases
        ]
    elif isinstance(predictor, WithList):
        document["sorted_list"] = list_document(parts[""].models, top)
    else:
        document["fitted"] = fitted_document(predictor)
    if as_json:
        output.print_json(document)
        return
    title = f"{chosen[0].application} on {chosen[0].cluster}"
    for key, value in document.get("fitted", {}).items():
        output.out.print(f"{key}: {value if isinstance(value, str) else f'{value:.4g}'}", markup=False, soft_wrap=True)
    for name, part in parts.items():
        show_list(f"{title}, phase {name}" if name else title, part.models, top, method.value)
    for note in notes:
        output.out.print(f"note: {note}", markup=False)
    output.out.print(f"{len(chosen)} runs learned, model written to {model}", markup=False, soft_wrap=True)


def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    problem_size: Annotated[float, typer.Option(help="N.")],
    processors: Annotated[int, typer.Option(help="P.")],
    cpu: Annotated[float, typer.Option(help="Smallest available CPU to expect, fraction of one processor.")],
    bandwidth: Annotated[float, typer.Option(help="Smallest available bandwidth to expect, Mbit/s.")],
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Predict the execution time of one run, with its interval."""
    check_level(level)
    found = read_model(model).predict(Request(problem_size, processors, cpu, bandwidth), level)
    if as_json:
        output.print_json(found.as_dict())
        return
    low, high = found.interval.low, found.interval.high
    output.out.print(f"{found.execution_time:.4g} s, {level:.0%} interval {low:.4g} s to {high:.4g} s", markup=False)
    output.out.print(f"model: {found.model}", markup=False, soft_wrap=True)
    for warning in found.warnings:
        output.complain(f"warning: {warning}")


def evaluate_verb(
    campaign: Annotated[Path, typer.Argument(help="Folder with runs.csv, and loads.csv[.gz] for --loads forecast.")],
    method: MethodOption = Method.robust,
    models: Annotated[Models, typer.Option(help="Keep learning, or freeze the best model (published only).")] = (
        Models.multiple
    ),
    loads: Annotated[LoadsFrom, typer.Option(help="Loads to predict with.")] = LoadsFrom.observed,
    start: Annotated[
        Path | None, typer.Option(help="Model file to start from, such as a ported one, instead of fitting --method.")
    ] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Evaluate the peers in the same run.")] = False,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    profile: ProfilesOption = None,
    hardware: HardwareOption = None,
    profiled_size: ProfiledSizeOption = None,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Fit on the train rows of a campaign, then predict and learn the others row by row."""
    check_level(level)
    if models is Models.single and method is not Method.published:
        raise InputError("--models single is a comparison of the published method, expected --method published")
    recorded = read_campaign(campaign)
    chosen = select(recorded.runs, application, cluster, where=str(campaign))
    training, rest = training_and_rest(chosen, where=str(campaign), train=start is None or peers)
    conditions = _conditions(recorded, loads, campaign)
    judged: dict[str, Iterable[Outcome]] = {}
    predictor: Predictor
    if start is None:
        own_name = method.value
        unfitted = predictor = make(method, models, chosen, profiled_by(profile, hardware, profiled_size))
        judged[own_name] = evaluate(unfitted, training, rest, conditions, level)
    else:
        predictor = saved = read_model(start)
        if (saved.application, saved.cluster) != (chosen[0].application, chosen[0].cluster):
            raise InputError(
                f"models {saved.application} on {saved.cluster}, "
                f"expected {chosen[0].application} on {chosen[0].cluster}",
                where=str(start),
            )
        own_name = predictor.name
        judged[own_name] = follow(predictor, rest, conditions, level)
    if peers:
        for peer in (RidgeQuadratic(), GaussianProcess()):
            judged[peer.name] = evaluate(peer, training, rest, conditions, level)
    found = {
        name: Evaluation(tuple(output.progress(steps, total=len(rest), what=f"evaluating {name}")))
        for name, steps in judged.items()
    }
    own = found.pop(own_name)
    chosen_by = predictor.reason if isinstance(predictor, Tournament) else None
    document = {
        "application": chosen[0].application,
        "cluster": chosen[0].cluster,
        "method": own_name,
        "models": models.value,
        "loads": loads.value,
        "level": level,
        "predictions": len(own.outcomes),
        **own.summary(),
        **({"reason": chosen_by} if chosen_by is not None else {}),
        "series": [_outcome_document(outcome) for outcome in own.outcomes],
        "peers": {name: evaluation.summary() for name, evaluation in found.items()},
    }
    if as_json:
        output.print_json(document)
        return
    table = Table(title=f"{document['application']} on {document['cluster']}, {loads.value} loads, {len(rest)} runs")
    for heading in ("method", "mean PPE", "deviation", "median", "under 30 %", f"{level:.0%} intervals held"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, evaluation in {own_name: own, **found}.items():
        summary = evaluation.summary()
        table.add_row(
            name,
            *(f"{summary[key]:.2f} %" for key in ("ppe_mean", "ppe_std", "ppe_median")),
            *(f"{summary[key]:.1%}" for key in ("ppe_under_30", "interval_coverage")),
        )
    output.out.print(table)


def select(runs: Iterable[Run], application: str | None, cluster: str | None, *, where: str) -> tuple[Run, ...]:
    """The runs of one application on one cluster; InputError where the options leave none, or more than one kind."""
    kept = [run for run in runs if application in (None, run.application) and cluster in (None, run.cluster)]
    if not kept:
        raise InputError(f"no runs of {application or 'any application'} on {cluster or 'any cluster'}", where=where)
    for option, found in (
        ("--application", sorted({run.application for run in kept})),
        ("--cluster", sorted({run.cluster for run in kept})),
    ):
        if len(found) > 1:
            raise InputError(f"holds runs of {', '.join(found)}, expected {option} to choose one", where=where)
    return tuple(kept)


def training_and_rest(
    runs: Iterable[Run], *, where: str, train: bool = True
) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Split runs by phase; InputError where there is nothing to train on though needed, or nothing to predict."""
    training, rest = split(runs)
    if (train and not training) or not rest:
        missing = "predict" if not rest else "train"
        raise InputError(f"no row has phase {missing}, expected some", where=where)
    return training, rest


def make(method: Method, models: Models, runs: Sequence[Run], profiled: Profiled | None = None) -> Adaptive:
    """An unfitted predictor for the application and cluster of some runs, and for cloud from what was profiled."""
    application, cluster = runs[0].application, runs[0].cluster
    if method is Method.published:
        return PublishedPredictor(application, cluster, models=models.value)
    if method is Method.phased:
        return PhasedPredictor(application, cluster)
    if method is Method.spmd:
        return SpmdPredictor(application=application, cluster=cluster)
    if method is Method.cloud:
        if profiled is None:
            raise InputError("--method cloud needs --profile, --hardware and --profiled-size")
        return profiled(application, cluster)
    if method is Method.tournament:
        entrants: list[Adaptive] = [
            RobustPredictor(application, cluster),
            PublishedPredictor(application, cluster),
            SpmdPredictor(application=application, cluster=cluster),
        ]
        return Tournament([*entrants, profiled(application, cluster)] if profiled is not None else entrants)
    return RobustPredictor(application, cluster)


def check_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0.0 < level < 1.0:
        raise InputError(f"--level is {level:g}, expected a number between 0 and 1")


def _conditions(campaign: Campaign, loads: LoadsFrom, path: Path) -> Conditions:
    if loads is LoadsFrom.observed:
        return observed
    if campaign.loads is None:
        raise InputError("has no loads.csv or loads.csv.gz, expected one for --loads forecast", where=str(path))
    time, cpu, bandwidth = campaign.loads.grid()
    return Forecast(time, campaign.loads.nodes, cpu, bandwidth)


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    run, prediction = outcome.run, outcome.prediction
    return {
        "problem_size": run.problem_size,
        "processors": run.processors,
        "execution_time": run.execution_time,
        "predicted": prediction.execution_time,
        "low": prediction.interval.low,
        "high": prediction.interval.high,
        "ppe": outcome.ppe,
    }
