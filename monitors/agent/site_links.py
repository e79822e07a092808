"""Measurements of the links to other sites, which an agent sends to the grid's daemon."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

from monitors.agent.posting import post
from monitors.sensors.network.probe import Link

_log = logging.getLogger(__name__)

#: Where the daemon takes them in.
PATH = "/v1/sites/links"
#: How long an answer is waited for (s).
TIMEOUT = 10.0


class SiteLinks:
    """The newest measurement of each link, until the daemon has accepted it.

    Parameters
    ----------
    site : where the agent is, as the token names it.
    daemon : URL of the daemon; of several, with spaces between, the next is tried where one takes none.
    token : sent as a bearer token.
    clock : monotonic seconds.
    """

    def __init__(self, site: str, daemon: str, token: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._site, self._urls = site, [each.rstrip("/") + PATH for each in daemon.split()]
        self._token, self._clock, self._lock = token, clock, Lock()
        self._newest: dict[str, tuple[Link, float]] = {}

    def note(self, site: str, link: Link) -> None:
        """Record a measurement of the link to a site."""
        if link.bandwidth > 0 and link.round_trip > 0:
            with self._lock:
                self._newest[site] = link, self._clock()

    def send(self) -> bool:
        """Send all unsent measurements; return whether none is left. Ages are sent, so clocks may be wrong."""
        with self._lock:
            waiting, now = dict(self._newest), self._clock()
        if not waiting:
            return True
        links = [
            {"site": site, "bandwidth": round(link.bandwidth, 3), "round_trip": link.round_trip, "age": now - at}
            for site, (link, at) in waiting.items()
        ]
        for url in self._urls:
            try:
                status = post(url, self._token, {"site": self._site, "links": links}, TIMEOUT).status
            except (OSError, ValueError) as error:
                _log.debug("no answer from %s: %s", url, error)
                continue
            if status == 200:
                with self._lock:
                    self._newest = {site: each for site, each in self._newest.items() if waiting.get(site) != each}
                return True
            _log.warning("the daemon takes no links between sites: HTTP %d", status)
        return False
