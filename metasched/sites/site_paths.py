"""The links between sites, from what agents measured of whole paths: network tomography where routes are configured.

A path from one site to another crosses several links, and other paths cross some of the same. The round trip of a path
is the sum of its links' delays, and so is its time per word, the Tw of Saad and El-Mahdy 2020, where links store and
forward: so both are found by :func:`metasched.placement.clusters.tomography.link_delays`. Whether times per word really
add up on these links the measurements say themselves: where the sums do not explain them, nothing follows for other
paths.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from metasched.placement.clusters.tomography import Tomography, link_delays
from metasched.sites.links import Probe
from metasched.sites.settings import Routing

#: Measurements of a path in one direction that are averaged at most, and how old each may be (s): a few per cent of a
#: path are more of a single link.
AVERAGED, WINDOW = 10, 7200.0
#: Nothing follows for other paths where the links explain the measured ones worse than to within this share.
EXPLAINED = 0.2
#: How long links may be counted as they were found last (s), unless something is measured.
FOUND_FOR = 60.0

Pair = frozenset[str]


@dataclass(frozen=True, slots=True)
class LinkEstimates:
    """The links between sites.

    Parameters
    ----------
    round_trips : their delays (s).
    word_times : seconds for a megabit.
    age : of the newest measurement of the path that was measured longest ago (s).
    """

    round_trips: Tomography
    word_times: Tomography
    age: float

    @property
    def explained(self) -> bool:
        """Whether sums over links explain what was measured, so that other paths may be concluded from them."""
        return max(self.round_trips.residual, self.word_times.residual) <= EXPLAINED

    def path(self, links: Sequence[str]) -> Probe | None:
        """What a probe of a path would find, None where the measurements do not determine it."""
        delay, word_time = self.round_trips.along(links), self.word_times.along(links)
        if not self.explained or not delay or not word_time:
            return None
        return Probe(1.0 / word_time, delay, self.age)

    def as_document(self) -> dict[str, Any]:
        """The links as a JSON document: bandwidths in Mbit/s, round trips in s."""
        links = [
            {
                "links": list(trip.links), "bandwidth": 1.0 / word.delay if word.delay > 0 else None,
                "round_trip": trip.delay, "identifiable": trip.identifiable, "paths": trip.ways,
            }
            for trip, word in zip(self.round_trips.chains, self.word_times.chains, strict=True)
        ]  # fmt: skip
        residual = {"bandwidth": self.word_times.residual, "round_trip": self.round_trips.residual}
        return {"links": links, "uncrossed": list(self.round_trips.uncrossed), "residual": residual,
                "explained": self.explained}  # fmt: skip


def estimated_links(
    routes: Mapping[Pair, Sequence[str]], measured: Mapping[Pair, Sequence[Probe]]
) -> LinkEstimates | None:
    """The links by the paths that were measured, None where none was.

    Parameters
    ----------
    routes : the links between two sites.
    measured : what was found between them; it is averaged, since links count alike in both directions.

    Examples
    --------
    >>> pairs = [frozenset(each) for each in ("ab", "ac", "bc")]
    >>> routes = {pair: sorted(pair) for pair in pairs}
    >>> found = estimated_links(routes, {pair: [Probe(500.0, 0.02, 0.0)] for pair in pairs})
    >>> [(each["links"], round(each["bandwidth"]), each["identifiable"]) for each in found.as_document()["links"]]
    [(['a'], 1000, True), (['b'], 1000, True), (['c'], 1000, True)]
    """
    pairs = [pair for pair in routes if measured.get(pair)]
    if not pairs:
        return None
    ways = [routes[pair] for pair in pairs]
    every = list(dict.fromkeys(link for way in routes.values() for link in way))
    trips = [np.mean([probe.round_trip for probe in measured[pair]]) for pair in pairs]
    words = [np.mean([1.0 / probe.bandwidth for probe in measured[pair]]) for pair in pairs]
    age = max(min(probe.age for probe in measured[pair]) for pair in pairs)
    return LinkEstimates(link_delays(ways, trips, every), link_delays(ways, words, every), age)


class SitePaths:
    """What the agents of all sites measured of the paths between them, and the links that follow.

    Parameters
    ----------
    routing : which links a path crosses; paths without a route are not kept.
    now : the time by a monotonic clock (s).
    """

    def __init__(self, routing: Routing, now: Callable[[], float]) -> None:
        self._routes: dict[Pair, Sequence[str]] = {frozenset(each.between): each.links for each in routing.route}
        self._now, self._lock = now, Lock()
        self._measured: dict[tuple[str, str], deque[tuple[float, Probe]]] = {}
        self._found: LinkEstimates | None = None
        self._found_at = -math.inf

    def measured(self, site: str, links: Mapping[str, Probe]) -> list[str]:
        """Keep what was measured from a site to others; the names of those to which no route is configured."""
        now = self._now()
        with self._lock:
            for other, probe in links.items():
                if frozenset((site, other)) in self._routes:
                    kept = self._measured.setdefault((site, other), deque(maxlen=AVERAGED))
                    at = now - probe.age
                    # A report whose answer was lost comes again.
                    if all(abs(at - before) > 1.0 for before, _ in kept):
                        kept.append((at, probe))
            self._found_at = -math.inf
        return [other for other in links if frozenset((site, other)) not in self._routes]

    def links(self) -> LinkEstimates | None:
        """The links by what was measured in the last two hours, None where nothing was."""
        now = self._now()
        with self._lock:
            if now - self._found_at > FOUND_FOR:
                recent: dict[Pair, list[Probe]] = {}
                for ends, kept in self._measured.items():
                    ages = [(now - at, probe) for at, probe in kept if now - at <= WINDOW]
                    recent.setdefault(frozenset(ends), []).extend(
                        Probe(probe.bandwidth, probe.round_trip, age) for age, probe in ages
                    )
                self._found, self._found_at = estimated_links(self._routes, recent), now
            return self._found

    def derived(self, here: str, sites: Sequence[str]) -> dict[str, Probe]:
        """What follows for the path from here to each site, where it does.

        Parameters
        ----------
        here, sites : names of sites.
        """
        found = self.links()
        if found is None:
            return {}
        ways = {site: self._routes.get(frozenset((here, site))) for site in sites}
        paths = {site: found.path(way) for site, way in ways.items() if way is not None}
        return {site: path for site, path in paths.items() if path is not None}

    def as_document(self) -> dict[str, Any] | None:
        """The links as a JSON document, None where no routes are configured or nothing was measured."""
        found = self.links()
        return None if found is None else found.as_document()
