"""How long it takes to bring a job's data to a site."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Megabits in a gigabyte.
MEGABITS = 8000.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """The time to bring the data (s), None where it cannot be known, and why it is what it is.

    ``counted`` is what a comparison of sites counts for it (s).
    """

    seconds: float | None
    counted: float
    how: str


def transfers(
    sites: Collection[str], size: float | None, bandwidths: Mapping[str, float], held_by: Collection[str] = ()
) -> dict[str, Transfer]:
    """The time to bring the data to each site.

    A bandwidth that is not known counts as the lowest that is: a site gains nothing by what nobody knows of it.

    Parameters
    ----------
    sites : names of the sites.
    size : of the data (GB), None where it is not known.
    bandwidths : to each site where it is known (Mbit/s).
    held_by : sites that hold the data already.

    Examples
    --------
    >>> found = transfers(["a", "b", "c"], 10.0, {"a": 1000.0, "c": 500.0}, held_by=["c"])
    >>> [(each.seconds, each.counted) for each in found.values()]
    [(80.0, 80.0), (None, 160.0), (0.0, 0.0)]
    >>> transfers(["a"], None, {"a": 1000.0})["a"].how
    'the size of the data is unknown, so the time to transfer it is not counted'
    """
    lowest = min((width for name, width in bandwidths.items() if name in sites), default=None)
    found = {}
    for site in sites:
        if size == 0.0:
            found[site] = Transfer(0.0, 0.0, "")
        elif site in held_by:
            found[site] = Transfer(0.0, 0.0, "the data is there")
        elif size is None:
            how = "the size of the data is unknown, so the time to transfer it is not counted"
            found[site] = Transfer(None, 0.0, how)
        elif site in bandwidths:
            seconds = MEGABITS * size / bandwidths[site]
            found[site] = Transfer(seconds, seconds, f"{size:g} GB at {bandwidths[site]:g} Mbit/s")
        elif lowest is not None:
            how = f"the bandwidth to it is unknown, the lowest of the others is assumed, {lowest:g} Mbit/s"
            found[site] = Transfer(None, MEGABITS * size / lowest, how)
        else:
            how = "no bandwidth is known, so the time to transfer the data is not counted"
            found[site] = Transfer(None, 0.0, how)
    return found
