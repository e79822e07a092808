"""Which runs to make next: those that narrow the intervals of the placements asked for most, for the time they take.

Before it is made a run at x is known to change the variance of log time at t by c(t, x)^2 / (v(x) + noise), whatever
it will take (Rasmussen & Williams, section 2.2). Runs are chosen one after the other, each the one with the largest
fall of the summed variance of the placements a second, as long as the budget lasts; a run that was chosen counts as
made. The fall of a variance by further runs is diminishing, so choosing greedily comes close to the best choice
(Krause, Singh & Guestrin, "Near-optimal sensor placements in Gaussian processes", JMLR 9, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.predictors.abilities import Plan
from metasched.predictors.robust.model import Model
from metasched.records import Request

#: Runs that are planned at most.
MOST_RUNS = 1000


def plan(model: Model, asked: Sequence[Request], candidates: Sequence[Request], budget: float) -> Plan:
    """Choose runs among candidates, each as often as it pays, that take at most ``budget`` seconds together.

    Parameters
    ----------
    model : what is known; requests are taken under the settings that it answers for.
    asked : the placements whose times are wanted.
    candidates : the runs that can be made.
    budget : seconds.

    Examples
    --------
    >>> from candidate_functions.terms import Observations
    >>> model = Model.fit(Observations.of([100.0, 200.0, 400.0], [1, 1, 1], [1.0] * 3, [90.0] * 3, [1.0, 4.0, 16.0]))
    >>> asked = [Request(400, 8, 1.0, 90.0)]
    >>> found = plan(model, asked, [Request(400, p, 1.0, 90.0) for p in (1, 8)], budget=10.0)
    >>> found.runs[0].processors, bool(found.after[0] < 0.5 * found.before[0])
    (8, True)
    """
    every = [*asked, *candidates]
    columns = np.array(
        [(one.problem_size, one.processors, one.available_cpu, one.available_bandwidth) for one in every]
    ).T
    covariance, noise = model.covariance(*columns)
    seconds = model.predict(*columns)[0]
    targets = slice(0, len(asked))
    own = noise[targets] + model.unstated
    before = np.sqrt(np.diag(covariance)[targets] + own)
    chosen: list[int] = []
    left = budget
    while len(chosen) < MOST_RUNS:
        variance = np.maximum(np.diag(covariance), 0.0) + noise
        gain = (covariance[targets] ** 2).sum(axis=0) / variance / seconds
        gain[targets] = 0.0
        gain[seconds > left] = 0.0
        best = int(np.argmax(gain))
        if gain[best] <= 0.0:
            break
        chosen.append(best)
        left -= float(seconds[best])
        covariance = covariance - np.outer(covariance[:, best], covariance[best]) / variance[best]
    after = np.sqrt(np.maximum(np.diag(covariance)[targets], 0.0) + own)
    return Plan(tuple(every[place] for place in chosen), seconds[chosen], before, after)
