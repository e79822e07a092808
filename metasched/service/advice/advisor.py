"""Chooses where a job should run, from memory alone: it neither asks a scheduler nor learns.

A question becomes an answer in five steps: constraints and usable partitions, the loads that count, the ranking (the
fast path where it can be, else the ranker), and the answer in words.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from metasched.advised_placements import Answer, Ask, Demands
from metasched.placement.clusters.constraints import NO_DEMANDS, Constraints
from metasched.placement.clusters.energy import tells_energy
from metasched.placement.clusters.partition import Holder, Partition
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import FIRST_HORIZON, Expected, Loads, counted
from metasched.placement.ranking.co_scheduling import Coscheduled
from metasched.placement.ranking.fast_path import quickest
from metasched.placement.ranking.layouts import layouts
from metasched.placement.ranking.near_ties import Reach, near_ties
from metasched.placement.ranking.objective import EARLIEST, Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.plain_numbers import span
from metasched.predictors.abilities import all_under, clocks_of, under, understood
from metasched.predictors.contract import Predictor
from metasched.records import Placement
from metasched.service.advice.answers import answer, holder_of, nothing
from metasched.service.advice.fronts import FrontCache, rotation_of
from metasched.service.advice.recent import RecentPlacements
from metasched.service.advice.usual_memory import with_usual_memory
from metasched.service.configuration import Configuration
from metasched.service.state.live_clusters import LiveClusters, View
from metasched.service.state.load_forecasts import LoadForecaster
from metasched.service.state.models import Models
from metasched.service.state.running_jobs import RunningJobs

#: An application, its size to the nearest half power of two, and the most processors: such jobs take about as long.
_Alike = tuple[str, int, int | None]
#: Largest number of these whose last completion is cached.
MOST_COMPLETIONS = 10_000
#: Upper over lower end of an interval from which on its prediction says too little to place a job by.
VAGUE = 1000.0
#: Limit of operations for contention in one answer, some hundredths of a second.
EFFORT = 1e7


class Placer:
    """Answers questions for placements.

    Parameters
    ----------
    configuration : mode, levels, and how jobs are steered.
    board : partitions and loads.
    models : predictors.
    forecaster : of the loads.

    Attributes
    ----------
    demands : what the applications demand by the description of the clusters, where a question says nothing else.
    """

    def __init__(
        self,
        configuration: Configuration,
        board: LiveClusters,
        models: Models,
        forecaster: LoadForecaster,
    ) -> None:
        self._configuration = configuration
        self._board = board
        self._models = models
        self.demands: Mapping[str, Constraints] = {}
        self._sharing = RunningJobs(board, models)
        self._forecaster = forecaster
        self._recent = RecentPlacements()
        self._fronts = FrontCache()
        self._completions: dict[_Alike, float] = {}

    def configure(self, configuration: Configuration) -> None:
        """Use another configuration from the next question on."""
        self._configuration = configuration

    def prepare(self, view: View) -> None:
        """Compute what questions will need of a view that is about to be put up."""
        loads = self.loads(view.made_at)
        self._fronts.prepare(view, self._forecaster.forecasts, replace(loads, recent=()), bool(loads.recent))

    def answer(self, ask: Ask, now: float) -> Answer:
        """The best placement, or why there is none. It never raises an exception for a valid question.

        Raises
        ------
        InputError
            When the question contradicts itself.
        """
        uid, configuration = secrets.token_hex(16), self._configuration
        view = self._board.view
        usable = usable_for(view, ask)
        if not usable:
            return nothing(uid, "no known partition admits the job", configuration)
        holder = holder_of(ask)
        usable, constraints = _within(self.constraints(ask), usable, holder, ask.threads)
        if not usable:
            why = "no partition admits the job, or it requests more processors than its QOS or its account allows"
            return nothing(uid, why, configuration)
        constraints = with_usual_memory(constraints, usable)
        known = self._models.on(ask.application, usable, user=ask.user)
        known = {name: each for name, each in known.items() if name in constraints.clusters} or known
        if not known:
            return nothing(uid, f"no model of {ask.application} yet", configuration)
        # A parameter that is misspelt, or not learned yet, must not make the placement fail.
        every, stated = known, ask
        known, settings, refused = all_under(every, stated.settings)
        if refused:
            ask = stated.model_copy(update={"parameters": dict(settings.parameters)})
        self._recent.forget(view, self._board.seen_at, now)
        able = [each for each in usable if each.state.name in known]
        try:
            best, clusters, warnings = self._best(ask, able, known, constraints, view, uid, now)
            there, unknown = understood(stated.settings, [every[best.resource_set.cluster]])
            if there != settings:
                # Partitions are compared by what all of them know; of those that know as much, it counts in full.
                alike = [each for each in able if understood(stated.settings, [every[each.state.name]])[0] == there]
                known = {each.state.name: under(every[each.state.name], there) for each in alike}
                able, ask = alike, stated.model_copy(update={"parameters": dict(there.parameters)})
                best, clusters, warnings = self._best(ask, able, known, constraints, view, uid, now)
                left_out = (why for why in refused if why not in unknown)
                warnings += tuple(f"the other partitions are compared without it: {why}" for why in left_out)
                refused = unknown
        except InfeasibleError as error:
            return nothing(uid, str(error), configuration)
        interval = best.prediction.interval
        if not math.isfinite(best.slowdown * interval.high):
            return nothing(uid, "the predicted time is not a finite number", configuration)
        if interval.high > VAGUE * interval.low:
            low, high = (span(best.slowdown * end) for end in (interval.low, interval.high))
            why = f"the model of {ask.application} does not reach to n={ask.problem_size:g}: {low} to {high}"
            return nothing(uid, why, configuration)
        chosen = next(each for each in usable if each.state.name == best.resource_set.cluster)
        if not chosen.limits(holder).admit(len(best.resource_set.nodes)):
            why = "the best placement has not as many nodes as the partition, the QOS and the account of the job allow"
            return nothing(uid, why, configuration)
        name = chosen.state.name
        others = [each for each in able if each.scheduler == chosen.scheduler and each is not chosen]
        ties = self._near_ties(ask, best, chosen, others, known, constraints, view, uid, now, holder)
        settings = best.resource_set.settings(ask.settings)
        laid_out, predictor = constraints.laid_out(clusters[name], settings), under(known[name], settings)
        if configuration.mode == "act" and not ask.trial:
            self._recent.add(best, chosen, laid_out, constraints, view, now)
            self._sharing.remember(uid, best, ask.frequency)
        return answer(uid, ask, best, chosen, laid_out, predictor, warnings, configuration, ties, refused)

    def _near_ties(
        self,
        ask: Ask,
        best: Placement,
        chosen: Partition,
        others: Sequence[Partition],
        known: Mapping[str, Predictor],
        constraints: Constraints,
        view: View,
        uid: str,
        now: float,
        holder: Holder,
    ) -> list[str]:
        """The names of the other partitions that may complete the job first in the same shape, the best first."""
        configured = self._configuration
        if not configured.several_partitions or all(each.name != chosen.scheduler for each in configured.slurm):
            return []
        sets = best.resource_set
        same = constraints.model_copy(update={"processors": (sets.processors,)})
        reaches = {chosen.name: _reach(best)}
        for each in others:
            try:
                found, _, _ = self._best(ask, [each], known, same, view, uid, now)
            except InfeasibleError:
                continue
            shape = found.resource_set
            if (len(shape.nodes), shape.place[1:]) != (len(sets.nodes), sets.place[1:]):
                continue
            if not each.limits(holder).admit(len(shape.nodes)):
                continue
            if max(ask.time_limit or 0.0, found.slowdown * found.prediction.interval.high) <= each.longest(holder):
                reaches[each.name] = _reach(found)
        ties = near_ties(reaches)
        # A partition that completes earlier only in this shape was not the best one for other reasons.
        return [name for name in ties if name != chosen.name] if chosen.name in ties else []

    def running(self, partitions: list[Partition]) -> tuple[dict[str, tuple[RunningJob, ...]], tuple[str, ...]]:
        """The running jobs of the partitions that share nodes, and a warning about those that are not considered."""
        found = {each.state.name: self._sharing.on(each) for each in partitions}
        # Partitions of one scheduler may name the same jobs.
        notes = tuple(dict.fromkeys(line for _, lines in found.values() for line in lines))
        return {name: tuple(jobs) for name, (jobs, _) in found.items() if jobs}, notes

    def loads(
        self, now: float, *, forecast: bool = True, first_horizon: float = FIRST_HORIZON, kept: Expected | None = None
    ) -> Loads:
        """The known loads besides the latest measurements: forecasts, and recently placed jobs.

        Parameters
        ----------
        now : seconds.
        forecast : whether forecasts count.
        first_horizon : the horizon that is tried first (s).
        kept : gives what is expected where that is kept.
        """
        forecasts = self._forecaster.forecasts
        over = forecasts.over if forecast and forecasts.of else None
        return Loads(over, self._recent.now(), now, first_horizon=first_horizon, kept=kept)

    def _best(
        self,
        ask: Ask,
        able: list[Partition],
        known: Mapping[str, Predictor],
        constraints: Constraints,
        view: View,
        uid: str,
        now: float,
    ) -> tuple[Placement, Mapping[str, ClusterState], tuple[str, ...]]:
        """The best placement, the clusters with the loads that count, and warnings."""
        able = [each for each in able if not constraints.clusters or each.state.name in constraints.clusters] or able
        known = {each.state.name: known[each.state.name] for each in able}
        # The horizon is unknown at first: the last completion of such a job is tried first.
        alike = ask.application, round(2.0 * math.log2(ask.problem_size)), constraints.most
        forecasts = self._forecaster.forecasts
        loads = self.loads(
            now,
            first_horizon=self._completions.get(alike, FIRST_HORIZON),
            kept=lambda cluster, horizon: self._fronts.expected(view, forecasts, loads, cluster, horizon),
        )
        running, notes = self.running(able)
        states = [each.state for each in able]
        chosen = self._configuration.energy
        metered = all(tells_energy(each, known[each.name]) for each in states)
        # Under a cap what jobs really draw counts: at clocks that nobody sets it would be exceeded.
        set_at_all = chosen.set_frequency or chosen.power_cap is None
        clocked = set_at_all and not ask.own_clock and all(map(clocks_of, known.values()))
        question = Question(
            ask.problem_size,
            constraints,
            Objective(time=0.0, energy=1.0) if metered and chosen.policy == "min-energy" else EARLIEST,
            top=2,
            level=self._configuration.level,
            loads=loads,
            scope="top",
            settings=layouts(
                states, known, ask.settings, constraints, frequencies=chosen.frequencies if clocked else ()
            ),
            max_slowdown=chosen.max_slowdown if metered else None,
            power_cap=chosen.power_cap if metered else None,
            rotation=rotation_of(view),
            running=running,
            curve=False,
        )
        if not running:
            found = quickest(
                lambda horizon: self._fronts.fronts(able, question, view, forecasts, horizon), known, question
            )
            if found is not None:
                self._remember(alike, found.placement)
                return found.placement, found.clusters, found.warnings + notes
        # Harm is not needed: it is not in the answer, and no policy has a weight for it.
        contention = self.contention(able, running, known, ask.problem_size, notes, loads, harm=False)
        ranking = rank(states, known, replace(question, contention=contention, rotation=uid))
        self._remember(alike, ranking.placements[0])
        return ranking.placements[0], ranking.clusters, ranking.warnings

    def _remember(self, alike: _Alike, best: Placement) -> None:
        """Note when such a job is completed: the next one's horizon is sought from there."""
        if alike in self._completions or len(self._completions) < MOST_COMPLETIONS:
            self._completions[alike] = best.completion

    def contention(
        self,
        partitions: list[Partition],
        running: Mapping[str, tuple[RunningJob, ...]],
        known: Mapping[str, Predictor],
        problem_size: float,
        notes: tuple[str, ...],
        loads: Loads,
        *,
        harm: bool = True,
    ) -> Coscheduled:
        """The contention with the jobs that run; see :class:`metasched.placement.ranking.co_scheduling.Coscheduled`."""
        whole = {each.state.name: counted(each.state, loads, None)[0] for each in partitions}
        return Coscheduled(running, problem_size, whole, notes, EFFORT, harm)

    def constraints(self, asked: Demands) -> Constraints:
        """The constraints: of the application's description, unless the question has others.

        Raises
        ------
        InputError
            When the demands contradict themselves.
        """
        return asked.constraints(self.demands.get(asked.application, NO_DEMANDS))


