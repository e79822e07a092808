"""What simple rules say of a job: medians, means and last values of the run times of jobs that are alike in one way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metasched.history.job_log import Floats

#: How many simple answers there are.
SIMPLE = 13
#: Of so many of the last jobs a median is taken.
LAST = 9


def simple_answers(
    own: Floats, others: Floats, same: NDArray[np.bool_], others_same_width: NDArray[np.bool_], limit: float,
    otherwise: float,
) -> list[float]:  # fmt: skip
    """Run times as simple rules expect them (s).

    Parameters
    ----------
    own : run times (s) and limits (s) of the user's ended jobs, the newest last, shape (2, jobs).
    others : the same of others' jobs.
    same : whether each of the user's has the same processors, limit, and name, shape (3, jobs).
    others_same_width : whether each of the others' has the same processors.
    limit : of the job (s).
    otherwise : what a rule says that has no job to go by (s).

    Returns
    -------
    Medians of the user's last jobs with the same processors, limit and name; limit; processors; of all, in seconds,
    then as shares of the limit; of others' as shares, then of those with the same processors. The last and the mean of
    the last two where all three are the same, and of all.

    Examples
    --------
    >>> own = np.array([[60.0, 80.0, 1000.0], [600.0, 600.0, 2000.0]])
    >>> same = np.array([[True, True, False]] * 3)
    >>> simple_answers(own, np.empty((2, 0)), same, np.empty(0, dtype=bool), 600.0, 70.0)[:5]
    [80.0, 80.0, 80.0, 80.0, 80.0]
    """
    run, share = own[0], limit * own[0] / own[1]
    width, limited, _ = same
    alike = same.all(axis=0)
    of_same, share_of_same, theirs = run[alike], share[alike], limit * others[0] / others[1]
    found = [
        _median(of_same), _median(run[limited]), _median(run[width]), _median(run), _median(share),
        _median(theirs, theirs.size), _median(theirs[others_same_width], theirs.size),
        _mean(of_same[-1:]), _mean(of_same[-2:]), _mean(run[-1:]), _mean(run[-2:]), _mean(share_of_same), _mean(share),
    ]  # fmt: skip
    return [otherwise if each is None else min(each, limit) for each in found]


def _median(values: Floats, most: int = LAST) -> float | None:
    """The upper median of the last of some values, None where there are none."""
    last = np.sort(values[-most:]) if most else values
    return float(last[last.size // 2]) if last.size else None


def _mean(values: Floats) -> float | None:
    return float(values.sum()) / values.size if values.size else None
