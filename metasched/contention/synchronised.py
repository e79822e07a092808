"""How parallel jobs that share processors and links slow each other down while all of them run.

Each job is a class of its own with one customer, which computes on all its processors at once and then communicates
over all its links at once; either stage ends when its slowest part does. Stations share equally. This is approximate
mean value analysis with the sum over stations replaced by the largest of those visited at once: an arriving job finds
each other job in a stage with the probability that it is there while the arriving one is away (the arrival theorem),
and at a station for the part of the stage that it is not yet done there.
Axis order: (candidate, job, station).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.contention.effort import Effort
from metasched.contention.idle import Idle
from metasched.queueing.solution import PrecisionError

_CONVERGED = 1e-7
_ITERATIONS = 500
#: Numbers that could be computed in the time that an iteration takes however small the network is.
_ITERATION = 20_000.0
#: Part of the way to the next iterate that is gone; less than all of it, since presence and delay feed each other.
_STEP = 0.8
#: Jobs up to which each one gets a network of its own without it. Beyond, it finds the others as they are
#: with it there: among that many, one more hardly changes what the others do.
FEW = 8


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the jobs' cycles: their demands on all stations of one kind, which they visit at once.

    Parameters
    ----------
    demands : array of shape (candidates, jobs, stations), seconds at each station alone.
    loads : array of the same shape, shares that a job asks for at each station.
    capacity : array of shape (candidates, stations), shares that a station gives at full speed each: its processors for
        a pool, 0 for a link, which one flow fills.
    """

    demands: Floats
    loads: Floats
    capacity: Floats

    @property
    def alone(self) -> Floats:
        """Seconds that the stage takes each job alone, shape (candidates, jobs)."""
        return np.asarray(self.demands.max(axis=-1, initial=0.0))

    def of(self, active: Flags) -> Stage:
        """The stage of the jobs that are ``active``, an array of shape (candidates, jobs); the others do nothing."""
        there = active[..., None]
        return Stage(np.where(there, self.demands, 0.0), np.where(there, self.loads, 0.0), self.capacity)

    def repeat(self, times: int) -> Stage:
        """Every candidate repeated ``times`` times in a row."""
        return Stage(*(np.repeat(each, times, axis=0) for each in (self.demands, self.loads, self.capacity)))

    def contended(self) -> Stage:
        """The same jobs at those stations only where some can slow others down, and each at one of its own.

        Of the stations where a job meets nobody the slowest says all.
        """
        candidates, jobs, _ = self.demands.shape
        crowded = (np.count_nonzero(self.demands, axis=1) > 1) & (self.loads.sum(axis=1) > self.capacity)
        own = np.where(crowded[:, None], 0.0, self.demands).max(axis=-1, initial=0.0)[..., None] * np.eye(jobs)
        # Crowded stations first; candidates with fewer of them than others keep some more that nobody asks for.
        order = np.argsort(~crowded, axis=1, kind="stable")[:, : int(crowded.sum(axis=1).max(initial=0))]
        here = np.take_along_axis(crowded, order, axis=1)[:, None]
        demands = np.where(here, np.take_along_axis(self.demands, order[:, None], axis=2), 0.0)
        loads = np.where(here, np.take_along_axis(self.loads, order[:, None], axis=2), 0.0)
        return Stage(
            np.concatenate([demands, own], axis=2),
            np.concatenate([loads, (own > 0).astype(float)], axis=2),
            np.concatenate([np.take_along_axis(self.capacity, order, axis=1), np.ones((candidates, jobs))], axis=1),
        )

    def take(self, rows: Ints) -> Stage:
        """The same for the candidates at these positions, shape (k,), in this order."""
        return Stage(self.demands[rows], self.loads[rows], self.capacity[rows])

    def residence(self, presence: Floats, idle: Idle | None = None) -> Floats:
        """Seconds at each station, shape (candidates, jobs, stations).

        Parameters
        ----------
        presence : array of shape (candidates, jobs, jobs, stations), probability that the first job finds the second
            one there; or of shape (candidates, 1, jobs, stations), the same for every first job.
        idle : what is known of idle processors from the loads alone, where that was computed before.
        """
        jobs = self.loads.shape[1]
        others = np.einsum("brsk,bsk->brk", presence, self.loads)
        own = np.arange(jobs)
        others = others - presence[:, own % presence.shape[1], own] * self.loads
        # E[max(capacity, own load + others' load)] = mean + E[(capacity - own - others)+]
        spare = (idle or Idle.of(self.loads, self.capacity)).spare(presence)
        alone = np.maximum(self.capacity[:, None], self.loads)
        mean = self.loads + np.maximum(others, 0.0)
        stretch = np.divide(mean + spare, alone, out=np.ones_like(mean), where=alone > 0)
        return np.asarray(self.demands * np.maximum(stretch, 1.0))


