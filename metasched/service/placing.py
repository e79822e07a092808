"""Answers where a job should run, from memory alone: no scheduler is asked and nothing is searched or learned here."""

from __future__ import annotations

import math
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from metasched.placement.cluster import ClusterState
from metasched.placement.constraints import Constraints
from metasched.placement.coscheduled import Coscheduled
from metasched.placement.freshness import tempered
from metasched.placement.fronts import Fronts
from metasched.placement.names import fold, unfold
from metasched.placement.order import shuffled
from metasched.placement.partition import Partition
from metasched.placement.question import InfeasibleError, Question
from metasched.placement.quick import Quickest, quickest
from metasched.placement.ranker import rank
from metasched.placement.running import RunningJob
from metasched.placement.shadow import Placed, shaded
from metasched.predictors.contract import Predictor
from metasched.records import Placement, Request
from metasched.service.ahead import LADDER, Ahead, Forecasts, rung
from metasched.service.board import Board, View
from metasched.service.configuration import Configuration
from metasched.service.messages import Answer, Ask, Demands
from metasched.service.models import Models
from metasched.service.sharing import Sharing

#: Jobs just placed that are remembered, and for how long after its scheduler was last asked one stays in mind (s):
#: it needs a moment from the answer to its allocation.
MOST_PLACED, ALLOCATED_WITHIN = 10_000, 2.0
#: Fronts kept at most while a view is up.
MOST_KEPT = 200
#: Applications and sizes whose last horizon is remembered at most.
MOST_RUNGS = 10_000
#: Numbers that an answer may compute for contention, some hundredths of a second.
EFFORT = 1e7
#: What a question may demand in the words of :class:`Constraints`.
_DEMANDED = (
    "processors", "min_processors", "max_processors", "per_node", "memory", "features", "exclusive"
)  # fmt: skip
#: Slowdowns by jobs already there from which on they are told.
WORTH_TELLING = 1.01


