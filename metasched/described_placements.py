"""Placements on clusters that a file describes, with models of files or of the store, without a daemon."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, terms_left
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads, counted
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.loads.staleness import STALE_AFTER, with_loads
from metasched.placement.ranking.contention import ALONE, Contention
from metasched.placement.ranking.query import Question
from metasched.predictors.abilities import on_platform
from metasched.predictors.contract import Predictor
from metasched.records import DEFAULT_SETTINGS, InputError, Settings
from monitors.forecasters.sets import HISTORY

if TYPE_CHECKING:
    from metasched.store.database.load_records import LoadRecords
    from metasched.store.files.loads import Loads as StoredLoads

#: How far back the loads of the store are read at most, and at first where they are forecast (s).
REMEMBERED, READ_FIRST = 86400.0, 3600.0


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

    def sharing(
        self, problem_size: float, stale_after: float = STALE_AFTER
    ) -> tuple[Contention, Mapping[str, tuple[RunningJob, ...]]]:
        """The contention with the jobs that are described as running, and these by cluster.

        Parameters
        ----------
        problem_size : N of the job to place.
        stale_after : age from which on loads are stale (s).
        """
        from metasched.placement.ranking.co_scheduling import Coscheduled

        if not any(self.running.values()):
            return ALONE, {}
        running: dict[str, tuple[RunningJob, ...]] = {}
        notes: tuple[str, ...] = ()
        for cluster in self.clusters:
            jobs = self.running.get(cluster.name, ())

            def model(application: str, name: str = cluster.name) -> Predictor | None:
                return self.others.get((application, name))

            running[cluster.name], lines = terms_left(jobs, cluster, model)
            notes += lines
        loads = Loads(stale_after=stale_after)
        whole = {cluster.name: counted(cluster, loads, None)[0] for cluster in self.clusters}
        return Coscheduled(running, problem_size, whole, notes), running


def read_scene(
    application: str,
    clusters: Path,
    *,
    models: Sequence[str] = (),
    database: str | None = None,
    loads: str | None = None,
    at: float | None = None,
    source: Path | None = None,
    forecast: bool = False,
) -> Scene:
    """Read described clusters with their loads, recorded or live, and the predictors of an application.

    Parameters
    ----------
    application : whose jobs are placed.
    clusters : file that describes the clusters.
    models : files, each ``FILE`` or ``CLUSTER=FILE``; empty for the models of the store.
    database : of the store; None for the usual one.
    loads : a file of recorded loads, or ``store``; None for live loads where sources of them are named.
    at : time of the recorded loads (s); None for the last.
    source : file that names sources of live loads, besides those of the description.
    forecast : whether the recorded loads before that time are wanted, too, to forecast from.

    Raises
    ------
    InputError : when a file cannot be read or lacks a model, with the option of the command line that gives one.
    """
    from metasched.client.live_loads import with_live_loads
    from metasched.store.files.descriptions import read_description
    from metasched.store.files.sources import read_sources

    description = read_description(clusters)
    states, recorded = description.clusters, None
    warnings: tuple[str, ...] = ()
    if loads is not None:
        if source is not None:
            raise InputError("both --loads and --source are given, expected one of them")
        states, recorded = _loaded(states, loads, at, database, forecast=forecast)
    elif at is not None:
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
        own = _from_store(application, names, database)
        for name in sorted(running - {application}):
            with suppress(InputError):
                found = _from_store(name, names, database)
                others |= {(name, cluster): predictor for cluster, predictor in found.items()}
    others |= {(application, cluster): predictor for cluster, predictor in own.items()}
    constraints = description.constraints.get(application, Constraints())
    return Scene(states, constraints, own, description.running, recorded, others, warnings)


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
    from metasched.placement.explaining.answer import answer_document

    answer = answer_document(
        application, scene.clusters, scene.predictors, question, settings,
        any_threads=any_threads, frequencies=frequencies,
    )  # fmt: skip
    warnings = [*scene.warnings, *answer.get("warnings", ())]
    return answer | ({"warnings": warnings} if warnings or "warnings" in answer else {})


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
    states: Sequence[ClusterState], source: str, at: float | None, database: str | None, *, forecast: bool
) -> tuple[tuple[ClusterState, ...], RecordedLoads | None]:
    """The clusters with the loads of a time, and the loads before it where they are forecast."""
    from metasched.store.database.store import Store
    from metasched.store.files.loads import read_loads

    loads: StoredLoads | None
    if source == "store":
        with Store.open(database, new=False) as store:
            now = time.time() if at is None else at
            last = store.loads.newest(since=now - REMEMBERED, until=math.nextafter(now, math.inf))
            loads = _before(store.loads, now) if forecast else None
    else:
        loads = read_loads(source)
        now = float(loads.time.max(initial=0.0)) if at is None else at
        last = loads.newest(now)
    loaded = tuple(with_loads(state, last, now) for state in states)
    if loads is None or not forecast:
        return loaded, None
    times, cpu, bandwidth = loads.grid()
    return loaded, RecordedLoads(times, loads.nodes, cpu, bandwidth, now)


def _before(records: LoadRecords, now: float) -> StoredLoads:
    """The loads up to a time (s) as far back as forecasts look, of a day at most."""
    span = READ_FIRST
    while True:
        loads = records.all(since=now - span, until=math.nextafter(now, math.inf))
        steps = len(loads.grid()[0])
        if steps > HISTORY or span >= REMEMBERED:
            return loads
        # At the pace of the samples read they would reach back a fifth further than is needed.
        span = min(max(2.0, 1.2 * HISTORY / max(steps, 1)) * span, REMEMBERED)
