"""``metasched evaluate``: evaluate a method on a campaign, compared with its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from metasched.cli import output
from metasched.cli.models.analytic import Analytic
from metasched.cli.models.fit import Method, MethodOption, Models, make, matching
from metasched.cli.options import ApplicationOption, ClusterOption, JsonOption, LevelOption, check_level, grouped
from metasched.plain_numbers import number_of, plain
from metasched.predictors.contract import Predictor, borrow, reason_of
from metasched.predictors.judging.conditions import Conditions, Forecast, observed
from metasched.predictors.judging.energy_peers import ENERGY_PEERS
from metasched.predictors.judging.evaluation import Evaluation, Outcome, evaluate, follow
from metasched.predictors.judging.groups import Group, judged_groups
from metasched.predictors.judging.peers import PEERS
from metasched.predictors.porting.platforms import ENOUGH
from metasched.records import InputError
from metasched.store.files.campaigns import Campaign, read_campaign
from metasched.store.files.models import read_model


class LoadsFrom(StrEnum):
    """The loads that predictions are made with, as ``--loads`` takes them."""

    observed = "observed"
    forecast = "forecast"


class Judged(StrEnum):
    """What is predicted and compared with what was measured, as ``--quantity`` takes it."""

    time = "time"
    energy = "energy"


@grouped
def evaluate_verb(
    *,
    campaign: Annotated[Path, typer.Argument(help="Folder with runs.csv, and loads.csv[.gz] for --loads forecast.")],
    method: MethodOption = Method.robust,
    models: Annotated[
        Models, typer.Option(help="Continue learning, or keep the best model fixed (published only).")
    ] = (Models.multiple),
    loads: Annotated[LoadsFrom, typer.Option(help="Loads to predict with.")] = LoadsFrom.observed,
    start: Annotated[
        Path | None, typer.Option(help="Model file to start from, such as a ported one, instead of fitting --method.")
    ] = None,
    training: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Learn only this many train rows of each application and platform, drawn at random; without a phase "
            "column they are drawn from all rows, and the other rows are predicted.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows that --training draws.")] = 1,
    learn: Annotated[
        bool, typer.Option("--learning/--no-learning", help="Learn each run once it has been predicted.")
    ] = True,
    quantity: Annotated[Judged, typer.Option(help="Quantity to evaluate: execution times, or energies.")] = Judged.time,
    peers: Annotated[bool, typer.Option("--peers", help="Also evaluate the peers.")] = False,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    analytic: Analytic,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Fit on the train rows of a campaign, then predict and learn the others row by row.

    A campaign may hold several applications and platforms: each application on each platform has a model of its own.
    A platform with few train rows, or none, also uses the runs on other platforms with --method robust.
    """
    check_level(level)
    if models is Models.single and method is not Method.published:
        raise InputError("--models single is a comparison of the published method, expected --method published")
    recorded = read_campaign(campaign)
    chosen = matching(recorded.runs, application, cluster, where=str(campaign))
    conditions = _conditions(recorded, loads, campaign)
    factories = analytic.factories(method.value)
    made: dict[str, Predictor] = {}

    def unfitted(group: Group) -> Predictor:
        found = make(method, models, group.application, group.cluster, group.training, factories)
        if len(group.training) < ENOUGH:
            others = (each for each in found_groups.lenders.get(group.application, ()) if each.cluster != group.cluster)
            borrow(found, (run for each in others for run in each.training))
        made[group.name] = found
        return found

    saved = None if start is None else read_model(start)
    found_groups = judged_groups(
        chosen, training, seed, where=str(campaign),
        untrained=saved is not None and not peers, borrowing=saved is None and method is Method.robust,
    )  # fmt: skip
    judged, left = found_groups.groups, found_groups.left
    if saved is None:
        own_name = method.value
        own = evaluate(
            unfitted, judged, conditions, level, learning=learn, quantity=quantity.value, progress=bar(own_name)
        )
    else:
        of_model = [group for group in judged if group.key == (saved.application, saved.cluster)]
        if not of_model:
            held = " or ".join(group.name for group in judged)
            raise InputError(f"models {saved.application} on {saved.cluster}, expected {held}", where=str(start))
        left = [*left, *(group for group in judged if group not in of_model)]
        judged = of_model
        own_name = saved.name
        steps = follow(saved, judged[0].rest, conditions, level, learning=learn, quantity=quantity.value)
        own = Evaluation(tuple(bar(own_name)(steps, len(judged[0].rest))))
    trained = [group for group in judged if group.training]
    kinds: tuple[Callable[[], Predictor], ...] = ENERGY_PEERS if quantity is Judged.energy else (*PEERS,)
    found: dict[str, Evaluation] = {}
    for peer in kinds if peers else ():
        name = peer().name
        found[name] = evaluate(
            _fresh(peer), trained, conditions, level, learning=learn, quantity=quantity.value, progress=bar(name)
        )
    reasons = {name: reason for name, predictor in made.items() if (reason := reason_of(predictor)) is not None}
    document: dict[str, Any] = {
        "application": ", ".join(dict.fromkeys(group.application for group in judged)),
        "cluster": ", ".join(dict.fromkeys(group.cluster for group in judged)),
        "method": own_name,
        "models": models.value,
        "loads": loads.value,
        "quantity": quantity.value,
        "level": level,
        "training": 0 if start is not None else sum(len(group.training) for group in judged),
        "learning": learn,
        "predictions": len(own.outcomes),
        **own.summary(),
        **({"reason": "; ".join(reasons.values())} if reasons else {}),
        "series": [_outcome_document(outcome) for outcome in own.outcomes],
        "peers": {name: evaluation.summary() for name, evaluation in found.items()},
        "evaluated": [_group_document(group, own) for group in judged],
        "not_evaluated": [
            {"application": group.application, "cluster": group.cluster, "predictions": len(group.rest)}
            for group in left
        ],
    }
    if as_json:
        output.print_json(document)
        return
    for group in left:
        output.to_stderr(f"{group.name} was not evaluated: {_why_left(group)}")
    title = f"{document['application']} on {document['cluster']}, {quantity.value}, {loads.value} loads"
    table = output.table(
        *("method", "mean PPE", "deviation", "median", "under 30 %", f"{level:.0%} coverage", "width"),
        left=("method",),
        title=f"{title}, {number_of(len(own.outcomes), 'run')}",
    )
    for name, evaluation in {own_name: own, **found}.items():
        summary = evaluation.summary()
        table.add_row(
            name,
            *(f"{summary[key]:.2f} %" for key in ("ppe_mean", "ppe_std", "ppe_median")),
            *(f"{summary[key]:.1%}" for key in ("ppe_under_30", "interval_coverage")),
            plain(summary["interval_width_median"]),
        )
    output.show(table)


