"""The time to transfer a job's data to a site."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from metasched.plain_numbers import plain
from metasched.sites.links import SiteLink, lowest

#: Megabits in a gigabyte.
MEGABITS = 8000.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """The time to transfer the data (s), None if it is unknown, and its explanation.

    ``counted`` is what a comparison of sites counts for it (s).
    """

    seconds: float | None
    counted: float
    how: str


def transfers(
    sites: Collection[str], size: float | None, links: Mapping[str, SiteLink], held_by: Collection[str] = ()
) -> dict[str, Transfer]:
    """The time to bring the data to each site: a round trip, and the data by the bandwidth.

    A bandwidth that is not known counts as the lowest that is: a site gains nothing by a bandwidth that is unknown.

    Parameters
    ----------
    sites : names of the sites.
    size : of the data (GB), None where it is not known.
    links : to each site where it is known.
    held_by : sites that hold the data already.

    Examples
    --------
    >>> links = {"a": SiteLink(1000.0, 0.5), "c": SiteLink(500.0)}
    >>> found = transfers(["a", "b", "c"], 10.0, links, held_by=["c"])
    >>> [(each.seconds, each.counted) for each in found.values()]
    [(80.5, 80.5), (None, 160.0), (0.0, 0.0)]
    >>> transfers(["a"], None, links)["a"].how
    'the size of the data is unknown, so the time to transfer it is not counted'
    """
    least, found = lowest(links, [*sites]), {}
    for site in sites:
        if size == 0.0:
            found[site] = Transfer(0.0, 0.0, "")
        elif site in held_by:
            found[site] = Transfer(0.0, 0.0, "the data is there")
        elif size is None:
            how = "the size of the data is unknown, so the time to transfer it is not counted"
            found[site] = Transfer(None, 0.0, how)
        elif site in links:
            link = links[site]
            seconds = (link.round_trip or 0.0) + MEGABITS * size / link.bandwidth
            found[site] = Transfer(seconds, seconds, f"{size:g} GB at {link.words()}")
        elif least is not None:
            how = f"the bandwidth to it is unknown, the lowest of the others is assumed, {plain(least)} Mbit/s"
            found[site] = Transfer(None, MEGABITS * size / least, how)
        else:
            how = "no bandwidth is known, so the time to transfer the data is not counted"
            found[site] = Transfer(None, 0.0, how)
    return found
