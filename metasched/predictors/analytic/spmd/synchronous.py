"""SIO: all processors finish their computation bursts, then one I/O burst follows (section 4.1)."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.analytic.spmd.bursts import Bursts
from metasched.queueing.single_class import mean_value_analysis


def cycle_time(bursts: Bursts, computation_bursts: float) -> Floats:
    """Seconds of one cycle at each point, shape (n,).

    While i groups are still computing they leave at the rate X(i) / n^I/O, X(i) = i / (z + R_1(i)), so (16) is the sum
    of n^I/O / X(i) over i = 1, ..., p/c.
    """
    most = int(bursts.groups.max())
    network = mean_value_analysis(bursts.network[:, None], bursts.delay, most)  # (17)
    left = np.arange(1, most + 1) <= bursts.groups[:, None]
    computation: Floats = computation_bursts * (left / network.throughput).sum(axis=1)  # (16)
    return computation + bursts.io  # (18)
