"""Warns of non-monotone models: they predict a longer time for more CPU or more bandwidth.

For such a model the order of a ranking is not proven, see docs/placement.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

#: How much more CPU and bandwidth must not make a prediction longer.
MORE = 1.05


def non_monotone(cluster: str, as_is: ArrayLike, more_cpu: ArrayLike, more_bandwidth: ArrayLike) -> list[str]:
    """A line for each of the two of which more makes some prediction longer.

    Parameters
    ----------
    cluster : its name.
    as_is, more_cpu, more_bandwidth : predicted times (s) of k sets, and with :data:`MORE` times the CPU and the
        bandwidth, arrays of shape (k,).

    Examples
    --------
    >>> non_monotone("c8", [10.0, 20.0], [9.0, 21.0], [10.0, 20.0])
    ['the model for cluster c8 predicts longer times for more CPU']
    """
    most = np.asarray(as_is) * (1 + 1e-9)
    return [
        f"the model for cluster {cluster} predicts longer times for more {what}"
        for what, time in (("CPU", more_cpu), ("bandwidth", more_bandwidth))
        if np.any(np.asarray(time) > most)
    ]
