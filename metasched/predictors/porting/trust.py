"""The accuracy of a port before it is used: its predictions for idle nodes, with intervals and expected errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.porting.predictor import PortedPredictor
from metasched.records import IDLE_BANDWIDTH

#: Mean of |z| for a standard normal z.
MEAN_DISTANCE = math.sqrt(2.0 / math.pi)


@dataclass(frozen=True, slots=True)
class Trust:
    """The predictions of a ported model for idle nodes, for several processor counts at one problem size.

    Parameters
    ----------
    problem_size : N, in the middle of the sizes known.
    processors : array of shape (n,).
    execution_time, low, high : arrays of shape (n,), seconds.
    expected_ppe : mean percentage prediction error that the model expects of itself, shape (n,).
    level : of the intervals.
    """

    problem_size: float
    processors: Floats
    execution_time: Floats
    low: Floats
    high: Floats
    expected_ppe: Floats
    level: float


def trust(predictor: PortedPredictor, most_processors: int | None = None, level: float = 0.9) -> Trust:
    """The accuracy of a ported model on 1, 2, 4, ... processors, up to the largest learned or requested number.

    Parameters
    ----------
    predictor : the ported model.
    most_processors : processors of the target; those of the largest run known where it is None.
    level : of the intervals.
    """
    domain = predictor.state.domain
    most = most_processors or domain.most_processors
    processors = np.unique(np.append(2.0 ** np.arange(int(math.log2(most)) + 1), most))
    problem_size = math.sqrt(domain.smallest_size * domain.largest_size)
    idle = max((run.min_avg_avail_bw for run in predictor.window if run.measured), default=IDLE_BANDWIDTH)
    one = np.ones_like(processors)
    found = predictor.predict_many(problem_size, processors, 1.0, idle, level)
    _, spread = predictor.expected(problem_size * one, processors, one, idle * one)
    return Trust(
        problem_size, processors, found.execution_time, found.low, found.high, 100.0 * MEAN_DISTANCE * spread, level
    )
