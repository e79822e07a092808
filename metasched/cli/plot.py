"""``metasched plot``: predicted against measured, error over time, time and efficiency against P, as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from metasched.cli import figures, output
from metasched.cli.models import (
    LevelOption,
    Method,
    MethodOption,
    Models,
    check_level,
    make,
    select,
    training_and_rest,
)
from metasched.cli.options import ApplicationOption, ClusterOption, JsonOption
from metasched.predictors.conditions import observed
from metasched.predictors.evaluation import Evaluation, evaluate
from metasched.records import InputError
from metasched.store.campaigns import read_campaign
from metasched.store.models import read_model

OutputOption = Annotated[Path, typer.Option("-o", "--output", help="PNG file to write.")]
CampaignArgument = Annotated[Path, typer.Argument(help="Folder with runs.csv, or a runs file, with train rows.")]

plots = typer.Typer(help="Draw pictures as PNG.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.add_typer(plots, name="plot")


@plots.command("predicted")
def predicted(
    campaign: CampaignArgument,
    picture: OutputOption,
    method: MethodOption = Method.robust,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Predicted against measured execution time, with intervals, over a campaign."""
    evaluation = _evaluated(campaign, method, Models.multiple, application, cluster, level)
    first = evaluation.outcomes[0].run
    title = f"{first.application} on {first.cluster}: {method.value}, mean PPE {evaluation.summary()['ppe_mean']:.1f} %"
    figures.save(figures.predicted_against_measured(evaluation, title), picture)
    _report(picture, as_json)


@plots.command("error")
def error(
    campaign: CampaignArgument,
    picture: OutputOption,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prediction error over time of every method (the paper's Fig. 4)."""
    contenders = {
        "robust": (Method.robust, Models.multiple),
        "published, multiple models": (Method.published, Models.multiple),
        "published, single model": (Method.published, Models.single),
    }
    evaluations = {
        name: _evaluated(campaign, method, models, application, cluster, 0.9)
        for name, (method, models) in contenders.items()
    }
    first = evaluations["robust"].outcomes[0].run
    figures.save(figures.error_over_time(evaluations, f"{first.application} on {first.cluster}"), picture)
    _report(picture, as_json)


@plots.command("scaling")
def scaling(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    picture: OutputOption,
    problem_size: Annotated[float, typer.Option(help="N.")],
    cpu: Annotated[float, typer.Option(help="Smallest available CPU to expect, fraction of one processor.")],
    bandwidth: Annotated[float, typer.Option(help="Smallest available bandwidth to expect, Mbit/s.")],
    processors: Annotated[int, typer.Option(min=2, max=100_000, help="Largest number of processors.")] = 32,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Predicted time with its interval, and efficiency, against the number of processors."""
    check_level(level)
    if not (problem_size > 0 and 0 < cpu <= 1 and bandwidth > 0):
        raise InputError("expected --problem-size above 0, --cpu in (0, 1] and --bandwidth above 0")
    predictor = read_model(model)
    counts = np.unique(np.geomspace(1, processors, 24).round().astype(int))
    many = predictor.predict_many(problem_size, counts, cpu, bandwidth, level)
    defined = np.isfinite(many.execution_time)
    if not defined.any():
        raise InputError(f"no model in {model} is defined for these conditions")
    kept = type(many)(many.execution_time[defined], many.low[defined], many.high[defined], level)
    title = f"{predictor.application} on {predictor.cluster}, N = {problem_size:g}, CPU {cpu:g}, {bandwidth:g} Mbit/s"
    figures.save(figures.time_and_efficiency(counts[defined].tolist(), kept, title), picture)
    _report(picture, as_json)


def _evaluated(
    campaign: Path, method: Method, models: Models, application: str | None, cluster: str | None, level: float
) -> Evaluation:
    check_level(level)
    chosen = select(read_campaign(campaign).runs, application, cluster, where=str(campaign))
    training, rest = training_and_rest(chosen, where=str(campaign))
    steps = evaluate(make(method, models, chosen), training, rest, observed, level)
    return Evaluation(tuple(output.progress(steps, total=len(rest), what=f"evaluating {method.value}")))


def _report(picture: Path, as_json: bool) -> None:
    if as_json:
        output.print_json({"picture": str(picture)})
    else:
        output.out.print(f"picture written to {picture}", markup=False, soft_wrap=True)
