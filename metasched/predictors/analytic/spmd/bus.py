"""BUS-AIO: groups of processors do I/O on their own, all through one I/O node (Cremonesi and Gennaro, section 4.2)."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.analytic.spmd.bursts import Bursts
from metasched.queueing.two_stations import throughput


def cycle_time(bursts: Bursts, computation_bursts: float) -> Floats:
    """Seconds of one cycle at each point, shape (n,): p/c jobs at a delay, the network and the I/O node, (20)-(22)."""
    demands = np.stack([bursts.network * computation_bursts, bursts.io], axis=1)
    # Little's law over delay and both stations: (20) + (21)
    return np.asarray(bursts.groups / throughput(demands, bursts.delay * computation_bursts, bursts.groups))
