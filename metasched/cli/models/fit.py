"""``metasched fit`` and ``predict``: learn a model from runs, and predict with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from metasched.cli import options, output
from metasched.cli.models.analytic import Analytic
from metasched.cli.models.sorted_lists import list_document, show_list
from metasched.cli.written_files import WRITTEN
from metasched.fitting import unfitted
from metasched.plain_numbers import number_of, plain
from metasched.predictors.abilities import by_process, check_depends, energy_predictor, usual_clock
from metasched.predictors.contract import Learned, Predictor
from metasched.predictors.energy.by_hardware import energy_by_hardware
from metasched.predictors.load_doubt import Expected, LoadDoubt, predict_expected
from metasched.predictors.porting.platforms import PlatformsPredictor
from metasched.records import InputError, Prediction, Request, Run, check_level
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.hardware import read_entry
from metasched.store.files.models import read_model, write_model


class Method(StrEnum):
    """Ways to build the adaptive model."""

    published = "published"
    robust = "robust"
    phased = "phased"
    spmd = "spmd"
    cloud = "cloud"
    signature = "signature"
    simulated = "simulated"
    tournament = "tournament"


MethodOption = Annotated[Method, typer.Option(help="Modelling method.")]


@options.grouped
def fit(
    *,
    runs: Annotated[
        Path, typer.Argument(help="Measured runs (runs.csv), or the folder that contains them and phases.csv.")
    ],
    model: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Model file to write.")],
    method: MethodOption = Method.robust,
    application: options.ApplicationOption = None,
    cluster: options.ClusterOption = None,
    analytic: Analytic,
    top: Annotated[int, typer.Option(min=1, help="How many models of the sorted list to show.")] = 10,
    as_json: options.JsonOption = False,
) -> None:
    """Learn a model from measured runs and print the top of its sorted list, or of that of each phase.

    With --method robust the runs may be of several platforms: each has a model, and models with few runs also use runs
    on other platforms.
    """
    several = method is Method.robust
    chosen = select(read_campaign(runs).runs, application, cluster, where=str(runs), several=several)
    factories = analytic.factories(method.value)
    platforms = tuple(dict.fromkeys(run.cluster for run in chosen))
    predictor = (
        PlatformsPredictor(chosen[0].application)
        if len(platforms) > 1
        else unfitted(method.value, chosen[0].application, chosen[0].cluster, chosen, factories)
    )
    with output.working(f"searching with {number_of(len(chosen), 'run')}"):
        predictor.fit(chosen)
    write_model(model, predictor)
    learned = predictor.learned()
    if as_json:
        document = {
            "method": method.value,
            "application": chosen[0].application,
            "cluster": ", ".join(platforms),
            "runs": len(chosen),
            "notes": list(learned.notes),
            "model": str(model),
        }
        output.print_json(document | _learned_document(learned, platforms, top))
        return
    _show_learned(learned, chosen[0].application, platforms, method.value, top)
    output.say(f"{number_of(len(chosen), 'run')} learned, model written to {model}")


def _learned_document(learned: Learned, platforms: Sequence[str], top: int) -> dict[str, Any]:
    """What was learned: the list of each platform or phase, or the only list and the fitted numbers."""
    whole = learned.parts[0]
    if whole.name:
        kind = "platform" if len(platforms) > 1 else "phase"
        parts = [
            {kind: part.name, **part.facts, "sorted_list": list_document(part.models, top)}
            for part in learned.parts
            if part.models is not None
        ]
        return {f"{kind}s": parts}
    found: dict[str, Any] = {}
    if whole.models is not None:
        found["sorted_list"] = list_document(whole.models, top)
    if whole.facts:
        found["fitted"] = dict(whole.facts)
    return found


def _show_learned(learned: Learned, application: str, platforms: Sequence[str], method: str, top: int) -> None:
    fitted = {} if learned.parts[0].name else learned.parts[0].facts
    for key, value in fitted.items():
        output.say(f"{key}: {value if isinstance(value, str) else plain(value)}")
    by = "predictions use the formula" if "formula" in fitted else method
    title = f"{application} on {', '.join(platforms)}"
    for part in learned.parts:
        if part.models is not None:
            of_part = f"{application} on {part.name}" if len(platforms) > 1 else f"{title}, phase {part.name}"
            show_list(of_part if part.name else title, part.models, top, by)
    for note in learned.notes:
        output.say(f"note: {note}")


@options.grouped
def predict(
    *,
    model: Annotated[Path, typer.Argument(help="Model file.")],
    problem_size: Annotated[float, typer.Option(help="Problem size N.")],
    processors: Annotated[int, typer.Option(help="Number of processors P.")],
    cpu: options.CpusOption = None,
    bandwidth: options.BandwidthsOption = None,
    stated: options.LearnedSettingsOptions,
    frequency: options.FrequencyOption = None,
    entry: Annotated[
        str | None,
        typer.Option(help="Hardware (a name, or a file) whose power formula is used if no run has a measured energy."),
    ] = None,
    platform: options.PlatformOption = None,
    level: options.LevelOption = 0.9,
    as_json: options.JsonOption = False,
) -> None:
    """Predict the execution time of one run, with its interval, and its energy if runs with energy were learned.

    The usual loads are the medians of the model's runs; those of free nodes if none were measured. The interval of a
    robust model then includes how much the loads vary.
    """
    check_level("--level", level)
    known = options.on_one_platform(read_model(model), platform)
    settings = stated.settings_of(known, frequency)
    check_depends(known, settings)
    cpus, links = options.numbers("--cpu", cpu), options.numbers("--bandwidth", bandwidth)
    available_cpu, available_bandwidth, doubt = options.loads_to_expect(
        known, min(cpus, default=None), min(links, default=None), level
    )
    request = Request(problem_size, processors, available_cpu, available_bandwidth, settings)
    if max(len(cpus), len(links)) > 1:
        found = _predict_processes(known, request, cpus or (available_cpu,), links or (available_bandwidth,), level)
    else:
        found = _predict_one(known, request, level, doubt)
    metered = energy_predictor(known)
    joules = None if metered is None else _predict_one(metered, request, level, doubt)
    if joules is None and entry is not None:
        per_node = settings.processes_per_node and settings.processes_per_node * settings.threads
        joules = energy_by_hardware(found, read_entry(entry), processors * settings.threads, per_node)
        found = replace(found, warnings=(*found.warnings, *joules.warnings))
    taken = [f"CPU {available_cpu:.3g}"] * (not cpus) + [f"{plain(available_bandwidth)} Mbit/s"] * (not links)
    clock = usual_clock(known) if frequency is None else None
    if as_json:
        loads = {"available_cpu": available_cpu, "available_bandwidth": available_bandwidth}
        measured: dict[str, Any] = {}
        if joules is not None:
            measured["energy"] = {"value": joules.execution_time, "interval": joules.interval.as_dict()}
            measured["power"] = joules.execution_time / found.execution_time
        if clock is not None:
            measured["frequency"] = clock
        output.print_json(found.as_dict() | measured | ({"loads": loads} if taken else {}))
        return
    low, high = found.interval.low, found.interval.high
    output.say(f"{plain(found.execution_time)} s, {level:.0%} interval {plain(low)} s to {plain(high)} s")
    if joules is not None:
        least, most = plain(joules.interval.low), plain(joules.interval.high)
        watts = plain(joules.execution_time / found.execution_time)
        output.say(
            f"{plain(joules.execution_time)} J, {level:.0%} interval {least} J to {most} J; {watts} W on average"
        )
    if taken:
        varying = "" if doubt is None else "; the interval includes how much loads vary"
        output.say(f"with {' and '.join(taken)}, the usual value{'s' * (len(taken) > 1)} of the runs{varying}")
    if clock is not None:
        output.say(f"at {clock:g} MHz, the usual clock of the runs")
    output.say(f"model: {found.model}")
    output.warn(found.warnings)


def _predict_one(known: Predictor, request: Request, level: float, doubt: LoadDoubt | None) -> Prediction:
    return known.predict(request, level) if doubt is None else predict_expected(known, Expected(request, doubt), level)


def _predict_processes(
    known: Predictor, request: Request, cpus: Sequence[float], links: Sequence[float], level: float
) -> Prediction:
    """What a model predicts from the available CPU and bandwidth of each process, or of all where one is given."""
    knowing = by_process(known)
    if knowing is None:
        raise InputError(f"--cpu and --bandwidth list several values, but {known.name} models know only the smallest")
    count = request.processors
    for option, values in (("--cpu", cpus), ("--bandwidth", links)):
        if len(values) not in (1, count):
            raise InputError(f"{option} lists {len(values)} values, expected one for each of the {count} processes")
    return knowing.predict_processes(request.problem_size, np.resize(cpus, count), np.resize(links, count), level)


def select(
    runs: Iterable[Run], application: str | None, cluster: str | None, *, where: str, several: bool = False
) -> tuple[Run, ...]:
    """The runs of one application on one cluster, or on several; InputError for none, or for more kinds."""
    kept = matching(runs, application, cluster, where=where)
    for option, found in (
        ("--application", sorted({run.application for run in kept})),
        ("--cluster", sorted({run.cluster for run in kept})),
    ):
        if len(found) > 1 and not (several and option == "--cluster"):
            raise InputError(f"holds runs of {', '.join(found)}, expected {option} to choose one", where=where)
    return kept


def matching(runs: Iterable[Run], application: str | None, cluster: str | None, *, where: str) -> tuple[Run, ...]:
    """The runs that match the options; InputError if there are none."""
    kept = tuple(run for run in runs if application in (None, run.application) and cluster in (None, run.cluster))
    if not kept:
        raise InputError(f"no runs of {application or 'any application'} on {cluster or 'any cluster'}", where=where)
    return kept
