"""Ranks the partitions for an application, like ``metasched rank``, with the same loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metasched.placement.clusters.constraints import check_known, unfold_names
from metasched.placement.clusters.partition import Partition
from metasched.placement.explaining.answer import answer_document
from metasched.placement.explaining.documents import infeasible_document
from metasched.placement.explaining.what_if import drained
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.records import InputError
from metasched.service.advice.advisor import Placer, usable_for
from metasched.service.advice.usual_memory import with_usual_memory
from metasched.service.schemas import RankIn
from metasched.service.state.lent_models import WithLent
from metasched.service.state.live_clusters import View
from metasched.service.state.models import Models


def ranked(asked: RankIn, view: View, models: Models | WithLent, placer: Placer, now: float) -> dict[str, Any]:
    """A ranking as a JSON document; it is not recorded, and its nodes do not count as used.

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
        raise InputError("no known partition admits the job")
    usable = _drained(usable, asked.drain)
    if not asked.later:  # a grid asks every site with the same names
        check_known(unfold_names(asked.exclude, "exclude"), [each.state for each in view.partitions])
    names = [each.state.name for each in usable]
    for name in asked.clusters:
        if name not in names:
            raise InputError(f"no cluster {name}, expected one of {', '.join(names)}")
    known = models.on(asked.application, usable)
    if not known:
        learned = sorted({application for application, _ in models.all()})
        others = f"only of: {', '.join(learned)}" if learned else "nor of any other application"
        why = f"no model of {asked.application} yet, {others}"
        if asked.later:  # a grid may lend runs, and asks again
            return infeasible_document(asked.application, asked.problem_size, InfeasibleError(why))
        raise InputError(why)
    running, notes = placer.running(usable)
    loads = replace(placer.loads(now, forecast=asked.forecast), stale_after=asked.stale_after)
    question = Question(
        asked.problem_size,
        with_usual_memory(placer.constraints(asked), usable),
        Objective(**({"time": 0.0} | asked.weights if asked.weights else {}), saving=asked.saving),
        placer.contention(usable, running, known, asked.problem_size, notes, loads),
        top=asked.top,
        level=asked.level,
        pareto=asked.pareto,
        tolerance=asked.near_tie,
        rotation=asked.rotate,
        loads=loads,
        max_slowdown=asked.max_slowdown,
        power_cap=asked.power_cap,
        running=running,
    )
    return answer_document(
        asked.application, [each.state for each in usable], known, question, asked.settings,
        any_threads="threads" not in asked.model_fields_set, frequencies=asked.frequencies,
    )  # fmt: skip


def _drained(partitions: Sequence[Partition], nodes: str) -> list[Partition]:
    states = drained([each.state for each in partitions], unfold_names(nodes, "drain"))
    return [replace(each, state=state) for each, state in zip(partitions, states, strict=True)]
