"""Energy, power, clock and probability of success of a placement, in words."""

from __future__ import annotations

from metasched.plain_numbers import plain
from metasched.records import Placement


def energy_words(placement: Placement) -> str:
    """The known values of them; empty if nothing is known.

    >>> from metasched.records import Interval, Prediction, ResourceSet
    >>> chosen = ResourceSet("c", ("n0",), 1, 1.0, 90.0, frequency=1800.0)
    >>> run = Prediction(10.0, Interval(9.0, 11.0, 0.9), "")
    >>> energy_words(Placement(chosen, run, energy=500.0, success=0.9917))
    '500 J, 50 W on average, at 1800 MHz, 0.9917 probability that no node fails'
    """
    clock, parts = placement.resource_set.frequency, []
    if placement.energy is not None:
        parts.append(f"{plain(placement.energy)} J")
    if placement.power is not None:
        parts.append(f"{plain(placement.power)} W on average")
    if clock is not None:
        parts.append(f"at {clock:g} MHz")
    if placement.success is not None:
        doubt = placement.success_interval
        ends = "" if doubt is None else f" ({doubt.low:.4g} to {doubt.high:.4g} at {doubt.level:.0%})"
        parts.append(f"{placement.success:.4g} probability{ends} that no node fails")
    return ", ".join(parts)