class Placer:
    """Answers questions for placements.

    Parameters
    ----------
    configuration : mode, levels, and how jobs are steered.
    board : partitions and loads.
    models : predictors.
    ahead : forecasts of the loads; those measured now where None.

    Attributes
    ----------
    demands : what the applications demand by the description of the clusters, where a question says nothing else.
    """

    def __init__(self, configuration: Configuration, board: Board, models: Models, ahead: Ahead | None = None) -> None:
        self._configuration = configuration
        self._board = board
        self._models = models
        self.demands: Mapping[str, Constraints] = {}
        self._sharing = Sharing(board, models)
        self._placed: deque[Placed] = deque(maxlen=MOST_PLACED)
        self._forgotten_in: View | None = None
        self._ahead = ahead or Ahead()
        self._kept_of: tuple[View, Forecasts] | None = None
        self._kept: dict[tuple[str, Constraints, int], Fronts] = {}
        self._rungs: dict[tuple[str, int], int] = {}

    def configure(self, configuration: Configuration) -> None:
        """Answer by another configuration from the next question on."""
        self._configuration = configuration

    def answer(self, ask: Ask, now: float) -> Answer:
        """The best placement, or why there is none. Never raises for a question that is sound by itself.

        Raises
        ------
        InputError
            When the question contradicts itself.
        """
        uid = uuid.uuid4().hex
        constraints = self.constraints(ask)
        view = self._board.view
        usable = usable_for(view, ask)
        if not usable:
            return self._nothing(uid, "no partition known here that the job may use")
        known = {
            each.state.name: predictor
            for each in usable
            if (predictor := self._models.predictor(ask.application, each.platform)) is not None
        }
        if not known:
            return self._nothing(uid, f"no model of {ask.application} yet")
        self._forget(view, now)
        level = self._configuration.level
        able = [each for each in usable if each.state.name in known]
        running, notes = self.running(able)
        quick = self._quick(ask, view, able, known, constraints, now) if not running else None
        if quick is not None:
            best, warnings = quick.placement, quick.warnings + notes
        else:
            whole = {each.state.name: self.shaded(each.state, now) for each in able}
            question = Question(
                ask.problem_size,
                constraints,
                contention=Coscheduled(running, known, ask.problem_size, whole, notes, EFFORT),
                top=2,
                level=level,
                rotation=f"{uid}",
                forecast=lambda state, seconds: self.expected(state, seconds, now),
            )
            try:
                ranking = rank([each.state for each in able], known, question)
            except InfeasibleError as error:
                return self._nothing(uid, str(error))
            best, warnings = ranking.placements[0], ranking.warnings
        if not math.isfinite(best.slowdown * best.prediction.interval.high):
            return self._nothing(uid, "what is predicted is beyond all numbers")
        chosen = next(each for each in usable if each.state.name == best.resource_set.cluster)
        if self._configuration.mode == "act" and not ask.trial:
            self._placed.append(_placed(best, chosen.state, now))
        return self._told(uid, ask, best, chosen, known[chosen.state.name], warnings)

    def running(self, partitions: list[Partition]) -> tuple[dict[str, tuple[RunningJob, ...]], tuple[str, ...]]:
        """The jobs that run on the partitions and are taken to share, and what to say of those that are not."""
        told = {each.state.name: self._sharing.on(each) for each in partitions}
        # Partitions of one scheduler may tell of the same jobs.
        notes = tuple(dict.fromkeys(line for _, lines in told.values() for line in lines))
        return {name: tuple(jobs) for name, (jobs, _) in told.items() if jobs}, notes

    def _nothing(self, uid: str, why: str) -> Answer:
        mode, steer = self._configuration.mode, self._configuration.steer
        return Answer(id=uid, mode=mode, steer=steer, placed=False, message=why)

    def _told(
        self, uid: str, ask: Ask, best: Placement, chosen: Partition, predictor: Predictor, warnings: tuple[str, ...]
    ) -> Answer:
        sets, slowdown = best.resource_set, best.slowdown
        shared = f", {slowdown:.2f} times as long as alone" if slowdown >= WORTH_TELLING else ""
        limit = self._time_limit(ask, best, chosen, predictor)
        interval, nodes = best.prediction.interval, fold(sets.nodes)
        return Answer(
            id=uid,
            mode=self._configuration.mode,
            steer=self._configuration.steer,
            placed=True,
            message=f"{ask.application} n={ask.problem_size:g} on {sets.processors} processors of "
            f"{chosen.name or chosen.state.name} ({nodes}): "
            f"{_seconds(slowdown * best.prediction.execution_time)} expected{shared}, "
            f"{_seconds(slowdown * interval.low)} to {_seconds(slowdown * interval.high)} at {interval.level:.0%}",
            scheduler=chosen.scheduler,
            partition=chosen.name,
            nodes=nodes,
            node_count=len(sets.nodes),
            processors=sets.processors,
            prefer=_common_feature(chosen.state, sets.nodes),
            time_limit=limit,
            placement=best.as_dict(),
            warnings=list(warnings),
        )

    def _time_limit(self, ask: Ask, best: Placement, chosen: Partition, predictor: Predictor) -> float | None:
        """A limit that the run should hardly reach: the interval's upper end, never above what holds already."""
        sets = best.resource_set
        request = Request(ask.problem_size, sets.processors, min(1.0, sets.available_cpu), sets.available_bandwidth)
        high = predictor.predict(request, self._configuration.time_limit_level).interval.high
        high *= best.slowdown * self._configuration.time_limit_margin
        wanted = 60.0 * math.ceil(high / 60.0) if math.isfinite(high) else math.inf
        limits = [limit for limit in (wanted, ask.time_limit, chosen.time_limit) if limit is not None]
        return min(limits) if math.isfinite(min(limits)) else None

    def _quick(
        self, ask: Ask, view: View, able: list[Partition], known: dict[str, Predictor], constraints: Constraints,
        now: float,
    ) -> Quickest | None:  # fmt: skip
        """The quick answer with the loads to expect over the time until the job should be complete.

        That time is not known beforehand: the last one of a problem of this size is tried, then the one that came out.
        """
        tried: list[int] = []
        alike = ask.application, round(2.0 * math.log2(ask.problem_size))
        number = self._rungs.get(alike, 0)
        while True:
            fronts = self._fronts(view, able, constraints, number, now)
            found = quickest(fronts, known, ask.problem_size, constraints, self._configuration.level)
            tried.append(number)
            if found is None or not math.isfinite(found.placement.completion) or not self._ahead.forecasts.place:
                return found
            number = rung(found.placement.completion)
            if number in tried:
                break
        if len(self._rungs) < MOST_RUNGS:
            self._rungs[alike] = number
        return found

    def _fronts(
        self, view: View, able: list[Partition], constraints: Constraints, number: int, now: float
    ) -> list[Fronts]:
        """The fronts of some partitions for one horizon: kept while the view is up, unless a job was placed since."""
        forecasts = self._ahead.forecasts
        if self._kept_of is None or self._kept_of[0] is not view or self._kept_of[1] is not forecasts:
            self._kept_of, self._kept = (view, forecasts), {}
        admitted = _admission(constraints)
        fronts = []
        for each in able:
            key = each.state.name, admitted, number
            found = self._kept.get(key) if not self._placed else None
            if found is None:
                # Among equal nodes others come first in each view, so that not all jobs go to the same ones.
                expected = forecasts.over(each.state, LADDER[number])
                state = shuffled(tempered(self.shaded(expected, now)).cluster, f"{view.made_at}")
                found = Fronts(state, constraints)
                if not self._placed and len(self._kept) < MOST_KEPT:
                    self._kept[key] = found
            fronts.append(found)
        return fronts

    def constraints(self, asked: Demands) -> Constraints:
        """What is demanded: by the description of the application, unless the question says otherwise.

        Raises
        ------
        InputError
            When the demands contradict themselves.
        """
        told = {name: getattr(asked, name) for name in _DEMANDED if name in asked.model_fields_set}
        kinds = {"processors": tuple, "features": frozenset}
        found = {name: kinds.get(name, lambda told: told)(value) for name, value in told.items() if value}
        if asked.exclude:
            found["exclude"] = frozenset(unfold(asked.exclude, where="exclude"))
        return replace(self.demands.get(asked.application, Constraints()), **found)

    def expected(self, state: ClusterState, seconds: float, now: float) -> ClusterState:
        """A cluster with the loads to expect over so many seconds, and the jobs placed just now."""
        return self.shaded(self._ahead.forecasts.over(state, seconds), now)

    def shaded(self, state: ClusterState, now: float) -> ClusterState:
        """A cluster with the jobs placed just now, which no measurement shows yet."""
        return shaded(state, tuple(self._placed), now) if self._placed else state  # others may be asking beside

    def _forget(self, view: View, now: float) -> None:
        """Forget jobs that their scheduler's own account holds by now, and those that should be over."""
        if view is self._forgotten_in:
            return
        self._forgotten_in = view
        seen = self._board.seen_at
        source = {each.state.name: each.scheduler for each in view.partitions}
        left = (
            job
            for job in self._placed
            if now < job.start + job.execution_time
            and job.start >= seen.get(source.get(job.cluster, ""), 0.0) - ALLOCATED_WITHIN
        )
        self._placed = deque(left, maxlen=MOST_PLACED)


