"""Explains in one sentence the rank of a placement.

The difference between two placements is put down to what made most of it: the predictor is asked what the better one
would take with the other's processors, CPU, bandwidth, wait, layout or model, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metasched.plain_numbers import number_of, plain, processes
from metasched.records import Place, Placement, ResourceSet

#: Significant digits that a number has at most, and the part of a time that is rounding.
DIGITS, ROUNDED = 17, 1e-9
#: The execution time (s) predicted on a cluster with a layout for processors, available CPU and bandwidth.
Time = Callable[[Place, int, float, float], float]


@dataclass(frozen=True, slots=True)
class Cause:
    """Finds the main cause of the difference between two placements."""

    time: Time

    def of(self, better: Placement, worse: Placement) -> str:
        """The main cause of the worse one's later completion, or of its earlier completion if that is so."""
        ours, theirs = better.resource_set, worse.resource_set
        alone, stretch = better.prediction.execution_time, better.slowdown
        now, place = stretch * alone, ours.place
        p, cpu, bandwidth = ours.processors, ours.available_cpu, ours.available_bandwidth
        times = [
            stretch * self.time(place, theirs.processors, cpu, bandwidth),
            stretch * self.time(place, p, theirs.available_cpu, bandwidth),
            stretch * self.time(place, p, cpu, theirs.available_bandwidth),
            now + worse.queue_wait - better.queue_wait,
            alone * worse.slowdown,
        ]
        if place != theirs.place:
            times.append(stretch * self.time(theirs.place, p, cpu, bandwidth))
        direction = 1.0 if worse.completion >= better.completion else -1.0
        most = max(direction * time for time in times)
        if most - direction * now <= ROUNDED * now:
            return "no difference according to the model"
        match [direction * time for time in times].index(most):
            case 0:
                instead = f"{p}" if theirs.threads == ours.threads else processes(p, ours.threads)
                return f"{processes(theirs.processors, theirs.threads)} instead of {instead}"
            case 1:
                return f"available CPU {_instead(theirs.available_cpu, cpu, decimals=2)}"
            case 2:
                return f"bandwidth {_instead(theirs.available_bandwidth, bandwidth)} Mbit/s"
            case 3:
                return f"a wait of {_instead(worse.queue_wait, better.queue_wait, decimals=0)} s"
            case 4:
                return f"jobs already running stretch it {_instead(worse.slowdown, stretch, decimals=2)} times"
        return "another cluster's model" if ours.cluster != theirs.cluster else _laid_out(theirs, ours)


def _instead(theirs: float, ours: float, decimals: int | None = None) -> str:
    """One number instead of another, with as many decimals or with four digits, and more where they look alike."""
    for more in range(DIGITS):
        words = [
            plain(each, 4 + more) if decimals is None else f"{each:.{decimals + more}f}" for each in (theirs, ours)
        ]
        if words[0] != words[1]:
            break
    return " instead of ".join(words)


def _laid_out(theirs: ResourceSet, ours: ResourceSet) -> str:
    """The layouts and the clocks of two sets as far as they differ."""
    both = theirs, ours
    limit, per_node = "", [each.layout.get("processes_per_node") for each in both]
    if per_node[0] == per_node[1]:  # they differ in how many there could be
        limit, per_node = "up to ", [each.processes_per_node for each in both]
    laid_out = [
        "any number of processes" if most is None else limit + number_of(int(most), "process", "processes")
        for most in per_node
    ]
    sides = [
        (
            f"{here} a node",
            f"{number_of(each.threads, 'thread')} a process",
            "the usual clock" if each.frequency is None else f"{each.frequency:g} MHz",
        )
        for each, here in zip(both, laid_out, strict=True)
    ]
    differ = [pair for pair in zip(*sides, strict=True) if pair[0] != pair[1]]
    return " instead of ".join(" and ".join(side) for side in zip(*differ, strict=True))


def explain_order(ranked: Sequence[Placement], cause: Cause, compared: int, shown: int | None) -> list[str]:
    """The reason of each placement of a ranking: the first against the second, the others against the first.

    Parameters
    ----------
    ranked : placements, best first.
    cause : finds what makes one placement slower than another.
    compared : how many resource sets were compared.
    shown : of how many the reasons are wanted, all where None.
    """
    if len(ranked) == 1:
        # Those compared are the best of their numbers of processors.
        only = ranked[0].resource_set
        alone = f"the best resource set of {processes(only.processors, only.threads)}"
        return [alone if compared == 1 else f"the best of {compared} resource sets compared"]
    best, second, *_ = ranked
    first = f"best; the next is {_compared(second, best)}: {cause.of(best, second)}"
    return [first, *(f"{_compared(other, best)}: {cause.of(best, other)}" for other in ranked[1:shown])]


def _compared(placement: Placement, best: Placement) -> str:
    change = placement.completion / best.completion - 1.0
    if abs(change) < 0.0005:
        return "as fast"
    return f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"
