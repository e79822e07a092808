"""How fast data is brought to a site: what probes, other paths, transfers and the configuration say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from metasched.plain_numbers import plain, span

#: A probe older than this (s) is not preferred to what earlier transfers showed.
STALE = 3600.0


@dataclass(frozen=True, slots=True)
class SiteLink:
    """The link to a site.

    Parameters
    ----------
    bandwidth : Mbit/s.
    round_trip : s, None where it was not measured.
    age : of the measurement (s), None where there was none.
    source : what says so.
    """

    bandwidth: float
    round_trip: float | None = None
    age: float | None = None
    source: Literal["configured", "transfers", "probes", "routes"] = "configured"

    def words(self) -> str:
        """The bandwidth, and how old it is where it was measured by probes.

        >>> SiteLink(10_000.0, 0.01, 90.0, "probes").words()
        '10000 Mbit/s, measured 90.0 s ago'
        """
        width = f"{plain(self.bandwidth)} Mbit/s"
        if self.source == "routes":
            return f"{width}, as the links on the way show"
        return width if self.source != "probes" or self.age is None else f"{width}, measured {span(self.age)} ago"


@dataclass(frozen=True, slots=True)
class Probe:
    """What probes found of the link to a site: Mbit/s, the round trip (s), and how long ago (s)."""

    bandwidth: float
    round_trip: float
    age: float


def site_link(
    configured: float | None,
    transferred: float | None,
    probe: Probe | None,
    share: float | None = None,
    derived: Probe | None = None,
) -> SiteLink | None:
    """What is known of the link to a site, None where nothing is.

    Probes are newer than transfers, but transfers are what counts: copies are encrypted, and written to disks. So
    where both are known, what probes find is scaled by what transfers got of it.

    Parameters
    ----------
    configured : bandwidth as the administrator states it (Mbit/s).
    transferred : that transfers got (Mbit/s).
    probe : what probes found.
    share : what transfers got of the bandwidth that probes had found then.
    derived : what follows from newer probes between other sites; it counts where this path was not probed of late.

    Examples
    --------
    >>> site_link(500.0, None, None).bandwidth, site_link(500.0, 300.0, None).bandwidth
    (500.0, 300.0)
    >>> site_link(500.0, 300.0, Probe(800.0, 0.02, 60.0), 0.5)
    SiteLink(bandwidth=400.0, round_trip=0.02, age=60.0, source='probes')
    >>> site_link(500.0, 300.0, Probe(800.0, 0.02, 86_400.0), 0.5).source
    'transfers'
    >>> site_link(500.0, 300.0, None, None, Probe(700.0, 0.03, 60.0)).words()
    '700 Mbit/s, as the links on the way show'
    """
    probed = None
    if probe is not None:
        probed = SiteLink(probe.bandwidth * (share or 1.0), probe.round_trip, probe.age, "probes")
        if probe.age <= STALE:
            return probed
    if derived is not None:
        return SiteLink(derived.bandwidth * (share or 1.0), derived.round_trip, derived.age, "routes")
    if transferred is not None:
        return SiteLink(transferred, None if probe is None else probe.round_trip, None, "transfers")
    return SiteLink(configured) if configured is not None else probed


def as_document(link: SiteLink | None) -> Mapping[str, Any]:
    """A link as part of a JSON document."""
    if link is None:
        return {"bandwidth": None, "round_trip": None, "bandwidth_age": None, "bandwidth_source": None}
    return {
        "bandwidth": link.bandwidth, "round_trip": link.round_trip, "bandwidth_age": link.age,
        "bandwidth_source": link.source,
    }  # fmt: skip


def lowest(links: Mapping[str, SiteLink], sites: Sequence[str]) -> float | None:
    """The lowest bandwidth to any of these sites (Mbit/s), None where none is known."""
    return min((link.bandwidth for name, link in links.items() if name in sites), default=None)
