"""Available bandwidth of an interface between probes: :class:`CorrectedLink`, counters scaled to what probes found."""

from __future__ import annotations

from pathlib import Path

from monitors.host import LinkSensor

#: Weight of the newest probe.
_GAIN = 0.5


class CorrectedLink:
    """What the interface's counters leave of its speed, times how much of that transfers have really got.

    Counters know every byte of this node but nothing of the switches behind it, nor of the true speed of a virtual
    interface; probes know both, but seldom.

    Parameters
    ----------
    interface : its name; the loopback interface where None.

    Examples
    --------
    >>> link = CorrectedLink()
    >>> link.learn(5000.0)
    >>> link.factor > 0
    True
    """

    def __init__(self, interface: str | None = None) -> None:
        self._counters = LinkSensor([interface] if interface else None)
        self.factor = 1.0
        self._probed = False

    def read(self) -> float:
        """Mbit/s to spare since the last reading; NaN where it was too soon."""
        return float(self._counters.read()[0]) * self.factor

    def learn(self, bandwidth: float) -> None:
        """Take a probe's bandwidth (Mbit/s) into account, beside the counters since the last reading."""
        if not 0 < bandwidth < float("inf"):
            raise ValueError(f"bandwidth is {bandwidth}, expected a finite number of Mbit/s above 0")
        passive = float(self._counters.read()[0])
        if passive > 0:  # not so where nothing was counted yet
            gain = _GAIN if self._probed else 1.0
            self.factor += gain * (bandwidth / passive - self.factor)
            self._probed = True


def outward_interface(routes: Path = Path("/proc/net/route")) -> str | None:
    """The interface of the default route; None where there is none."""
    try:
        rows = [line.split() for line in routes.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return None
    outward = [(int(row[6]), row[0]) for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"]
    return min(outward)[1] if outward else None
