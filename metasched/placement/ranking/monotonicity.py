"""Warns of non-monotone models: they predict a longer time for more CPU or more bandwidth.

For such a model the order of a ranking is not proven, see docs/placement.md.
"""

from __future__ import annotations

from collections.abc import Sequence

#: How much more CPU and bandwidth must not make a prediction longer.
MORE = 1.05


def non_monotone(
    cluster: str, as_is: Sequence[float], more_cpu: Sequence[float], more_bandwidth: Sequence[float]
) -> list[str]:
    """A line for each of CPU and bandwidth of which more makes some prediction longer.

    Parameters
    ----------
    cluster : its name.
    as_is, more_cpu, more_bandwidth : predicted times (s) of k sets, and with :data:`MORE` times the CPU and the
        bandwidth.

    Examples
    --------
    >>> non_monotone("c8", [10.0, 20.0], [9.0, 21.0], [10.0, 20.0])
    ['the model for cluster c8 predicts longer times for more CPU']
    """
    return [
        f"the model for cluster {cluster} predicts longer times for more {what}"
        for what, time in (("CPU", more_cpu), ("bandwidth", more_bandwidth))
        if any(more > one * (1 + 1e-9) for one, more in zip(as_is, time, strict=True))
    ]
