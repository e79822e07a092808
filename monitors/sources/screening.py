"""Samples that no node could have are refused with a reason, those that are nearly right are repaired: :func:`screen`.

Whatever comes in from elsewhere passes here before it is stored or believed, so that one broken sensor or clock cannot
poison a forecast. The rules are these and no others:

=================  =====================================================================================
refused
not a number       a value is NaN or infinite
negative           less than nothing is free, by more than rounding explains
above capacity     more than a whole processor, or than the fastest link, is free, by more than rounding explains
from the future    its time lies further ahead than clocks differ
too old            it is older than samples are kept
duplicate          the node has another sample of that moment in the same batch; the first counts
unknown node       the node is in no cluster
repaired
clamped            a share that rounding has put outside [0, 1], or a rate below 0: moved to the end of the range
put in order       it came after a younger one of its node: it takes its place in time, and the younger stays the newest
=================  =====================================================================================
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Refusal = Literal[
    "not a number", "negative", "above capacity", "from the future", "too old", "duplicate", "unknown node"
]
Repair = Literal["clamped", "put in order"]
REFUSALS: tuple[Refusal, ...] = get_args(Refusal)
REPAIRS: tuple[Repair, ...] = get_args(Repair)
#: Time (s), available CPU, available bandwidth (Mbit/s).
Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of valid samples.

    Parameters
    ----------
    ahead : how far clocks may differ (s).
    oldest : how old a sample may be (s).
    bandwidth : the fastest link of any node (Mbit/s).
    slack : how far a share, or a part of ``bandwidth``, may lie outside its range by rounding.
    """

    ahead: float = 60.0
    oldest: float = math.inf
    bandwidth: float = 1e6
    slack: float = 0.01


@dataclass(frozen=True, slots=True)
class Screened:
    """The accepted samples of a batch, ascending in time, and the numbers of refused and repaired ones, by reason."""

    kept: tuple[Triple, ...]
    refused: Counter[Refusal] = field(default_factory=Counter)
    repaired: Counter[Repair] = field(default_factory=Counter)


def screen(
    samples: Iterable[Triple], now: float, rules: Rules = Rules(), *, newest: float = -math.inf, known: bool = True
) -> Screened:
    """Screen some samples of one node.

    Parameters
    ----------
    samples : in any order.
    now : seconds since 1970.
    rules : what is believed.
    newest : time of the newest sample of the node that came before (s).
    known : whether there is such a node.

    Returns
    -------
    Screened; every sample is kept or counted as refused, exactly once.

    Examples
    --------
    >>> nan = float("nan")
    >>> found = screen([(30.0, 0.5, 90.0), (20.0, 1.004, 90.0), (10.0, nan, 90.0), (999.0, 0.5, 90.0)], now=35.0)
    >>> found.kept
    ((20.0, 1.0, 90.0), (30.0, 0.5, 90.0))
    >>> dict(found.refused), dict(found.repaired)
    ({'not a number': 1, 'from the future': 1}, {'clamped': 1, 'put in order': 1})
    """
    given = list(samples)
    refused: Counter[Refusal] = Counter()
    repaired: Counter[Repair] = Counter()
    if not known:
        refused["unknown node"] = len(given)
        return Screened((), +refused)
    kept: dict[float, Triple] = {}
    oldest, latest = now - rules.oldest, now + rules.ahead
    for time, cpu, bandwidth in given:
        # Nearly all samples come in order and have nothing to be refused or repaired for.
        usual = oldest < time <= latest and 0.0 <= cpu <= 1.0 and 0.0 <= bandwidth <= rules.bandwidth
        if usual and time > newest and time not in kept:
            newest, kept[time] = time, (time, cpu, bandwidth)
        elif reason := _why_not(time, cpu, bandwidth, now, rules):
            refused[reason] += 1
        elif time in kept:
            refused["duplicate"] += 1
        else:
            sound = (min(max(cpu, 0.0), 1.0), min(max(bandwidth, 0.0), rules.bandwidth))
            repaired["clamped"] += sound != (cpu, bandwidth)
            repaired["put in order"] += time < newest
            newest = max(newest, time)
            kept[time] = (time, *sound)
    return Screened(tuple(sorted(kept.values())), refused, +repaired)


def sound(time: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike) -> NDArray[np.bool_]:
    """Which samples of stored columns are valid: arrays of one shape, True for valid samples.

    A database may be written to by others; this is the last look before a forecast.

    Parameters
    ----------
    time : of each sample (s), shape (t,).
    available_cpu : share of a processor, shape (t,).
    available_bandwidth : Mbit/s, shape (t,).

    Examples
    --------
    >>> sound([0.0, 1.0, 2.0], [0.5, np.nan, 7.0], [90.0, 90.0, 90.0]).tolist()
    [True, False, False]
    """
    columns = (time, available_cpu, available_bandwidth)
    moments, cpu, bandwidth = (np.asarray(column, dtype=np.float64) for column in columns)
    there: NDArray[np.bool_] = (
        np.isfinite(moments) & (cpu >= 0.0) & (cpu <= 1.0) & (bandwidth >= 0.0) & (bandwidth < np.inf)
    )
    return there


def _why_not(time: float, cpu: float, bandwidth: float, now: float, rules: Rules) -> Refusal | None:
    if not (math.isfinite(time) and math.isfinite(cpu) and math.isfinite(bandwidth)):
        return "not a number"
    if time > now + rules.ahead:
        return "from the future"
    if time < now - rules.oldest:
        return "too old"
    share = bandwidth / rules.bandwidth
    if cpu < -rules.slack or share < -rules.slack:
        return "negative"
    if cpu > 1.0 + rules.slack or share > 1.0 + rules.slack:
        return "above capacity"
    return None
