"""``metasched evaluate``: evaluate a method on a campaign, compared with its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.models.analytic import Analytic
from metasched.cli.models.fit import Method, MethodOption, matching
from metasched.cli.options import ApplicationOption, ClusterOption, JsonOption, LevelOption, grouped
from metasched.fitting import Factory, unfitted
from metasched.plain_numbers import number_of, plain
from metasched.predictors.abilities import borrow, reason_of
from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging.conditions import Conditions, Forecast, observed
from metasched.predictors.judging.energy_peers import ENERGY_PEERS
from metasched.predictors.judging.evaluation import Evaluation, Outcome, evaluate, follow
from metasched.predictors.judging.groups import Group, judged_groups
from metasched.predictors.judging.peers import PEERS
from metasched.predictors.judging.report import Report
from metasched.records import InputError, check_level
from metasched.store.files.campaigns import Campaign, read_campaign
from metasched.store.files.models import read_model


class Models(StrEnum):
    """Whether the published method keeps learning or is frozen after training."""

    single = "single"
    multiple = "multiple"


#: The published method with its best model kept fixed.
SINGLE: dict[str, Factory] = {
    "published": lambda application, cluster, _: PublishedPredictor(application, cluster, models="single")
}


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
    check_level("--level", level)
    if models is Models.single and method is not Method.published:
        raise InputError("--models single is a comparison of the published method, expected --method published")
    recorded = read_campaign(campaign)
    chosen = matching(recorded.runs, application, cluster, where=str(campaign))
    conditions = _conditions(recorded, loads, campaign)
    described = {**analytic.factories(method.value), **(SINGLE if models is Models.single else {})}
    saved = None if start is None else read_model(start)
    found = judged_groups(
        chosen, training, seed, where=str(campaign),
        untrained=saved is not None and not peers, borrowing=saved is None and method is Method.robust,
    )  # fmt: skip
    made: dict[str, Predictor] = {}

    def of_method(group: Group) -> Predictor:
        own = made[group.name] = unfitted(method.value, *group.key, group.training, described)
        borrow(own, found.lent(group))
        return own

    def evaluated(name: str, make: Callable[[Group], Predictor], groups: Sequence[Group]) -> Evaluation:
        return evaluate(make, groups, conditions, level, learning=learn, quantity=quantity.value, progress=bar(name))

    if saved is None:
        name, judged = method.value, found.groups
        own = evaluated(name, of_method, judged)
    else:
        name, judged = saved.name, [group for group in found.groups if group.key == (saved.application, saved.cluster)]
        if not judged:
            held = " or ".join(group.name for group in found.groups)
            raise InputError(f"models {saved.application} on {saved.cluster}, expected {held}", where=str(start))
        steps = follow(saved, judged[0].rest, conditions, level, learning=learn, quantity=quantity.value)
        own = Evaluation(tuple(bar(name)(steps, len(judged[0].rest))))
    outcomes = {(one.run.application, one.run.cluster) for one in own.outcomes}
    judged = [group for group in judged if group.key in outcomes]
    if not judged:
        raise InputError(
            f"no row to predict has the measured {quantity.value}, expected at least one", where=str(campaign)
        )
    trained = [group for group in judged if group.training]
    kinds = (ENERGY_PEERS if quantity is Judged.energy else PEERS) if peers else ()
    reasons = {reason_of(predictor): None for predictor in made.values()}
    report = Report(
        name, own, judged, left=[*found.left, *(group for group in found.groups if group not in judged)],
        peers={kind().name: evaluated(kind().name, partial(_peer, kind), trained) for kind in kinds},
        reason="; ".join(reason for reason in reasons if reason),
    )  # fmt: skip
    if as_json:
        learned = sum(len(group.training) for group in judged) if saved is None else 0
        output.print_json(
            report.document(
                models=models.value, loads=loads.value, quantity=quantity.value, level=level, training=learned,
                learning=learn,
            )
        )  # fmt: skip
        return
    for group in report.left:
        why = _why_left(group, of_another=saved is not None and group.key != (saved.application, saved.cluster))
        output.to_stderr(f"{group.name} was not evaluated: {why}")
    _show(report, f"{quantity.value}, {loads.value} loads", level)


def _show(report: Report, judged: str, level: float) -> None:
    runs = number_of(len(report.own.outcomes), "run")
    title = f"{report.applications} on {report.platforms}, {judged}, {runs}"
    table = output.table(
        *("method", "mean PPE", "deviation", "median", "under 30 %", f"{level:.0%} coverage", "width"),
        left=("method",),
        title=title,
    )
    for name, evaluation in {report.method: report.own, **report.peers}.items():
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


def _peer(kind: Callable[[], Predictor], _: Group) -> Predictor:
    return kind()


def _conditions(campaign: Campaign, loads: LoadsFrom, path: Path) -> Conditions:
    if loads is LoadsFrom.observed:
        return observed
    if campaign.loads is None:
        raise InputError("has neither loads.csv nor loads.csv.gz, expected one for --loads forecast", where=str(path))
    time, cpu, bandwidth = campaign.loads.grid()
    return Forecast(time, campaign.loads.nodes, cpu, bandwidth)


def _why_left(group: Group, *, of_another: bool) -> str:
    if of_another:
        return "the model file is of another"
    return "no row to predict has a measured energy" if group.training else "no row of phase train"
