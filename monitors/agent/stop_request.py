"""A request to end, made by a thread or by a signal."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress


class StopRequest:
    """Waited for by one thread, made by any other or by a signal, at whatever moment.

    An event would not do. Its lock may be held by the very thread that a signal interrupts, and a signal that the
    system hands to another thread of the process does not wake the one that waits.

    >>> request = StopRequest()
    >>> request.make()
    >>> request.wait()
    """

    def __init__(self) -> None:
        self._waiting, self._making = socket.socketpair()
        self._making.setblocking(False)

    def make(self) -> None:
        """Ask to end; whoever waits returns soon."""
        with suppress(BlockingIOError):  # so often that nothing more is needed
            self._making.send(b"\0")

    def make_on(self, *signals: int) -> None:
        """Have signals of this process make it from now on; called by the main thread.

        Parameters
        ----------
        signals : their numbers.
        """
        signal.set_wakeup_fd(self._making.fileno(), warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, lambda *_: None)

    def wait(self) -> None:
        """Return once it has been made."""
        self._waiting.recv(1)
