"""How similar jobs are: the weights with which the run times of others count in that of a job.

They are exponentials of linear forms in what jobs differ by and in their age. All numbers were chosen on the logs of
KTH, CTC and SDSC SP2 (docs/history.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from metasched.arrays import Floats
from metasched.history.run_times.job_columns import CUT, ENDED, EXECUTABLE, NAME, SHORT, STEM, SUBMITTED, UNNAMED, WIDTH

#: Numbers of jobs compared: ended and running ones of the user, and ended ones of others with the same limit.
OWN, RUNNING, OTHERS = 240, 12, 24
#: Units of time differences (s): since the end of the other job, and between the submissions.
AGO = np.array([[3600.0], [600.0]])

#: The forms, one a row. Columns: distance in log2 processors, in log2 limit; whether they differ; log of hours since it
#: ended, of ten minutes between the submissions; whether it was ended by its limit, and within a minute.
FORMS = np.array([
    [1.407, 2.644, 0.792, 1.004, 0.265, 0.106, 0.282, 0.267],
    [0.649, 2.041, 0.902, 0.563, 0.295, 0.147, 0.334, 0.36],
    [0.233, 2.644, 0.653, 1.31, 0.341, -0.078, 0.193, 0.655],
    [0.405, 4.016, 1.112, 0.625, 0.276, 0.029, -0.038, 0.288],
    [0.8, 2.6, 0.8, 1.0, 0.2, 0.05, 0.1, 0.1],
])  # fmt: skip
#: Distances of a different name, of a name with a different stem, and of an executable with a different stem where both
#: are known.
OTHER_NAME, OTHER_STEM, OTHER_EXECUTABLE = 1.0, 1.5, 2.5
#: For others' jobs: distance in log2 processors, log of hours since it ended.
OTHER_FORMS = np.array([[2.2, 0.0], [0.855, 0.275], [1.339, 0.0], [3.032, -0.196], [2.2, 0.1]])
#: Weights of others' jobs, and of running ones, relative to ended ones of the user.
OTHERS_COUNT = np.array([[0.007], [0.012], [0.007], [0.004], [0.007]])
RUNNING_COUNT = np.array([[0.282], [0.399], [0.343], [0.369], [0.6]])


def _by_rank(most: int, linear: Sequence[float], log: Sequence[float], near: Sequence[float]) -> Floats:
    """The log weights of jobs by age rank, shape (forms, most), newest last."""
    rank = np.arange(most)[::-1]
    return np.outer(linear, rank) + np.outer(log, np.log1p(rank)) + np.outer(near, 1.0 / (1.0 + rank))


#: By rank among all jobs of the user; among those with the same processors and limit; among others' jobs.
_NEAR = [-0.144, -0.296, -0.144, -0.441, -0.5]
_LINEAR, _LOG = [0.011, 0.011, 0.011, 0.011, 0.35], [0.05, 0.246, 0.05, 0.098, 0.3]
BY_RANK = _by_rank(OWN, _LINEAR, _LOG, _NEAR)
RUNNING_BY_RANK = _by_rank(RUNNING, _LINEAR, _LOG, [0.0] * 5)
BY_RANK_OF_SAME = 0.5 + _by_rank(OWN, [0.0] * 5, [0.0] * 5, [-0.374, -0.507, -0.637, -0.514, -0.374])
OTHERS_BY_RANK = _by_rank(OTHERS, [0.077, 0.087, 0.111, 0.212, 0.2], [0.039, -0.177, -0.335, -0.123, 0.1], [0.0] * 5)


def weights_of_own(jobs: Floats, this: Floats, now: float, *, ended: bool) -> Floats:
    """Weights of jobs of the same user, shape (forms, jobs).

    Parameters
    ----------
    jobs : their columns, shape (rows, jobs), newest last.
    this : the column of the job that is predicted, shape (rows,).
    now : when it is submitted (s).
    ended : whether they have ended; else they run.
    """
    count = jobs.shape[1]
    compared = np.empty((8, count))
    np.abs(jobs[:2] - this[:2, None], out=compared[:2])
    np.greater(compared[:2], 0.0, out=compared[2:4])
    compared[6:] = jobs[CUT : SHORT + 1]
    ago = now - jobs[ENDED : SUBMITTED + 1]
    if not ended:
        ago[0] = 0.0
    np.log1p(np.maximum(ago, 0.0) / AGO, out=compared[4:6])
    less = FORMS @ compared
    if ended:
        less += BY_RANK[:, OWN - count :]
        same = np.flatnonzero(compared[2] + compared[3] == 0.0)
        less[:, same] += BY_RANK_OF_SAME[:, OWN - same.size :]
    else:
        less += RUNNING_BY_RANK[:, RUNNING - count :]
    if this[NAME] != UNNAMED:
        less += OTHER_NAME * (jobs[NAME] != this[NAME]) + OTHER_STEM * (jobs[STEM] != this[STEM])
    if not math.isnan(this[EXECUTABLE]):
        theirs = jobs[EXECUTABLE]
        less += OTHER_EXECUTABLE * (~np.isnan(theirs) & (theirs != this[EXECUTABLE]))
    weights = np.exp(-less, out=less)
    return weights if ended else weights * RUNNING_COUNT


def weights_of_others(jobs: Floats, this: Floats, now: float) -> Floats:
    """Weights of ended jobs of any users with the same limit, shape (forms, jobs); parameters as above."""
    compared = np.stack([
        np.abs(jobs[WIDTH] - this[WIDTH]), np.log1p(np.maximum(now - jobs[ENDED], 0.0) / 3600.0),
    ])  # fmt: skip
    less = OTHER_FORMS @ compared
    less += OTHERS_BY_RANK[:, OTHERS - jobs.shape[1] :]
    return np.asarray(np.exp(-less, out=less) * OTHERS_COUNT)
