"""Explains in one sentence the rank of a placement.

The difference between two placements is put down to what made most of it: the predictor is asked what the better one
would take with the other's processors, CPU, bandwidth or wait, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metasched.plain_numbers import number_of, plain
from metasched.records import Place, Placement, ResourceSet

#: The execution time (s) predicted on a cluster with a layout for processors, available CPU and bandwidth.
Time = Callable[[Place, int, float, float], float]


@dataclass(frozen=True, slots=True)
class Cause:
    """Finds the main cause of the difference between two placements.

    Parameters
    ----------
    time : tells the times to compare.
    """

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
        if place != theirs.place and ours.cluster == theirs.cluster:
            times.append(stretch * self.time(theirs.place, p, cpu, bandwidth))
        direction = 1.0 if worse.completion >= better.completion else -1.0
        most = max(direction * time for time in times)
        if most <= direction * now:
            return (
                "another cluster's model" if ours.cluster != theirs.cluster else "no difference according to the model"
            )
        match [direction * time for time in times].index(most):
            case 0:
                return f"{number_of(theirs.processors, 'processor')} instead of {p}"
            case 1:
                return f"available CPU {theirs.available_cpu:.2f} instead of {cpu:.2f}"
            case 2:
                return f"bandwidth {plain(theirs.available_bandwidth)} instead of {plain(bandwidth)} Mbit/s"
            case 3:
                return f"a wait of {worse.queue_wait:.0f} instead of {better.queue_wait:.0f} s"
            case 4:
                return f"jobs already running stretch it {worse.slowdown:.2f} instead of {stretch:.2f} times"
        return f"{_said(theirs)} instead of {_said(ours)}"


def _said(chosen: ResourceSet) -> str:
    """The layout and the clock of a set in words."""
    clock = "" if chosen.frequency is None else f"{chosen.frequency:g} MHz"
    if clock and chosen.processes_per_node is None and chosen.threads == 1:
        return clock
    threads = f" of {chosen.threads} threads" if chosen.threads > 1 else ""
    per_node = chosen.layout.get("processes_per_node", "any")
    laid_out = f"{per_node} process{'' if per_node == 1 else 'es'} a node{threads}"
    return f"{laid_out} at {clock}" if clock else laid_out


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
        return ["the only resource set" if compared == 1 else f"the best of {compared} resource sets compared"]
    best, second, *_ = ranked
    first = f"best; the next is {_compared(second, best)}: {cause.of(best, second)}"
    return [first, *(f"{_compared(other, best)}: {cause.of(best, other)}" for other in ranked[1:shown])]


def _compared(placement: Placement, best: Placement) -> str:
    change = placement.completion / best.completion - 1.0
    if abs(change) < 0.0005:
        return "as fast"
    return f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"
