"""The lag of the event loop: how late due callbacks run. It shows that the daemon is overloaded."""

from __future__ import annotations

import asyncio

#: How often it is measured (s), and by how much the newest measurement counts.
PERIOD, NEWEST = 0.01, 0.2
#: From what lag on samples wait, so that placements do not (s).
BUSY = 0.01


class LoopLag:
    """The lag of one event loop.

    Attributes
    ----------
    seconds : the mean of late.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    @property
    def busy(self) -> bool:
        """Whether the daemon is overloaded at present."""
        return self.seconds > BUSY

    async def watch(self) -> None:
        """Measure how late the event loop is, until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD
            await asyncio.sleep(PERIOD)
            self.seconds += NEWEST * (max(0.0, loop.time() - due) - self.seconds)
