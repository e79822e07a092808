"""The question and the result of a ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.constraints import NO_DEMANDS, Constraints
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads
from metasched.placement.ranking.contention import ALONE, Contention
from metasched.placement.ranking.objective import EARLIEST, Objective
from metasched.placement.search.exact_search import Scope
from metasched.records import InputError, Placement, Settings, check_above_zero, check_level


class InfeasibleError(RuntimeError):
    """No resource set satisfies the constraints; the message says which demand ruled out how many nodes.

    Parameters
    ----------
    why : the message.
    for_now : whether one would, were all nodes up, free and without jobs; otherwise what is asked for never fits.
    """

    def __init__(self, why: str, *, for_now: bool = False) -> None:
        super().__init__(why)
        self.for_now = for_now


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a ranking, without clusters and predictors.

    Parameters
    ----------
    problem_size : N.
    constraints, objective, contention : see there.
    top : how many placements to return.
    scope : how far the search is exact, see :func:`metasched.placement.search.exact_search.search`.
    level : of the prediction intervals.
    pareto : return only placements that no other beats in every weighted term at once; with a saving, the number of
        processors is one.
    tolerance, rotation : see :func:`metasched.placement.ranking.ties.settle_ties`.
    loads : what is known of the loads besides what was measured last, see :mod:`metasched.placement.loads.counted`.
    settings : layouts on nodes and clocks to choose from, see :func:`metasched.placement.ranking.layouts.layouts`;
        where there are none, the predictors answer as they are and a process takes a processor.
    max_slowdown : by what share the completion may be later than the earliest, see
        :mod:`metasched.placement.ranking.slowdown`; any where None.
    power_cap : no cluster may draw more than this, with the job, those that run, and its idle nodes (W).
    running : for each cluster the jobs that run there, whose power counts under the cap.
    curve : whether the curve over the numbers of processors is wanted; it is empty otherwise.
    """

    problem_size: float
    constraints: Constraints = NO_DEMANDS
    objective: Objective = EARLIEST
    contention: Contention = ALONE
    top: int = 10
    scope: Scope = "processors"
    level: float = 0.9
    pareto: bool = False
    tolerance: float = 0.0
    rotation: str | None = None
    loads: Loads = field(default_factory=Loads)
    settings: tuple[Settings, ...] = ()
    max_slowdown: float | None = None
    power_cap: float | None = None
    running: Mapping[str, Sequence[RunningJob]] = field(default_factory=dict)
    curve: bool = True

    def __post_init__(self) -> None:
        if self.max_slowdown is not None and not 0 <= self.max_slowdown <= 1000:
            raise InputError(f"max_slowdown is {self.max_slowdown:g}, expected a number from 0 to 1000")
        if self.power_cap is not None and not 0 < self.power_cap < math.inf:
            raise InputError(f"power_cap is {self.power_cap:g}, expected a finite number of watts above 0")
        check_above_zero("problem_size", self.problem_size)
        if self.top < 1:
            raise InputError(f"top is {self.top}, expected a whole number of at least 1")
        check_level("level", self.level)
        if not 0 <= self.tolerance < 1:
            raise InputError(f"tolerance is {self.tolerance:g}, expected a number in [0, 1)")


@dataclass(frozen=True, slots=True)
class Curve:
    """The best placement for each number of processors, without contention; arrays of shape (p,), ascending.

    Of very many numbers those spread evenly on a logarithmic scale are listed, with the powers of two, the least, the
    largest, the one of the earliest completion, and those of the placements.

    Parameters
    ----------
    processors : P.
    execution_time, low, high : predicted, with its interval (s).
    completion : queue wait plus execution time (s).
    """

    processors: Ints
    execution_time: Floats
    low: Floats
    high: Floats
    completion: Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """Placements, best first, and the size of the comparison.

    Parameters
    ----------
    placements : the best, each the optimum of its (switch, processors).
    costs : for each placement what it costs, term by term.
    curve : the best for each number of processors, over all clusters.
    compared : number of (switch, processors) compared.
    evaluations : number of predictions made.
    gap : the best placement's score is at most this share above the least that any set can have; 0 where it is proven.
    ruled_out : for each cluster and each demand, how many nodes it ruled out.
    clusters : by name, with the loads that the placements count with and the nodes that may be taken.
    warnings : what the user should know.
    """

    placements: tuple[Placement, ...]
    costs: tuple[Mapping[str, float], ...]
    curve: Curve
    compared: int
    evaluations: int
    gap: float
    ruled_out: Mapping[str, Mapping[str, int]]
    clusters: Mapping[str, ClusterState]
    warnings: tuple[str, ...]
