"""CLU-AIO: clusters of groups, each with a disk of its own, share the network (Cremonesi and Gennaro, section 4.3).

The network has d classes of k jobs, and multiclass mean value analysis would visit (k + 1)^d populations. But the
classes are alike and meet at one station only, so its normalisation constant is a sum over the jobs there, and the
sum's terms are coefficients of a polynomial to the power d: exact for any number of disks.
"""

from __future__ import annotations

import numpy as np
import scipy

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.spmd.bursts import Bursts
from metasched.queueing.series import convolve


def cycle_time(bursts: Bursts, disks: Ints, computation_bursts: float) -> Floats:
    """Seconds of one cycle at each point, shape (n,), where d divides p/c.

    Parameters
    ----------
    bursts : service times (s) and groups p/c at each point.
    disks : d of each point, shape (n,).
    computation_bursts : bursts of computation for one of I/O.
    """
    points = zip(
        bursts.delay * computation_bursts,
        bursts.network * computation_bursts,
        bursts.io,
        bursts.groups // disks,
        disks,
        strict=True,
    )
    return np.array([_cycle_time(*point) for point in points])


def _cycle_time(delay: float, network: float, disk: float, jobs: int, classes: int) -> float:
    """Cycle time of any class: k / X, X = G(n - e_1) / G(n)."""
    length = jobs * classes + 1
    others = _power(_at_network(delay, network, disk, jobs, length), classes - 1)
    constant = _total(convolve(others, _at_network(delay, network, disk, jobs, length)))
    one_less = _total(convolve(others, _at_network(delay, network, disk, jobs - 1, length)))
    return float(jobs * np.exp(constant - one_less))


def _at_network(delay: float, network: float, disk: float, jobs: int, length: int) -> Floats:
    """Logarithms of one class's weights with m = 0, 1, ... of its jobs at the network, shape (1, length).

    x^m / m! times the sum over the other jobs, a at the disk and b at the delay, of y^a z^b / b!.
    """
    m = np.arange(jobs + 1)
    with np.errstate(divide="ignore"):
        at_disk, at_delay, at_network = (
            np.asarray(scipy.special.xlogy(m, time), dtype=np.float64) for time in (disk, delay, network)
        )
    orders = np.asarray(scipy.special.gammaln(m + 1.0), dtype=np.float64)
    elsewhere = convolve(at_disk[None], (at_delay - orders)[None])[0]
    weights = np.full((1, length), -np.inf)
    weights[0, : jobs + 1] = at_network - orders + elsewhere[::-1]
    return weights


def _power(series: Floats, exponent: int) -> Floats:
    """A polynomial to a whole power, by squaring."""
    result = np.full_like(series, -np.inf)
    result[:, 0] = 0.0
    while exponent:
        if exponent % 2:
            result = convolve(result, series)
        exponent //= 2
        if exponent:
            series = convolve(series, series)
    return result


def _total(series: Floats) -> float:
    """Logarithm of G: the sum over s jobs at the network, which can be ordered there in s! ways."""
    return float(scipy.special.logsumexp(series[0] + scipy.special.gammaln(np.arange(series.shape[1]) + 1.0)))
