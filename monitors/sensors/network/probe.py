"""The end that probes: :class:`BandwidthProbe` times round trips, and transfers whose size follows the link."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from monitors.sensors.network.channel import Channel
from monitors.sensors.network.server import LARGEST_TRANSFER

#: First transfer to an unknown member: the fixed size of the Network Weather Service.
SMALLEST = 64 << 10
#: A transfer should take about this long (s): long enough for TCP to settle, short enough to be no load.
AIM = 0.25
#: One that took less than this says more about buffers than about the link.
TOO_SHORT = 0.08
#: The other end reports the rate after the first quarter: it is believed up to so many times the rate of the whole
#: transfer, as this end sees it.
FASTER = 4.0
_ECHOES = 5
_BLOCK = bytes(1 << 18)


@dataclass(frozen=True, slots=True)
class Link:
    """The result of a probe of a link.

    Parameters
    ----------
    bandwidth : Mbit/s that a transfer got.
    round_trip : seconds that the quickest of a few echoes took.
    transferred : bytes sent for it.
    """

    bandwidth: float
    round_trip: float
    transferred: int


class BusyPeerError(ConnectionError):
    """The other end has another transfer under way: measured now, both would be wrong."""


class BandwidthProbe:
    """Probes members, and remembers for each how much to send.

    Parameters
    ----------
    secret : what members know.
    timeout : seconds after which a probe is given up that gets no answer; one with several transfers after three times
        as long.
    largest : bytes of one transfer at most.
    """

    def __init__(self, secret: bytes, timeout: float = 10.0, largest: int = LARGEST_TRANSFER) -> None:
        self._secret, self._timeout, self._largest = secret, timeout, largest
        self._sizes: dict[tuple[str, int], int] = {}

    def measure(self, host: str, port: int) -> Link:
        """Measure the way to a member.

        Raises
        ------
        BusyPeerError : another transfer is under way there.
        OSError : no connection, no member, no answer in time, or one that cannot be.
        """
        ends = time.monotonic() + 3 * self._timeout
        with Channel.call(host, port, self._secret, self._timeout) as channel:
            round_trip = min(_echo(channel) for _ in range(_ECHOES))
            size, sent = self._sizes.get((host, port), SMALLEST), 0
            # A path that holds much data in flight needs a transfer of many round trips.
            least = max(TOO_SHORT, 8 * round_trip)
            while True:
                began = time.perf_counter()
                seconds, rate = _transfer(channel, size, min(ends, time.monotonic() + self._timeout))
                sent += size
                if seconds >= least or size >= self._largest:
                    break
                size = self._next_size(size, seconds, max(AIM, 2 * least))
            rate = min(rate, FASTER * 8 * size / max(time.perf_counter() - began, 1e-9))
            self._sizes[host, port] = self._next_size(size, seconds, max(AIM, 2 * least))
        return Link(rate / 1e6, round_trip, sent)

    def _next_size(self, size: int, seconds: float, aim: float) -> int:
        """Size that would take so long (s); at most eight times as much at once, since short transfers exaggerate."""
        return int(min(max(size * min(aim / max(seconds, 1e-6), 8.0), SMALLEST), self._largest))


def _echo(channel: Channel) -> float:
    start = time.perf_counter()
    channel.send({"verb": "echo"})
    channel.receive()
    return time.perf_counter() - start


def _transfer(channel: Channel, size: int, ends: float) -> tuple[float, float]:
    """Seconds and bits per second that the other end reports of a transfer, which is over by a time (s, monotonic)."""
    channel.send({"verb": "transfer", "bytes": size})
    answer = channel.receive()
    if not answer.get("done"):
        raise BusyPeerError(str(answer.get("reason", "refused")))
    left = size
    while left > 0:
        remaining = ends - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the transfer took too long")
        channel.connection.settimeout(remaining)
        channel.connection.sendall(_BLOCK[: min(left, len(_BLOCK))])
        left -= len(_BLOCK)
    report = channel.receive()
    return _reported(report, "seconds"), _reported(report, "rate")


def _reported(report: dict[str, Any], name: str) -> float:
    value = report.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise ConnectionError(f"the other end reports {str(value)[:40]} {name} of a transfer")
    return float(value)
