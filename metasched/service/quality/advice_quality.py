"""How good the advice was, or would have been: placements beside what really happened to their jobs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy

from metasched.advised_placements import AdvisedPlacement, Outcome
from metasched.predictors.energy.metered_runs import MISREAD
from metasched.records import Placement

#: One-sided level of the bounds of the time saved.
SURE = 0.95
#: Finished jobs that are remembered.
MOST_JOBS = 10_000
#: Times (s) and energies (J) count within these, so that no figure overflows: a user may ask for a size of any number.
LEAST, MOST = 1e-9, 1e15


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of the advice over some finished jobs; a number is None where no job tells of it.

    Parameters
    ----------
    jobs : finished jobs that a placement was advised for and that did not fail.
    failed : finished jobs that failed or were killed.
    followed : jobs that ran on the nodes advised, at the clock advised where one was.
    same_partition : jobs that ran in the partition advised, on whichever nodes.
    ppe_mean, ppe_median : percentage prediction error of the advice, over the jobs that followed it (%).
    interval_coverage : share of these whose execution time lay in the interval.
    judged : jobs whose execution time could be predicted with the loads that really came.
    ppe_mean_there : mean error of these predictions (%).
    held, level : share of these whose execution time lay in the prediction's interval, and the share that should.
    elsewhere : jobs judged that ran elsewhere than advised, or at another clock.
    faster : of these, those that would, as predicted, have been faster where advised.
    time_taken : execution time of the jobs elsewhere (s).
    time_as_advised : what they would have taken where advised: the time taken, times predicted there over predicted
        where they ran, so that an error common to both cancels (s).
    saved : share of the time taken that following the advice would have saved; negative where it would have cost.
    saved_low, saved_high : bounds of that share, each passed by chance one time in twenty; None for a single job.
    killed_by_limit : jobs that ran, or where advised would have run, for longer than the time limit suggested.
    metered : jobs elsewhere whose energy is known, as is that of their placement.
    energy_taken, energy_as_advised : what these took, and would have taken where advised (J), as the times are.
    energy_saved, energy_saved_low, energy_saved_high : share of that energy, as of the time.
    """

    jobs: int
    failed: int
    followed: int
    same_partition: int
    ppe_mean: float | None
    ppe_median: float | None
    interval_coverage: float | None
    judged: int
    ppe_mean_there: float | None
    held: float | None
    level: float | None
    elsewhere: int
    faster: int
    time_taken: float
    time_as_advised: float
    saved: float | None
    saved_low: float | None
    saved_high: float | None
    killed_by_limit: int
    metered: int
    energy_taken: float
    energy_as_advised: float
    energy_saved: float | None
    energy_saved_low: float | None
    energy_saved_high: float | None

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, as JSON and the dashboard have them."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Settled:
    """What one finished job tells of the advice that was given for it.

    Parameters
    ----------
    failed : it failed or was killed: it tells nothing more.
    followed : it ran on the nodes advised, on as many processors, at the clock advised where one was.
    actual : its execution time (s).
    advised : what was predicted where advised (s).
    inside : whether the execution time lay in the interval advised.
    there : what was predicted where it ran, with the loads that really came (s); None without a model.
    held : whether the execution time lay in the interval of that prediction.
    level : the share of execution times that such an interval should hold.
    limit : the time limit suggested (s).
    same_partition : it ran in the partition advised.
    application, platform : what ran, and where.
    energy : what it took, as measured, or where no meter that can be believed tells as predicted there (J); None where
        it is not known.
    energy_as_advised : what it would have taken where advised (J); None where it is not known.
    """

    failed: bool
    followed: bool = False
    actual: float = 0.0
    advised: float = 0.0
    inside: bool = False
    there: float | None = None
    held: bool = False
    level: float = 0.9
    limit: float | None = None
    same_partition: bool = False
    application: str = ""
    platform: str = ""
    energy: float | None = None
    energy_as_advised: float | None = None

    @property
    def as_advised(self) -> float:
        """What it took, or where it ran elsewhere would have taken where advised (s)."""
        return self.actual if self.followed or self.there is None else self.actual * self.advised / self.there


def settled(advice: AdvisedPlacement) -> Settled | None:
    """What a placement's finished job tells; None where it has not ended, or nothing was advised or a move."""
    answer, outcome = advice.answer, advice.outcome
    if outcome is None or answer.placement is None or answer.move is not None:
        return None
    of: dict[str, Any] = {"application": advice.application, "platform": outcome.platform}
    if outcome.exit_status != 0:
        return Settled(failed=True, **of)
    chosen, prediction = answer.placement.resource_set, answer.placement.prediction
    actual, there = outcome.execution_time, outcome.predicted
    # A described cluster has no scheduler and no partitions: it is one itself.
    names = answer.partitions or [answer.partition]
    where = [(answer.scheduler, name) for name in names] if answer.partition else [chosen.cluster]
    ran = (outcome.scheduler or answer.scheduler, outcome.partition)
    followed = advice.same_clock and chosen.same_place(outcome.nodes, outcome.processors)
    return Settled(
        failed=False,
        followed=followed,
        actual=_counted(actual),
        advised=_counted(prediction.execution_time),
        inside=prediction.interval.holds(actual),
        there=None if there is None else _counted(there.execution_time),
        held=there is not None and there.interval.holds(actual),
        level=0.9 if there is None else there.interval.level,
        limit=answer.time_limit,
        same_partition=followed or ran in where or outcome.platform in where,
        **_energies(answer.placement, outcome),
        **of,
    )