def _reach(placement: Placement) -> Reach:
    """When a placement may be completed (s)."""
    interval = placement.prediction.interval
    low, high = (placement.queue_wait + placement.slowdown * end for end in (interval.low, interval.high))
    return Reach(placement.completion, low, high)


def _within(
    constraints: Constraints, partitions: list[Partition], holder: Holder, threads: int
) -> tuple[list[Partition], Constraints]:
    """The partitions whose limits admit a user's job of such processes, and the constraints within all these limits."""
    # The least number that is allowed at all.
    least = min((each for each in constraints.processors if each >= constraints.min_processors),
                default=constraints.min_processors)  # fmt: skip
    most = {each.state.name: each.limits(holder).processors for each in partitions}
    open_to = [each for each in partitions if (limit := most[each.state.name]) is None or limit // threads >= least]
    limits = [limit // threads for each in open_to if (limit := most[each.state.name]) is not None]
    if not limits or (constraints.max_processors is not None and constraints.max_processors <= min(limits)):
        return open_to, constraints
    return open_to, constraints.model_copy(update={"max_processors": min(limits)})


def usable_for(view: View, ask: Demands) -> list[Partition]:
    """The partitions that a question names, or all if it names none, of those that limit no memory of such a job."""
    return [
        each
        for each in view.partitions
        if (not ask.scheduler or each.scheduler == ask.scheduler)
        and (not ask.partitions or each.name in ask.partitions)
        and each.memory_limits.admit(ask)
    ]
