"""Probes that never collide: :class:`Clique`, whose members pass a token and probe only while they hold it.

The token is passed in the order of the members' names. A member that does not accept it is skipped. If a token is lost
with its holder, the member that has waited longest creates a new one. The token's number grows with every pass, and a
member that has seen a higher number refuses a lower one, so that of two tokens one is dropped within a round.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from monitors.sensors.network.channel import Channel
from monitors.sensors.network.probe import BandwidthProbe, Link

_log = logging.getLogger(__name__)


class Clique:
    """One member's part in the round.

    Parameters
    ----------
    name : this member's name.
    members : host and port of every member by name, this one's too.
    probe : measures the way to another member.
    secret : what members know.
    found : called with the other member's name and what was found.
    period : seconds that a round should take.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, tuple[str, int]],
        probe: BandwidthProbe,
        secret: bytes,
        found: Callable[[str, Link], None],
        period: float,
    ) -> None:
        if name not in members:
            raise ValueError(f"{name} is no member of the clique, expected one of {', '.join(sorted(members))}")
        self.name = name
        self._members = dict(members)
        self._order = sorted(members)
        self._rank = self._order.index(name)
        self._others = deque(member for member in self._order if member != name)
        self._probe, self._secret, self._found = probe, secret, found
        self.period = period
        self._highest = -1
        self._held: int | None = None
        self._changed = threading.Condition()
        self._stopped = False

    def take(self, token: dict[str, Any]) -> bool:
        """Take a token that was passed to this member; one with a number that is not new is refused."""
        number = token.get("number")
        if not isinstance(number, int) or isinstance(number, bool):
            return False
        with self._changed:
            if number <= self._highest or self._stopped:
                return False
            self._highest = self._held = number
            self._changed.notify_all()
        return True

    def run(self) -> None:
        """Take part until ``stop``: wait for the token, probe the others, pass it on."""
        while not self._stopped:
            if self._wait():
                self._turn()

    def stop(self) -> None:
        """End :meth:`run` soon; tokens are refused from now on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _wait(self) -> bool:
        """Wait for the token; make a new one when it has been missing for longer than any round takes.

        The wait grows with the rank, so that one member makes it and the others see it before their own wait is over.
        """
        with self._changed:
            # Nobody has seen a token yet: the first in order starts the round.
            missing = self.period * (0 if self._highest < 0 and self._rank == 0 else 2 + self._rank)
            self._changed.wait_for(lambda: self._held is not None or self._stopped, timeout=missing)
            if self._stopped:
                return False
            if self._held is None:
                self._highest = self._held = self._highest + 1 + len(self._order)
                _log.info("clique: %s made a new token, number %d", self.name, self._held)
            return True

    def _turn(self) -> None:
        """Probe for this member's part of the period, going on next time where it ended, then pass the token on."""
        over = time.monotonic() + self.period / len(self._order)
        for _ in range(len(self._others)):
            self._look(self._others[0])
            self._others.rotate(-1)
            if self._stopped or time.monotonic() >= over:
                break
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, timeout=max(over - time.monotonic(), 0.0))
            number, self._held = self._highest + 1, None
            self._highest = number
        following = [*self._order[self._rank + 1 :], *self._order[: self._rank]]
        if not any(self._pass(other, number) for other in following):
            with self._changed:
                self._held = self._highest  # alone for now: keep it

    def _look(self, other: str) -> None:
        try:
            link = self._probe.measure(*self._members[other])
            self._found(other, link)
        except OSError as error:
            _log.info("clique: no probe to %s: %s", other, error)
        except Exception:
            # The others wait for the token.
            _log.exception("clique: the probe to %s failed", other)

    def _pass(self, other: str, number: int) -> bool:
        try:
            with Channel.call(*self._members[other], self._secret) as channel:
                channel.send({"verb": "token", "token": {"number": number}})
                return bool(channel.receive().get("done"))
        except OSError:
            return False
        except Exception:
            # The others wait for the token.
            _log.exception("clique: the token cannot be passed to %s", other)
            return False
