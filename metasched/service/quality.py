"""How good the advice was, or would have been: placements beside what really happened to their jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from metasched.store.placements import Advice


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of the advice over some finished jobs; a number is None where no job tells of it.

    Parameters
    ----------
    jobs : finished jobs that a placement was advised for and that did not fail.
    failed : finished jobs that failed or were killed.
    followed : jobs that ran on the nodes advised.
    ppe_mean, ppe_median : percentage prediction error of the advice, over the jobs that followed it (%).
    interval_coverage : share of these whose execution time lay in the interval.
    ppe_mean_there : the same error with the loads that really came, over all jobs (%).
    faster : jobs elsewhere that would, as predicted, have been faster where advised.
    time_taken : execution time of the jobs that ran elsewhere (s).
    time_as_advised : what they would have taken where advised: the time taken, times predicted there over predicted
        where they ran, so that an error common to both cancels (s).
    killed_by_limit : jobs that ran for longer than the time limit that was suggested.
    """

    jobs: int
    failed: int
    followed: int
    ppe_mean: float | None
    ppe_median: float | None
    interval_coverage: float | None
    ppe_mean_there: float | None
    faster: int
    time_taken: float
    time_as_advised: float
    killed_by_limit: int

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Settled:
    """What one finished job tells of the advice that was given for it.

    Parameters
    ----------
    failed : it failed or was killed: it tells nothing more.
    followed : it ran on the nodes advised, on as many processors.
    actual : its execution time (s).
    advised : what was predicted where advised (s).
    inside : whether the execution time lay in the interval advised.
    there : what was predicted where it ran, with the loads that really came (s); None without a model.
    killed : it ran for longer than the time limit suggested.
    """

    failed: bool
    followed: bool = False
    actual: float = 0.0
    advised: float = 0.0
    inside: bool = False
    there: float | None = None
    killed: bool = False


def settled(advice: Advice) -> Settled | None:
    """What a placement's finished job tells; None where it has not ended or nothing was advised."""
    answer, outcome = advice.answer, advice.outcome
    if outcome is None or not answer.get("placed"):
        return None
    if outcome["exit_status"] != 0:
        return Settled(failed=True)
    placement, actual = answer["placement"], outcome["execution_time"]
    interval = placement["interval"]
    return Settled(
        failed=False,
        followed=set(placement["nodes"]) == set(outcome["nodes"]) and placement["processors"] == outcome["processors"],
        actual=actual,
        advised=placement["execution_time"],
        inside=interval["low"] <= actual <= interval["high"],
        there=outcome["predicted"]["execution_time"] if outcome["predicted"] else None,
        killed=answer["time_limit"] is not None and actual > answer["time_limit"],
    )


class Ledger:
    """The last finished jobs that advice was given for, in memory: a question about quality reads no database.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.add(Settled(False, True, actual=10.0, advised=11.0, inside=True, there=10.0))
    >>> ledger.add(Settled(failed=True))
    >>> ledger.quality().jobs, ledger.quality().failed, round(ledger.quality().ppe_mean, 6)
    (1, 1, 10.0)
    """

    def __init__(self, most: int = 10_000) -> None:
        self._kept: deque[Settled] = deque(maxlen=most)
        self._told: tuple[int, Quality] | None = None
        self._added = 0

    def add(self, one: Settled | None) -> None:
        """Remember one more; None is passed over."""
        if one is not None:
            self._kept.append(one)
            self._added += 1

    def quality(self) -> Quality:
        """The quality of the advice over all that is remembered."""
        added, told = self._added, self._told
        if told is None or told[0] != added:
            self._told = told = added, quality(tuple(self._kept))
        return told[1]


def quality(jobs: Iterable[Settled]) -> Quality:
    """The quality of the advice over some finished jobs."""
    jobs = tuple(jobs)
    sound = [job for job in jobs if not job.failed]
    followed = [job for job in sound if job.followed]
    elsewhere = [(job, job.there) for job in sound if not job.followed and job.there is not None]
    errors = [100.0 * abs(job.advised - job.actual) / job.actual for job in followed]
    errors_there = [100.0 * abs(job.there - job.actual) / job.actual for job in sound if job.there is not None]
    return Quality(
        jobs=len(sound),
        failed=len(jobs) - len(sound),
        followed=len(followed),
        ppe_mean=float(np.mean(errors)) if errors else None,
        ppe_median=float(np.median(errors)) if errors else None,
        interval_coverage=float(np.mean([job.inside for job in followed])) if followed else None,
        ppe_mean_there=float(np.mean(errors_there)) if errors_there else None,
        faster=sum(job.advised < there for job, there in elsewhere),
        time_taken=sum(job.actual for job, _ in elsewhere),
        time_as_advised=sum(job.actual * job.advised / there for job, there in elsewhere),
        killed_by_limit=sum(job.killed for job in sound),
    )
