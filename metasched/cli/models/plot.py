"""``metasched plot``: predicted against measured, error over time, time and efficiency against P, as PNG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import typer

from metasched.cli import figures, options, output
from metasched.cli.models.evaluate import SINGLE, bar
from metasched.cli.models.fit import Method, MethodOption, select
from metasched.cli.options import ApplicationOption, ClusterOption, JsonOption, LevelOption
from metasched.cli.written_files import WRITTEN
from metasched.fitting import Factory, unfitted
from metasched.plain_numbers import plain
from metasched.predictors.abilities import check_depends, under
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Evaluation, Outcome, evaluate, follow
from metasched.predictors.judging.groups import Group, judged_groups
from metasched.predictors.load_doubt import predict_many
from metasched.records import InputError, check_above_zero, check_fraction, check_level
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.models import read_model

OutputOption = Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="PNG file to write.")]
CampaignArgument = Annotated[Path, typer.Argument(help="Folder with runs.csv, or a runs file, with train rows.")]

plot = typer.Typer(help="Plot figures as PNG.", no_args_is_help=True)


@plot.command("predicted")
def predicted(
    campaign: CampaignArgument,
    picture: OutputOption,
    method: MethodOption = Method.robust,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Predicted against measured execution time, with intervals, over a campaign; learned runs in grey."""
    chosen, evaluation = _evaluated(campaign, method, application, cluster, level)
    first = evaluation.outcomes[0].run
    title = f"{first.application} on {first.cluster}: {method.value}, mean PPE {evaluation.summary()['ppe_mean']:.1f} %"
    figures.save(figures.predicted_against_measured(evaluation, title, _learned(chosen, method)), picture)
    _report(picture, as_json)


@plot.command("error")
def error(
    campaign: CampaignArgument,
    picture: OutputOption,
    application: ApplicationOption = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prediction error over time of `robust` and `published` (the paper's Fig. 4)."""
    contenders = {
        "robust": (Method.robust, {}),
        "published, multiple models": (Method.published, {}),
        "published, single model": (Method.published, SINGLE),
    }
    evaluations = {
        name: _evaluated(campaign, method, application, cluster, 0.9, described)[1]
        for name, (method, described) in contenders.items()
    }
    first = evaluations["robust"].outcomes[0].run
    figures.save(figures.error_over_time(evaluations, f"{first.application} on {first.cluster}"), picture)
    _report(picture, as_json)


@plot.command("scaling")
@options.grouped
def scaling(
    *,
    model: Annotated[Path, typer.Argument(help="Model file.")],
    picture: OutputOption,
    problem_size: Annotated[float, typer.Option(help="Problem size N.")],
    cpu: options.CpuOption = None,
    bandwidth: options.BandwidthOption = None,
    stated: options.LearnedSettingsOptions,
    platform: options.PlatformOption = None,
    processors: Annotated[int, typer.Option(min=2, max=100_000, help="Largest number of processors.")] = 32,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Predicted time with its interval, and efficiency, against the number of processors."""
    check_level("--level", level)
    predictor = options.on_one_platform(read_model(model), platform)
    settings = stated.settings_of(predictor)
    check_depends(predictor, settings)
    cpu, bandwidth, doubt = options.loads_to_expect(predictor, cpu, bandwidth, level)
    check_above_zero("--problem-size", problem_size)
    check_fraction("--cpu", cpu)
    check_above_zero("--bandwidth", bandwidth)
    counts = np.unique(np.geomspace(1, processors, 24).round().astype(int))
    loads = np.full(counts.shape, cpu), np.full(counts.shape, bandwidth)
    many = predict_many(under(predictor, settings), problem_size, counts, *loads, level, doubt)
    defined = np.isfinite(many.execution_time)
    if not defined.any():
        raise InputError(f"no model in {model} is defined for these conditions")
    kept = type(many)(many.execution_time[defined], many.low[defined], many.high[defined], level)
    title = (
        f"{predictor.application} on {predictor.cluster}, N = {problem_size:g}, CPU {cpu:.3g}, "
        f"{plain(bandwidth)} Mbit/s"
    )
    figures.save(figures.time_and_efficiency(counts[defined].tolist(), kept, title), picture)
    _report(picture, as_json)


def _evaluated(
    campaign: Path,
    method: Method,
    application: str | None,
    cluster: str | None,
    level: float,
    described: Mapping[str, Factory] = MappingProxyType({}),
) -> tuple[list[Group], Evaluation]:
    check_level("--level", level)
    chosen = select(read_campaign(campaign).runs, application, cluster, where=str(campaign))
    judged = judged_groups(chosen, where=str(campaign)).groups
    evaluation = evaluate(
        lambda group: unfitted(method.value, *group.key, described=described),
        judged,
        observed,
        level,
        progress=bar(method.value),
    )
    return judged, evaluation


def _learned(chosen: list[Group], method: Method) -> list[Outcome]:
    """The predictions of a model for the runs that it was fitted to."""
    outcomes: list[Outcome] = []
    for group in chosen:
        predictor = unfitted(method.value, *group.key)
        predictor.fit(group.training)
        outcomes += follow(predictor, group.training, observed, learning=False)
    return outcomes


def _report(picture: Path, as_json: bool) -> None:
    output.answer(as_json, {"picture": str(picture)}, f"picture written to {picture}")
