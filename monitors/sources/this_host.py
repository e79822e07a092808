"""The host that we run on as a source: :class:`ThisHost`."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable

from monitors.sources.contract import Readings, Sample


class ThisHost:
    """Reads a sensor of each kind.

    Parameters
    ----------
    available_cpu, available_bandwidth : read the sensors; NaN where it is too soon.
    node : name to report under; the host's own by default.

    Examples
    --------
    >>> ThisHost(lambda: 0.75, lambda: 940.0, node="n0").read().samples[0].available_cpu
    0.75
    """

    def __init__(
        self, available_cpu: Callable[[], float], available_bandwidth: Callable[[], float], node: str | None = None
    ) -> None:
        self._available_cpu, self._available_bandwidth = available_cpu, available_bandwidth
        self._node = node or socket.gethostname().split(".")[0]

    @property
    def name(self) -> str:
        """Name of the node, as messages name this source."""
        return f"host {self._node}"

    def read(self) -> Readings:
        """One sample of this node, or a fault where a sensor fails."""
        try:
            cpu, bandwidth = self._available_cpu(), self._available_bandwidth()
            if math.isnan(cpu) or math.isnan(bandwidth):
                return Readings(fault="read too soon after the last reading")
            return Readings((Sample(self._node, time.time(), cpu, bandwidth),))
        except (OSError, ValueError) as error:
            return Readings(fault=f"sensors: {error}")
