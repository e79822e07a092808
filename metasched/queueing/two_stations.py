"""Two stations of fixed speed and a delay: the exact throughput at one population, however large.

Mean value analysis visits every smaller population. Here the normalisation constant is a sum over the jobs k at the
delay: with m = Z / D1 and r = D2 / D1 <= 1 in units of the larger demand,
G(N) = sum_k m^k / k! (1 + r + ... + r^(N - k)). Its terms are positive and rise to one peak, beside min(m, N), and fall
from it at least as fast as those of a normal distribution of variance N: a few sqrt(N) of them are all that counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats

#: Terms on each side of the peak, in parts of sqrt(N), and besides: those left out are below exp(-50) of it.
_REACH, _LEAST = 10.0, 50.0
#: Part of the think time that the service of all jobs must exceed to have an effect on a number of this precision.
_NEGLIGIBLE = 1e-17


def throughput(demands: ArrayLike, think_time: ArrayLike, population: ArrayLike) -> Floats:
    """Cycles a second of n networks, each at a population of its own, shape (n,).

    Parameters
    ----------
    demands : array of shape (n, 2), seconds of service in each cycle.
    think_time : array of shape (n,), seconds; not 0 where both demands are.
    population : whole numbers of at least 1, shape (n,).

    References
    ----------
    Buzen, Computational algorithms for closed queueing networks with exponential servers, CACM 16(9), 1973.

    Examples
    --------
    >>> throughput([[1.0, 1.0], [2.0, 0.0]], [0.0, 3.0], [3, 10_000])
    array([0.75, 0.5 ])
    """
    service = np.asarray(demands, dtype=float)
    idle, jobs = np.asarray(think_time, dtype=float), np.asarray(population, dtype=float)
    slow, fast = service.max(axis=1), service.min(axis=1)
    # Beside so short a service nobody is waited for; in units of it the think time may be too large a number.
    found, queues = np.empty(slow.shape), jobs * slow > _NEGLIGIBLE * idle
    found[~queues] = jobs[~queues] / idle[~queues]
    found[queues] = _in_units(fast[queues] / slow[queues], idle[queues] / slow[queues], jobs[queues]) / slow[queues]
    return found


def _in_units(ratio: Floats, think_time: Floats, jobs: Floats) -> Floats:
    """The same in units of the larger demand; ``ratio`` is that of the smaller one to it."""
    reach = _REACH * np.sqrt(jobs) + _LEAST
    peak = np.minimum(think_time, jobs)
    first = np.floor(np.maximum(peak - reach, 0.0))
    last = np.minimum(np.ceil(peak + reach), jobs)
    at_delay = first[:, None] + np.arange((last - first).max(initial=0.0) + 1.0)  # k
    queued = np.maximum(jobs[:, None] - at_delay, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # From one term to the next, since logarithms of factorials would cost digits.
        logs = np.log(think_time[:, None] / at_delay)
        logs[:, 0] = 0.0
        logs = logs.cumsum(axis=1)
        logs[at_delay > last[:, None]] = -np.inf
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        power = np.log(ratio)[:, None]
        one_less, all_jobs = (  # 1 + r + ... + r^(j - 1), nothing for j = 0
            np.where(power == 0.0, count, np.expm1(count * power) / np.expm1(power)) for count in (queued, queued + 1.0)
        )
    one_less[queued == 0.0] = 0.0  # also of r = 0
    return np.asarray((weights * one_less).sum(axis=1) / (weights * all_jobs).sum(axis=1))
