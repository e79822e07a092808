"""The probed end: :class:`ProbeServer` receives transfers and returns their rates, for members only."""

from __future__ import annotations

import logging
import socketserver
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from monitors.few_callers import FewCallers
from monitors.sensors.network.channel import Channel

_log = logging.getLogger(__name__)

#: Bytes that one probe may send at most, however fast the link.
LARGEST_TRANSFER = 256 << 20


class ProbeServer(FewCallers, socketserver.TCPServer):
    """Answers echoes, takes in timed transfers, hands tokens on; one transfer at a time.

    Parameters
    ----------
    address : host and port to listen on; port 0 lets the system choose.
    secret : what members know.
    take_token : called with a token that was passed to this member; says whether it was taken.
    timeout : seconds that a caller may take to show that it is a member, and then for each message.
    """

    def __init__(
        self,
        address: tuple[str, int],
        secret: bytes,
        *,
        take_token: Callable[[dict[str, Any]], bool] = lambda token: False,
        timeout: float = 10.0,
    ) -> None:
        self._secret, self._take_token, self._timeout = secret, take_token, timeout
        self._transfer = threading.Lock()
        super().__init__(address, _Caller)

    @property
    def port(self) -> int:
        """The port it listens on, also where the system chose it."""
        return int(self.server_address[1])

    def handle(self, caller: _Caller) -> None:
        """Answer one caller until it hangs up."""
        try:
            channel = Channel(caller.request, self._secret, server=True, timeout=self._timeout)
            self.know(caller.request)
            while True:
                channel.send(self._answer(channel, channel.receive()))
        except (OSError, ValueError) as error:
            _log.debug("caller %s dropped: %s", caller.client_address, error)

    def _answer(self, channel: Channel, request: dict[str, Any]) -> dict[str, Any]:
        verb = request.get("verb")
        if verb == "echo":
            return {"done": True}
        if verb == "token" and isinstance(request.get("token"), dict):
            return {"done": self._take_token(request["token"])}
        if verb == "transfer":
            return self._take_in(channel, request.get("bytes"))
        return {"done": False, "reason": "unknown request"}

    def _take_in(self, channel: Channel, size: object) -> dict[str, Any]:
        if not isinstance(size, int) or isinstance(size, bool) or not 2 <= size <= LARGEST_TRANSFER:
            return {"done": False, "reason": f"expected 2 to {LARGEST_TRANSFER} bytes"}
        if not self._transfer.acquire(blocking=False):
            return {"done": False, "reason": "another transfer is running"}
        try:
            channel.send({"done": True})
            return {"done": True} | timed_intake(channel, size, self._timeout)
        finally:
            self._transfer.release()


class _Caller(socketserver.BaseRequestHandler):
    server: ProbeServer

    def handle(self) -> None:
        self.server.handle(self)


def timed_intake(channel: Channel, size: int, timeout: float) -> dict[str, float]:
    """Take ``size`` bytes in; seconds from first byte to last, and bits per second after the first quarter.

    The first quarter lets TCP find its pace and drains what shapers on the way allow in a burst. After it the rate is
    the slope of a line through the arrivals: a lost segment holds back what came after it and then lets it all go at
    once, so that the difference of any two arrivals would tell more of the loss than of the link.

    Parameters
    ----------
    channel : the connection that the bytes come by.
    size : how many are expected.
    timeout : longest time from the first to the last (s).
    """
    # Pieces much smaller than the whole, so that a quarter of a small transfer is not a matter of one piece.
    buffer = bytearray(min(max(size // 64, 4096), 1 << 18))
    view = memoryview(buffer)
    arrivals: list[tuple[float, int]] = []
    got = 0
    while got < size:
        count = channel.connection.recv_into(view[: min(len(buffer), size - got)])
        if not count:
            raise ConnectionError("the transfer was cut")
        got += count
        arrivals.append((time.perf_counter(), got))
        if arrivals[-1][0] - arrivals[0][0] > timeout:
            raise TimeoutError("the transfer took too long")
    later = [(moment, total) for moment, total in arrivals if total >= size / 4]
    slope = statistics.linear_regression(*zip(*later, strict=True)).slope if len({m for m, _ in later}) > 1 else 0.0
    return {"seconds": arrivals[-1][0] - arrivals[0][0], "rate": 8 * slope}
