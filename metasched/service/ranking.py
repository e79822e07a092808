"""Answers how the partitions rank for an application, as ``metasched rank`` does, from what placements look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metasched.placement.answers import infeasible_document, ranking_document
from metasched.placement.coscheduled import Coscheduled
from metasched.placement.names import unfold
from metasched.placement.objective import Objective
from metasched.placement.partition import Partition
from metasched.placement.question import InfeasibleError, Question
from metasched.placement.ranker import rank
from metasched.placement.whatif import drained
from metasched.records import InputError
from metasched.service.board import View
from metasched.service.messages import RankIn
from metasched.service.models import Models
from metasched.service.placing import EFFORT, Placer, usable_for


def ranked(asked: RankIn, view: View, models: Models, placer: Placer, now: float) -> dict[str, Any]:
    """A ranking as a JSON document; nothing is noted, and no nodes are taken for used.

    Parameters
    ----------
    asked : the question.
    view : partitions, loads and running jobs.
    models : predictors.
    placer : knows what was placed just now, the loads to come, and what applications demand.
    now : the time (s).

    Raises
    ------
    InputError
        When the question contradicts itself, or names what is not known here.
    """
    usable = usable_for(view, asked)
    if not usable:
        raise InputError("no partition known here that the job may use")
    usable = _drained(usable, asked.drain)
    names = [each.state.name for each in usable]
    for name in asked.clusters:
        if name not in names:
            raise InputError(f"no cluster {name}, expected one of {', '.join(names)}")
    known = {
        each.state.name: predictor
        for each in usable
        if (predictor := models.predictor(asked.application, each.platform)) is not None
    }
    if not known:
        learned = sorted({application for application, _ in models.all()})
        raise InputError(f"no model of {asked.application} yet, of these there are: {', '.join(learned) or 'none'}")
    running, notes = placer.running(usable)
    constraints = placer.constraints(asked)
    if asked.clusters:
        constraints = replace(constraints, clusters=frozenset(asked.clusters))
    shaded = [placer.shaded(each.state, now) for each in usable]
    question = Question(
        asked.problem_size,
        constraints,
        Objective(**({"time": 0.0} | asked.weights if asked.weights else {}), saving=asked.saving),
        Coscheduled(running, known, asked.problem_size, {state.name: state for state in shaded}, notes, EFFORT),
        top=asked.top,
        level=asked.level,
        pareto=asked.pareto,
        tolerance=asked.near_tie,
        rotation=asked.rotate,
        stale_after=asked.stale_after,
        forecast=(lambda state, seconds: placer.expected(state, seconds, now)) if asked.forecast else None,
    )
    states = [each.state for each in usable] if asked.forecast else shaded
    try:
        ranking = rank(states, known, question)
    except InfeasibleError as error:
        return infeasible_document(asked.application, asked.problem_size, str(error))
    return ranking_document(asked.application, asked.problem_size, ranking)


def _drained(partitions: Sequence[Partition], nodes: str) -> list[Partition]:
    gone = frozenset(unfold(nodes, where="drain") if nodes else ())
    states = drained([each.state for each in partitions], gone)
    return [replace(each, state=state) for each, state in zip(partitions, states, strict=True)]