def bar(name: str) -> Callable[[Iterable[Outcome], int], Iterable[Outcome]]:
    """A progress bar for the evaluation of a method."""
    return partial(output.progress, what=f"evaluating {name}")


def _fresh(kind: Callable[[], Predictor]) -> Callable[[Group], Predictor]:
    return lambda _: kind()


def _conditions(campaign: Campaign, loads: LoadsFrom, path: Path) -> Conditions:
    if loads is LoadsFrom.observed:
        return observed
    if campaign.loads is None:
        raise InputError("has neither loads.csv nor loads.csv.gz, expected one for --loads forecast", where=str(path))
    time, cpu, bandwidth = campaign.loads.grid()
    return Forecast(time, campaign.loads.nodes, cpu, bandwidth)


def _why_left(group: Group) -> str:
    return "the model file is of another" if group.training else "no row of phase train"


def _group_document(group: Group, own: Evaluation) -> dict[str, Any]:
    outcomes = [one for one in own.outcomes if (one.run.application, one.run.cluster) == group.key]
    summary = Evaluation(tuple(outcomes)).summary()
    del summary["fit_seconds"]
    return {
        "application": group.application,
        "cluster": group.cluster,
        "training": len(group.training),
        "predictions": len(outcomes),
        **summary,
    }


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    run, prediction = outcome.run, outcome.prediction
    return {
        "application": run.application,
        "cluster": run.cluster,
        "problem_size": run.problem_size,
        "processors": run.processors,
        "execution_time": run.execution_time,
        **({"energy": run.energy} if outcome.quantity == "energy" else {}),
        "predicted": prediction.execution_time,
        "low": prediction.interval.low,
        "high": prediction.interval.high,
        "ppe": outcome.ppe,
    }
