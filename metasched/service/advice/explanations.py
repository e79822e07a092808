"""Explains a placement, with the model and the loads of the time when it was made, as far as they are stored."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from metasched.advised_placements import AdvisedPlacement
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.explaining.breakdown import explained
from metasched.placement.explaining.documents import PlacementTable, explanation_document
from metasched.placement.loads.staleness import STALE_AFTER, with_loads
from metasched.predictors.abilities import under, understood
from metasched.predictors.contract import Predictor
from metasched.records import InputError
from metasched.service.schemas import ExplainIn
from metasched.service.state.live_clusters import View
from metasched.service.state.models import Models
from metasched.store import documents
from metasched.store.database.store import Store

#: Largest number of nodes whose past loads are read; for more, present loads are shown.
MOST_NODES = 1024


def explain_answer(asked: ExplainIn, view: View, models: Models) -> dict[str, Any]:
    """The explanation of one placement of a ranking, with the present models and loads.

    Raises
    ------
    InputError
        When it is on a cluster, a node or by a model that is not known here.
    """
    partition = _partition(asked.placement.cluster, view)
    predictor = models.predictor(asked.application, partition.platform)
    if predictor is None:
        raise InputError(f"no model of {asked.application} on {partition.platform}")
    predictor = under(predictor, asked.placement.record().resource_set.settings(asked.settings))
    return _document(asked.problem_size, asked.placement, predictor, partition.state)


def explain_advice(advice: AdvisedPlacement, view: View, models: Models, store: Store) -> dict[str, Any]:
    """The explanation of an advised placement, with the model and the loads of that time.

    Of the versions saved about then and the model of now that one is taken whose prediction is nearest to what was
    answered; where none agrees, what was learned since is a part of its own.

    Raises
    ------
    InputError
        When nothing was placed, or its cluster or model is not known here any more.
    """
    if advice.answer.placement is None:
        raise InputError(f"no placement was made: {advice.answer.message}")
    placement = PlacementTable.model_validate(advice.answer.placement.as_dict())
    partition = _partition(placement.cluster, view)
    size = advice.question.problem_size
    predictor = _model_then(advice, placement, size, partition.platform, models, store)
    document = _document(size, placement, predictor, _loads_then(partition, placement, advice.made_at, view, store))
    return {"id": advice.uid, "application": advice.application, "problem_size": size} | document


def _document(size: float, placement: PlacementTable, predictor: Predictor, state: ClusterState) -> dict[str, Any]:
    return explanation_document(explained(placement.record(), predictor, size, state), placement.costs)


def _partition(name: str, view: View) -> Partition:
    found = view.named(name)
    if found is None:
        raise InputError(f"cluster {name} of the placement is not known here")
    return found


def _model_then(
    advice: AdvisedPlacement, placement: PlacementTable, size: float, platform: str, models: Models, store: Store
) -> Predictor:
    now = models.predictor(advice.application, platform, advice.question.user)
    able: list[Predictor] = [] if now is None else [now]
    for document in store.models.documents_around(advice.application, platform, advice.made_at):
        able.append(documents.parse(json.dumps(document), where=f"{advice.application} on {platform}"))
    if not able:
        raise InputError(f"no model of {advice.application} on {platform}")

    settings = placement.record().resource_set.settings(advice.question.settings)
    # An old model may not know later parameters.
    able = [under(predictor, understood(settings, [predictor])[0]) for predictor in able]

    def off(predictor: Predictor) -> float:
        found = predictor.predict_many(
            size, placement.processors, placement.available_cpu, placement.available_bandwidth
        )
        return abs(float(found.execution_time[0]) - placement.execution_time)

    return min(able, key=off)


def _loads_then(
    partition: Partition, placement: PlacementTable, made_at: float, view: View, store: Store
) -> ClusterState:
    """The cluster with the loads of the placement's nodes when it was made; present loads if none are stored."""
    nodes = placement.nodes[:MOST_NODES]
    node_of = dict(zip(view.names.of(partition.scheduler, tuple(nodes)), nodes, strict=True))
    kept = store.loads.of(tuple(node_of), since=made_at - STALE_AFTER, until=made_at)
    return with_loads(partition.state, (replace(each, node=node_of[each.node]) for each in kept.newest()), made_at)
