"""Shared by the placement verbs: their options, loading of models, and printing of placements."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.consulting import Given
from metasched.node_names import fold
from metasched.placement.clusters.constraints import Constraints, parse_counts
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, terms_left
from metasched.placement.clusters.state import ClusterState
from metasched.placement.explaining.documents import RankingTable, infeasible_document, ranking_document
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.loads.staleness import with_loads
from metasched.placement.ranking.contention import Contention, NoContention
from metasched.placement.ranking.objective import TERMS, Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.plain_numbers import plain
from metasched.predictors.contract import Predictor, on_platform, under
from metasched.records import DEFAULT_SETTINGS, InputError, Load, Placement, ResourceSet, Settings
from metasched.validation import Located

if TYPE_CHECKING:
    from metasched.store.files.loads import Loads

ApplicationOption = Annotated[str, typer.Option(help="Name of the application.")]
SizeOption = Annotated[float, typer.Option(help="Problem size N.")]
ProcessorsOption = Annotated[str, typer.Option(help="Numbers of processors allowed, such as 1,2,4-8.")]
EfficiencyOption = Annotated[
    float | None,
    typer.Option("--least-efficiency", help="Least parallel efficiency relative to the fewest processors, 0 for any."),
]


#: How far back the loads of the store are read (s).
REMEMBERED = 86400.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The clusters to place on, the application's constraints, a predictor for each cluster, and recorded loads."""

    clusters: tuple[ClusterState, ...]
    constraints: Constraints
    predictors: dict[str, Predictor]
    running: Mapping[str, tuple[RunningJob | StartedJob, ...]]
    recorded: RecordedLoads | None = None
    others: Mapping[tuple[str, str], Predictor] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def sharing(self, problem_size: float) -> tuple[Contention, Mapping[str, tuple[RunningJob, ...]]]:
        """The contention with the jobs that are described as running, and these by cluster."""
        from metasched.placement.ranking.co_scheduling import Coscheduled

        if not any(self.running.values()):
            return NoContention(), {}
        running: dict[str, tuple[RunningJob, ...]] = {}
        notes: tuple[str, ...] = ()
        for cluster in self.clusters:
            jobs = self.running.get(cluster.name, ())

            def model(application: str, name: str = cluster.name) -> Predictor | None:
                return self.others.get((application, name))

            running[cluster.name], lines = terms_left(jobs, cluster, model)
            notes += lines
        whole = {cluster.name: cluster for cluster in self.clusters}
        return Coscheduled(running, self.predictors, problem_size, whole, notes), running


def scene(application: str, clusters: Path, given: Given, settings: Settings = DEFAULT_SETTINGS) -> Scene:
    """Read what the options name: loads that were recorded, else live ones where sources of them are named.

    The application's predictors answer for the settings.
    """
    models, source = given.model, given.source
    from metasched.client.live_loads import with_live_loads
    from metasched.store.files.descriptions import read_description
    from metasched.store.files.sources import read_sources

    description = read_description(clusters)
    states, recorded = description.clusters, None
    warnings: tuple[str, ...] = ()
    if given.loads is not None:
        if source is not None:
            raise InputError("both --loads and --source are given, expected one of them")
        states, recorded = _loaded(states, given.loads, given.at, given.database)
    elif given.at is not None:
        raise InputError("--at is given without --loads")
    elif tables := (*description.sources, *(() if source is None else read_sources(source))):
        states, warnings = with_live_loads(states, tables, description.links)
    names = [state.name for state in states]
    running = {job.application for jobs in description.running.values() for job in jobs if isinstance(job, StartedJob)}
    own: dict[str, Predictor] = {}
    others: dict[tuple[str, str], Predictor] = {}
    if models:
        own, others = _from_files(application, models, names, running)
    else:
        own = _from_store(application, names, given.database)
        for name in sorted(running - {application}):
            with suppress(InputError):
                found = _from_store(name, names, given.database)
                others |= {(name, cluster): predictor for cluster, predictor in found.items()}
    others |= {(application, cluster): predictor for cluster, predictor in own.items()}
    own = {cluster: under(predictor, settings) for cluster, predictor in own.items()}
    constraints = description.constraints.get(application, Constraints())
    return Scene(states, constraints, own, description.running, recorded, others, warnings)


