"""Answers where a job should run, from memory alone: no scheduler is asked and nothing is searched or learned here."""

from __future__ import annotations

import math
import uuid
from collections import deque

from metasched.placement.cluster import ClusterState
from metasched.placement.constraints import Constraints
from metasched.placement.names import fold, unfold
from metasched.placement.partition import Partition
from metasched.placement.question import InfeasibleError, Question
from metasched.placement.ranker import rank
from metasched.placement.shadow import Placed, shaded
from metasched.predictors.contract import Predictor
from metasched.records import Placement, Request
from metasched.service.board import Board, View
from metasched.service.configuration import Configuration
from metasched.service.messages import Answer, Ask
from metasched.service.models import Models

#: Jobs just placed that are remembered, and for how long after its scheduler was last asked one stays in mind (s):
#: it needs a moment from the answer to its allocation.
MOST_PLACED, ALLOCATED_WITHIN = 10_000, 2.0


class Placer:
    """Answers questions for placements.

    Parameters
    ----------
    configuration : mode, levels, and how jobs are steered.
    board : partitions and loads.
    models : predictors.
    """

    def __init__(self, configuration: Configuration, board: Board, models: Models) -> None:
        self._configuration = configuration
        self._board = board
        self._models = models
        self._placed: deque[Placed] = deque(maxlen=MOST_PLACED)

    def answer(self, ask: Ask, now: float) -> Answer:
        """The best placement, or why there is none. Never raises for a question that is sound by itself.

        Raises
        ------
        InputError
            When the question contradicts itself.
        """
        uid = uuid.uuid4().hex
        constraints = _constraints(ask)
        view = self._board.view
        usable = _usable(view, ask)
        if not usable:
            return self._nothing(uid, "no partition known here that the job may use")
        known = {
            each.state.name: predictor
            for each in usable
            if (predictor := self._models.predictor(ask.application, each.platform)) is not None
        }
        if not known:
            return self._nothing(uid, f"no model of {ask.application} yet")
        self._forget(now)
        states = [self._shaded(each.state, now) for each in usable if each.state.name in known]
        question = Question(ask.problem_size, constraints, top=1, level=self._configuration.level, rotation=f"{uid}")
        try:
            best = rank(states, known, question).placements[0]
        except InfeasibleError as error:
            return self._nothing(uid, str(error))
        chosen = next(each for each in usable if each.state.name == best.resource_set.cluster)
        if self._configuration.mode == "act" and not ask.trial:
            self._placed.append(_placed(best, chosen.state, now))
        return self._told(uid, ask, best, chosen, known[chosen.state.name])

    def _nothing(self, uid: str, why: str) -> Answer:
        mode, steer = self._configuration.mode, self._configuration.steer
        return Answer(id=uid, mode=mode, steer=steer, placed=False, message=why)

    def _told(self, uid: str, ask: Ask, best: Placement, chosen: Partition, predictor: Predictor) -> Answer:
        sets, time = best.resource_set, best.prediction.execution_time
        limit = self._time_limit(ask, best, chosen, predictor)
        interval = best.prediction.interval
        return Answer(
            id=uid,
            mode=self._configuration.mode,
            steer=self._configuration.steer,
            placed=True,
            message=f"{ask.application} n={ask.problem_size:g} on {sets.processors} processors of "
            f"{chosen.name or chosen.state.name} ({fold(sets.nodes)}): {_seconds(time)} expected, "
            f"{_seconds(interval.low)} to {_seconds(interval.high)} at {interval.level:.0%}",
            scheduler=chosen.scheduler,
            partition=chosen.name,
            nodes=fold(sets.nodes),
            node_count=len(sets.nodes),
            processors=sets.processors,
            prefer=_common_feature(chosen.state, sets.nodes),
            time_limit=limit,
            placement=best.as_dict(),
        )

    def _time_limit(self, ask: Ask, best: Placement, chosen: Partition, predictor: Predictor) -> float:
        """A limit that the run should hardly reach: the interval's upper end, never above what holds already."""
        sets = best.resource_set
        request = Request(ask.problem_size, sets.processors, min(1.0, sets.available_cpu), sets.available_bandwidth)
        high = predictor.predict(request, self._configuration.time_limit_level).interval.high
        wanted = 60.0 * math.ceil(best.slowdown * high * self._configuration.time_limit_margin / 60.0)
        return min(limit for limit in (wanted, ask.time_limit, chosen.time_limit) if limit is not None)

    def _shaded(self, state: ClusterState, now: float) -> ClusterState:
        return shaded(state, self._placed, now) if self._placed else state

    def _forget(self, now: float) -> None:
        """Forget jobs that a scheduler's own account holds by now, and those that should be over."""
        seen = max(self._board.seen_at.values(), default=0.0) - ALLOCATED_WITHIN
        while self._placed and self._placed[0].start < seen:
            self._placed.popleft()


def _constraints(ask: Ask) -> Constraints:
    return Constraints(
        processors=tuple(ask.processors),
        min_processors=ask.min_processors,
        max_processors=ask.max_processors,
        per_node=ask.per_node,
        memory=ask.memory,
        features=frozenset(ask.features),
        exclusive=ask.exclusive,
        exclude=frozenset(unfold(ask.exclude, where="exclude") if ask.exclude else ()),
    )


def _usable(view: View, ask: Ask) -> list[Partition]:
    return [
        each
        for each in view.partitions
        if (not ask.scheduler or each.scheduler == ask.scheduler)
        and (not ask.partitions or each.name in ask.partitions)
    ]


def _placed(best: Placement, state: ClusterState, now: float) -> Placed:
    """The shadow of a placement: its processors spread over its nodes as far as each has some free."""
    sets = best.resource_set
    free = dict(zip(state.nodes, state.processors.tolist(), strict=True))
    left, taken = sets.processors, []
    for position, node in enumerate(sets.nodes):
        others = len(sets.nodes) - position - 1
        taken.append(max(1, min(free[node], left - others)))
        left -= taken[-1]
    return Placed(sets.cluster, sets.nodes, tuple(taken), now, best.completion)


def _common_feature(state: ClusterState, nodes: tuple[str, ...]) -> str:
    """The feature that all these nodes have and the fewest others, empty where there is none."""
    has = dict(zip(state.nodes, state.features, strict=True))
    common = frozenset.intersection(*(has[node] for node in nodes))
    return min(common, key=lambda feature: (sum(feature in each for each in state.features), feature), default="")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