def slowdowns(computing: Stage, sending: Stage, active: Flags, effort: Effort | None = None) -> Floats:
    """The slowdown of each job while all active jobs run.

    Parameters
    ----------
    computing, sending : the two stages of each job's cycle.
    active : array of shape (candidates, jobs), which jobs are there.
    effort : what may be spent; without a limit where None.

    Returns
    -------
    array of shape (candidates, jobs), at least 1; 1 for jobs that are not there.

    Raises
    ------
    PrecisionError : when no equilibrium could be found.
    EffortError : when the effort does not suffice.

    References
    ----------
    The arrival theorem: Reiser and Lavenberg 1980. Fork and join in mean value analysis: Heidelberger and Trivedi,
    Analytic queueing models for programs with internal concurrency, IEEE Trans. Comp. C-32(1), 1983; here every step
    synchronises, as parallel programs do.

    Examples
    --------
    Two jobs that compute half of their time on the same processor find each other there half of the time:

    >>> cpu = Stage(np.array([[[1.0], [1.0]]]), np.ones((1, 2, 1)), np.array([[1.0]]))
    >>> net = Stage(np.eye(2)[None], np.eye(2)[None], np.zeros((1, 2)))
    >>> slowdowns(cpu, net, np.ones((1, 2), dtype=bool))
    array([[1.25, 1.25]])
    """
    candidates, jobs = active.shape
    stages = [computing.of(active).contended(), sending.of(active).contended()]
    if jobs > FEW:
        return _equilibrium(stages, active, None, effort)[1]
    # What a job finds is what the others do without it: for each job the same network with that job taken out.
    without = (active[:, None, :] & ~np.eye(jobs, dtype=bool)).reshape(-1, jobs)
    found, _ = _equilibrium([stage.repeat(jobs).of(without) for stage in stages], without, None, effort)
    return _equilibrium(stages, active, found.reshape(2, candidates, jobs, jobs), effort)[1]


def _equilibrium(
    stages: list[Stage], active: Flags, found: Floats | None, effort: Effort | None
) -> tuple[Floats, Floats]:
    """Solve for the part of its cycle that each job is in each stage, shape (stages, networks, jobs), and slowdowns.

    ``found``, of shape (stages, networks, jobs, jobs), is what each job finds of each other one; where it is not given,
    every job finds the others as they are in this very network.
    """
    alone = np.stack([stage.alone for stage in stages])
    total = alone.sum(axis=0)
    part = _share(alone, total)
    slowdown = np.ones_like(total)
    # Networks that are not solved yet, with all that belongs to them. Where no jobs meet there is nothing to solve.
    left = np.flatnonzero(np.any([_shared(stage) for stage in stages], axis=0))
    stages = [stage.take(left) for stage in stages]
    idle = [Idle.of(stage.loads, stage.capacity) for stage in stages]
    here, total_here = part[:, left], total[left]
    found = None if found is None else found[:, left]
    # Share of a stage for which a job is at each station.
    lasting = [_share(stage.demands, stage.alone[..., None]) for stage in stages]
    for _ in range(_ITERATIONS):
        if not left.size:
            break
        if effort is not None:
            effort.spend(_ITERATION + sum(each.effort(everybody=found is None) for each in idle))
        seen = here[:, :, None, :] if found is None else found
        times = np.empty_like(here)
        change = np.zeros(left.size)
        for index, stage in enumerate(stages):
            residence = stage.residence(seen[index][..., None] * lasting[index][:, None], idle[index])
            times[index] = residence.max(axis=-1, initial=0.0)
            following = _share(residence, times[index][..., None])
            change = np.maximum(change, np.abs(following - lasting[index]).max(axis=(1, 2), initial=0.0))
            lasting[index] += _STEP * (following - lasting[index])
        following = _share(times, times.sum(axis=0))
        change = np.maximum(change, np.abs(following - here).max(axis=(0, 2), initial=0.0))
        here += _STEP * (following - here)
        done = change < _CONVERGED
        if done.any():
            part[:, left[done]] = here[:, done]
            slowdown[left[done]] = np.divide(
                times.sum(axis=0)[done],
                total_here[done],
                out=np.ones((int(done.sum()), total.shape[1])),
                where=total_here[done] > 0,
            )
            kept = np.flatnonzero(~done)
            left, here, total_here = left[kept], here[:, kept], total_here[kept]
            stages, idle = [stage.take(kept) for stage in stages], [each.take(kept) for each in idle]
            lasting = [each[kept] for each in lasting]
            found = None if found is None else found[:, kept]
    if left.size:
        raise PrecisionError(f"the equilibrium of jobs that share was not found in {_ITERATIONS} iterations")
    return part, np.where(active, slowdown, 1.0)


def _shared(stage: Stage) -> Flags:
    """In which networks any station is used by two jobs, shape (networks,)."""
    return np.asarray((np.count_nonzero(stage.demands, axis=1) > 1).any(axis=-1))


def _share(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