def objective(weights: Sequence[str] | None, saving: float) -> Objective:
    """The objective that ``TERM=WEIGHT`` options give."""
    given: dict[str, float] = {}
    for text in weights or ():
        name, _, value = text.partition("=")
        try:
            given[name] = float(value)
        except ValueError:
            raise InputError(f"--weight {text!r}, expected TERM=PRICE, such as core_hours=60") from None
        if name not in TERMS:
            raise InputError(f"--weight {text!r}: no term {name}, expected one of {', '.join(TERMS)}")
    return Objective(**({"time": 0.0} | given if given else {}), saving=saving)


class Policy(StrEnum):
    """Objectives that have a name, as ``--policy`` takes them."""

    min_time = "min-time"
    min_energy = "min-energy"


def weights_of(policy: Policy) -> list[str]:
    """The weights of a policy, as options spell them."""
    return ["energy=1"] if policy is Policy.min_energy else ["time=1"]


def clocks(text: str) -> tuple[float, ...]:
    """The clocks (MHz) that an option such as 1800,2400 lists; InputError where one is no number above 0."""
    try:
        return tuple(Settings(frequency=float(part)).frequency or 0.0 for part in text.split(",") if text)
    except InputError as error:
        raise InputError(str(error), where="--frequencies") from None
    except ValueError:
        raise InputError(f"--frequencies is {text!r}, expected MHz such as 1800,2400") from None


def counts(text: str, *, where: str) -> tuple[int, ...]:
    """Numbers of processors written as 1,2,4-8."""
    with Located(where):
        return parse_counts(text)


def ranked(
    application: str,
    scene: Scene,
    question: Question,
    settings: Settings = DEFAULT_SETTINGS,
    *,
    any_threads: bool = False,
    frequencies: Sequence[float] = (),
) -> dict[str, Any]:
    """The document that answers a question about a scene, for the best layout on nodes that the settings leave."""
    from metasched.placement.ranking.layouts import layouts
    from metasched.placement.ranking.ranker import rank

    predictors, most, only = scene.predictors.values(), question.constraints.per_node, question.constraints.clusters
    states = [each for each in scene.clusters if not only or each.name in only]
    try:
        chosen = layouts(states, predictors, settings, most, any_threads=any_threads, frequencies=frequencies)
        ranking = rank(scene.clusters, scene.predictors, replace(question, settings=chosen))
    except InfeasibleError as error:
        answer = infeasible_document(application, question.problem_size, error)
    else:
        answer = ranking_document(application, question.problem_size, ranking, settings)
    warnings = [*scene.warnings, *answer.get("warnings", ())]
    return answer | ({"warnings": warnings} if warnings or "warnings" in answer else {})


def count(chosen: ResourceSet) -> str:
    """The number of processors, with the layout of processes on nodes where there is a choice."""
    layout = chosen.layout
    per_node = f", {layout['processes_per_node']} a node" if "processes_per_node" in layout else ""
    threads = f" x {layout['threads']} threads" if layout.get("threads", 1) > 1 else ""
    return f"{chosen.processors}{threads}{per_node}"


def _energy(placement: Placement) -> tuple[float | None, ...]:
    """Clock (MHz), energy (J) and probability of completion of a placement, as text."""
    return placement.resource_set.frequency, placement.energy, placement.success