def _admission(constraints: Constraints) -> Constraints:
    """The constraints as far as they say which nodes may be taken."""
    return replace(constraints, processors=(), min_processors=1, max_processors=None)


def usable_for(view: View, ask: Demands) -> list[Partition]:
    """The partitions that a question names, all where it names none."""
    return [
        each
        for each in view.partitions
        if (not ask.scheduler or each.scheduler == ask.scheduler)
        and (not ask.partitions or each.name in ask.partitions)
    ]


def _placed(best: Placement, state: ClusterState, now: float) -> Placed:
    """The shadow of a placement: its processors spread over its nodes as far as each has some free."""
    sets = best.resource_set
    place = _places(state.nodes)
    left, taken = sets.processors, []
    for position, node in enumerate(sets.nodes):
        others = len(sets.nodes) - position - 1
        taken.append(max(1, min(int(state.processors[place[node]]), left - others)))
        left -= taken[-1]
    return Placed(sets.cluster, sets.nodes, tuple(taken), now, best.completion)


def _common_feature(state: ClusterState, nodes: tuple[str, ...]) -> str:
    """The feature that all these nodes have and the fewest others, empty where there is none."""
    place = _places(state.nodes)
    common = frozenset.intersection(*(state.features[place[node]] for node in nodes))
    if not common:
        return ""
    return min(common, key=lambda feature: (sum(feature in each for each in state.features), feature))


@lru_cache(maxsize=64)
def _places(nodes: tuple[str, ...]) -> dict[str, int]:
    """The number of each node of a cluster, which hardly ever change."""
    return {node: number for number, node in enumerate(nodes)}


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