def _energies(placement: Placement, outcome: Outcome) -> dict[str, Any]:
    """What a job took and would have taken where advised (J); nothing where its model records no energy."""
    advised, there = placement.energy, outcome.predicted_energy
    if advised is None or not there:
        return {}
    there, measured = _counted(there), outcome.energy
    # A meter whose counter jumped would count for more than all other jobs together.
    sound = measured is not None and there / MISREAD <= measured <= there * MISREAD
    took = measured if measured is not None and sound else there
    return {"energy": took, "energy_as_advised": took * _counted(advised) / there}


def _counted(value: float) -> float:
    return min(max(value, LEAST), MOST)


@dataclass(frozen=True, slots=True)
class Report:
    """The quality of the advice over all jobs, and of each application on each platform, most jobs first."""

    overall: Quality
    parts: Mapping[tuple[str, str], Quality]


class Ledger:
    """The last finished jobs that advice was given for, in memory: a question about quality reads no database.

    >>> ledger = Ledger()
    >>> ledger.add(Settled(False, True, actual=10.0, advised=11.0, inside=True, there=10.0, application="cg"))
    >>> ledger.add(Settled(failed=True, application="lu"))
    >>> overall = ledger.report().overall
    >>> overall.jobs, overall.failed, round(overall.ppe_mean, 6)
    (1, 1, 10.0)
    >>> list(ledger.report().parts)
    [('cg', ''), ('lu', '')]
    """

    def __init__(self) -> None:
        self._kept: deque[Settled] = deque(maxlen=MOST_JOBS)
        self._cached: tuple[int, Report] | None = None
        self._added = 0

    def add(self, one: Settled | None) -> None:
        """Remember one more; None is passed over."""
        if one is not None:
            self._kept.append(one)
            self._added += 1

    def report(self) -> Report:
        """The quality of the advice over all that is remembered, as a whole and in parts."""
        added, cached = self._added, self._cached
        if cached is None or cached[0] != added:
            self._cached = cached = added, report(tuple(self._kept))
        return cached[1]


def report(jobs: Iterable[Settled]) -> Report:
    """The quality of the advice over some finished jobs, as a whole and in parts."""
    jobs = tuple(jobs)
    groups: dict[tuple[str, str], list[Settled]] = {}
    for job in jobs:
        groups.setdefault((job.application, job.platform), []).append(job)
    order = sorted(groups, key=lambda key: (-len(groups[key]), key))
    return Report(quality(jobs), MappingProxyType({key: quality(groups[key]) for key in order}))


def quality(jobs: Iterable[Settled]) -> Quality:
    """The quality of the advice over some finished jobs."""
    jobs = tuple(jobs)
    sound = [job for job in jobs if not job.failed]
    followed = [job for job in sound if job.followed]
    judged = [(job, job.there) for job in sound if job.there is not None]
    elsewhere = [(job, there) for job, there in judged if not job.followed]
    errors = [100.0 * abs(job.advised - job.actual) / job.actual for job in followed]
    taken = np.array([job.actual for job, _ in elsewhere])
    as_advised = np.array([job.as_advised for job, _ in elsewhere])
    low, high = _bounds(taken, as_advised)
    metered = [job for job, _ in elsewhere if job.energy is not None]
    energy, energy_as_advised = (
        np.array([each or 0.0 for each in joules], dtype=np.float64)
        for joules in ([job.energy for job in metered], [job.energy_as_advised for job in metered])
    )
    energy_low, energy_high = _bounds(energy, energy_as_advised)
    return Quality(
        jobs=len(sound),
        failed=len(jobs) - len(sound),
        followed=len(followed),
        same_partition=sum(job.same_partition for job in sound),
        ppe_mean=float(np.mean(errors)) if errors else None,
        ppe_median=float(np.median(errors)) if errors else None,
        interval_coverage=float(np.mean([job.inside for job in followed])) if followed else None,
        judged=len(judged),
        ppe_mean_there=_mean([100.0 * abs(there - job.actual) / job.actual for job, there in judged]),
        held=_mean([job.held for job, _ in judged]),
        level=_mean([job.level for job, _ in judged]),
        elsewhere=len(elsewhere),
        faster=sum(job.advised < there for job, there in elsewhere),
        time_taken=float(taken.sum()),
        time_as_advised=float(as_advised.sum()),
        saved=_saved(taken, as_advised),
        saved_low=low,
        saved_high=high,
        killed_by_limit=sum(job.limit is not None and job.as_advised > job.limit for job in sound),
        metered=len(metered),
        energy_taken=float(energy.sum()),
        energy_as_advised=float(energy_as_advised.sum()),
        energy_saved=_saved(energy, energy_as_advised),
        energy_saved_low=energy_low,
        energy_saved_high=energy_high,
    )


def _mean(values: list[Any]) -> float | None:
    return float(np.mean(values)) if values else None


def _saved(taken: np.ndarray, as_advised: np.ndarray) -> float | None:
    """The share saved; None where nothing was taken."""
    return 1.0 - float(as_advised.sum() / taken.sum()) if taken.sum() else None


def _bounds(taken: np.ndarray, as_advised: np.ndarray) -> tuple[float | None, float | None]:
    """Bounds of the share saved: Student's for a ratio of sums (Cochran, Sampling Techniques, 1977, ch. 6)."""
    count = taken.size
    if count < 2 or not taken.sum():
        return None, None
    ratio = as_advised.sum() / taken.sum()
    spread = math.sqrt(count / (count - 1) * float(np.square(as_advised - ratio * taken).sum())) / float(taken.sum())
    reach = float(scipy.special.stdtrit(count - 1, SURE)) * spread
    return float(1.0 - ratio - reach), float(1.0 - ratio + reach)