def show(answer: RankingTable) -> None:
    """Print placements for people: a table, and below it the reason for each place."""
    placements = [each.record() for each in answer.placements]
    level = placements[0].prediction.interval.level
    title = f"{answer.application}, problem size {answer.problem_size:g}: {answer.compared} resource sets compared"
    shown = Table(title=f"{title}; times in s", title_justify="left", box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    shown.add_column("#", justify="right", no_wrap=True)
    shown.add_column("where", overflow="fold", min_width=12)
    known = [any(value is not None for value in given) for given in zip(*map(_energy, placements), strict=True)]
    for heading in ("P", "completion", "wait + run", f"{level:.0%} interval", "CPU", "Mbit/s"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for heading, given in zip(("MHz", "J", "chance"), known, strict=True):
        if given:
            shown.add_column(heading, justify="right", no_wrap=True)
    for number, placement in enumerate(placements, start=1):
        chosen, prediction, slowdown = placement.resource_set, placement.prediction, placement.slowdown
        shown.add_row(
            str(number),
            f"{chosen.cluster}: {fold(chosen.nodes)}",
            count(chosen),
            plain(placement.completion),
            f"{plain(placement.queue_wait)} + {plain(slowdown * prediction.execution_time)}",
            f"{plain(slowdown * prediction.interval.low)}-{plain(slowdown * prediction.interval.high)}",
            f"{chosen.available_cpu:.2f}",
            plain(chosen.available_bandwidth),
            *(
                "" if value is None else plain(value)
                for value, given in zip(_energy(placement), known, strict=True)
                if given
            ),
            style="bold" if number == 1 else None,
        )
    output.show(shown)
    for number, placement in enumerate(placements, start=1):
        output.say(f"{number:>3} {placement.reason}")
    if answer.gap is None or answer.gap > 0:
        gap = math.inf if answer.gap is None else answer.gap
        output.out.print(f"not proven optimal: at most {gap:.1%} above the optimum")


def _from_files(
    application: str, models: Sequence[str], clusters: Sequence[str], running: Collection[str]
) -> tuple[dict[str, Predictor], dict[tuple[str, str], Predictor]]:
    """Predictors from ``FILE`` or ``CLUSTER=FILE``, of several files of an application each for its own cluster.

    Returns those of the application by cluster, and those of others, which must run there, by application and cluster.
    """
    from metasched.store.files.models import read_model

    named: dict[tuple[str, str], Predictor] = {}
    plain: dict[str, list[Predictor]] = {}
    for text in models:
        cluster, equals, path = text.partition("=")
        explicit = bool(equals) and not Path(text).exists()
        predictor = read_model(path if explicit else text)
        if predictor.application != application and predictor.application not in running:
            raise InputError(f"--model {text} is of application {predictor.application}, expected {application}")
        if not explicit:
            plain.setdefault(predictor.application, []).append(predictor)
            cluster = predictor.cluster
        elif cluster not in clusters:
            raise InputError(
                f"--model {text}: cluster {cluster} is not described, expected one of {', '.join(clusters)}"
            )
        if (predictor.application, cluster) in named:
            raise InputError(f"--model {text}: cluster {cluster} already has a model")
        named[predictor.application, cluster] = predictor
    # One file alone holds for every cluster that has none of its own.
    everywhere = {(name, cluster): found[0] for name, found in plain.items() if len(found) == 1 for cluster in clusters}
    every = {
        key: on_platform(predictor, key[1]) for key, predictor in (everywhere | named).items() if key[1] in clusters
    }
    own = {cluster: predictor for (name, cluster), predictor in every.items() if name == application}
    if not own:
        raise InputError(f"no --model is of application {application}")
    return own, {key: predictor for key, predictor in every.items() if key[0] != application}


def _from_store(application: str, clusters: Sequence[str], database: str | None) -> dict[str, Predictor]:
    from metasched.predictors.porting.platforms import borrower
    from metasched.store import documents
    from metasched.store.database.store import Store

    predictors: dict[str, Predictor] = {}
    try:
        opened = Store.open(database, new=False)
    except InputError as error:
        raise InputError(f"{error}; a model can be given by --model") from None
    with opened as store:
        for name in clusters:
            try:
                saved = json.dumps(store.models.document(application, name))
            except InputError as error:
                missing = error
                continue
            predictors[name] = documents.parse(saved, where=f"{store.name}: {application} on {name}")
        others = [platform for name, platform, *_ in store.models.all() if name == application]
        if others and len(predictors) < len(clusters):
            known = {name: store.models.predictor(application, name) for name in others}
            for name in [name for name in clusters if name not in predictors]:
                borrowing = borrower(application, name, known)
                if borrowing is not None:
                    predictors[name] = borrowing.fit(())
    if not predictors:
        raise InputError(f"{missing}; give one by --model")
    return predictors


def _loaded(
    states: Sequence[ClusterState], source: str, at: float | None, database: str | None
) -> tuple[tuple[ClusterState, ...], RecordedLoads]:
    from metasched.store.database.store import Store
    from metasched.store.files.loads import read_loads

    if source == "store":
        with Store.open(database, new=False) as store:
            now = time.time() if at is None else at
            loads = store.loads.all(since=now - REMEMBERED, until=now + 1e-6)
    else:
        loads = read_loads(source)
        now = float(loads.time.max(initial=0.0)) if at is None else at
    last = _last(loads, now)
    times, cpu, bandwidth = loads.grid()
    return tuple(with_loads(state, last, now) for state in states), RecordedLoads(
        times, loads.nodes, cpu, bandwidth, now
    )


def _last(loads: Loads, now: float) -> list[Load]:
    """The last load of each node until now."""
    found = []
    for index, node in enumerate(loads.nodes):
        part = slice(int(loads.offsets[index]), int(loads.offsets[index + 1]))
        position = int(loads.time[part].searchsorted(now, side="right")) - 1
        if position >= 0:
            at = part.start + position
            found.append(
                Load(float(loads.time[at]), node, float(loads.available_cpu[at]), float(loads.available_bandwidth[at]))
            )
    return found
