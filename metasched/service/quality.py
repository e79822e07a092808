"""How good the advice was, or would have been: placements beside what really happened to their jobs."""

from __future__ import annotations

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


def quality(advised: Iterable[Advice]) -> Quality:
    """The quality of placements whose jobs have ended; others are passed over."""
    ended = [each for each in advised if each.outcome is not None and each.answer.get("placed")]
    sound = [(each.answer, each.outcome) for each in ended if each.outcome and each.outcome["exit_status"] == 0]
    errors, inside, errors_there, taken, as_advised, faster, killed = [], [], [], 0.0, 0.0, 0, 0
    for answer, outcome in sound:
        placement, actual = answer["placement"], outcome["execution_time"]
        expected, interval = placement["execution_time"], placement["interval"]
        there = outcome["predicted"]["execution_time"] if outcome["predicted"] else None
        if there is not None:
            errors_there.append(100.0 * abs(there - actual) / actual)
        if set(placement["nodes"]) == set(outcome["nodes"]) and placement["processors"] == outcome["processors"]:
            errors.append(100.0 * abs(expected - actual) / actual)
            inside.append(interval["low"] <= actual <= interval["high"])
        elif there is not None:
            taken += actual
            as_advised += actual * expected / there
            faster += expected < there
        killed += answer["time_limit"] is not None and actual > answer["time_limit"]
    return Quality(
        jobs=len(sound),
        failed=len(ended) - len(sound),
        followed=len(errors),
        ppe_mean=float(np.mean(errors)) if errors else None,
        ppe_median=float(np.median(errors)) if errors else None,
        interval_coverage=float(np.mean(inside)) if inside else None,
        ppe_mean_there=float(np.mean(errors_there)) if errors_there else None,
        faster=faster,
        time_taken=taken,
        time_as_advised=as_advised,
        killed_by_limit=killed,
    )
