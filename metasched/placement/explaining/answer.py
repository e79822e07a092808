"""The answer to a question about clusters, for the best layout on their nodes, as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from metasched.placement.clusters.state import ClusterState
from metasched.placement.explaining.documents import infeasible_document, ranking_document
from metasched.placement.ranking.layouts import layouts
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.abilities import all_under, usual_clock
from metasched.predictors.contract import Predictor
from metasched.records import Settings


def answer_document(
    application: str,
    clusters: Sequence[ClusterState],
    predictors: Mapping[str, Predictor],
    question: Question,
    settings: Settings,
    *,
    any_threads: bool = False,
    frequencies: Sequence[float] = (),
) -> dict[str, Any]:
    """The document that answers a question, for the best layout on nodes that the settings leave.

    Parameters
    ----------
    application : its name.
    clusters, predictors, question : as :func:`metasched.placement.ranking.ranker.rank` has them; the settings of the
        question are replaced.
    settings, any_threads, frequencies : as :func:`metasched.placement.ranking.layouts.layouts` has them; a parameter
        that one of the predictors refuses does not count, and the document warns of it.

    Raises
    ------
    InputError : when the question asks for what the models do not know.
    """
    predictors, settings, refused = all_under(predictors, settings)
    try:
        chosen = layouts(
            clusters, predictors, settings, question.constraints, any_threads=any_threads, frequencies=frequencies
        )
        ranking = rank(clusters, predictors, replace(question, settings=chosen))
    except InfeasibleError as error:
        return infeasible_document(application, question.problem_size, error)
    clocks = () if settings.frequency or frequencies else _usual_clocks(predictors)
    ranking = replace(ranking, warnings=(*refused, *clocks, *ranking.warnings))
    return ranking_document(application, question.problem_size, ranking, settings)


def _usual_clocks(predictors: Mapping[str, Predictor]) -> tuple[str, ...]:
    """The clocks that a ranking is for where none is requested and models have learned several, in words."""
    usual = {cluster: usual_clock(predictor) for cluster, predictor in predictors.items()}
    return tuple(
        f"no clock is requested: times on {cluster} are those at {clock:g} MHz, the usual clock of its runs"
        for cluster, clock in usual.items()
        if clock is not None
    )
