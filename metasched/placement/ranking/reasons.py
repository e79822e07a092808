"""Explains in one sentence the rank of a placement.

The difference between two placements is put down to what made most of it: the predictor is asked what the better one
would take with the other's processors, CPU, bandwidth or wait, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from metasched.plain_numbers import number_of, plain
from metasched.records import Place, Placement, ResourceSet

#: The execution time (s) predicted on a cluster with a layout for processors, available CPU and bandwidth; None where
#: it was not computed.
Time = Callable[[Place, int, float, float], float | None]


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
        now = better.slowdown * better.prediction.execution_time
        shares = {
            f"{number_of(theirs.processors, 'processor')} instead of {ours.processors}": self._time(
                better, processors=theirs.processors
            ),
            f"available CPU {theirs.available_cpu:.2f} instead of {ours.available_cpu:.2f}": self._time(
                better, cpu=theirs.available_cpu
            ),
            f"bandwidth {plain(theirs.available_bandwidth)} instead of {plain(ours.available_bandwidth)} Mbit/s": (
                self._time(better, bandwidth=theirs.available_bandwidth)
            ),
            f"a wait of {worse.queue_wait:.0f} instead of {better.queue_wait:.0f} s": now
            + worse.queue_wait
            - better.queue_wait,
            f"jobs already running stretch it {worse.slowdown:.2f} instead of {better.slowdown:.2f} times": (
                better.prediction.execution_time * worse.slowdown
            ),
        }
        if ours.place != theirs.place and ours.cluster == theirs.cluster:
            laid_out = self.time(theirs.place, ours.processors, ours.available_cpu, ours.available_bandwidth)
            if laid_out is not None:
                shares[f"{_said(theirs)} instead of {_said(ours)}"] = better.slowdown * laid_out
        direction = 1.0 if worse.completion >= better.completion else -1.0
        cause, time = max(shares.items(), key=lambda share: direction * share[1])
        if direction * (time - now) <= 0:
            return (
                "another cluster's model" if ours.cluster != theirs.cluster else "no difference according to the model"
            )
        return cause

    def _time(
        self,
        placement: Placement,
        *,
        processors: int | None = None,
        cpu: float | None = None,
        bandwidth: float | None = None,
    ) -> float:
        chosen = placement.resource_set
        time = self.time(
            chosen.place,
            chosen.processors if processors is None else processors,
            chosen.available_cpu if cpu is None else cpu,
            chosen.available_bandwidth if bandwidth is None else bandwidth,
        )
        if time is None:
            raise KeyError(f"no time was requested for {chosen.place}")
        return placement.slowdown * time


def _said(chosen: ResourceSet) -> str:
    """The layout and the clock of a set in words."""
    clock = "" if chosen.frequency is None else f"{chosen.frequency:g} MHz"
    if clock and chosen.processes_per_node is None and chosen.threads == 1:
        return clock
    threads = f" of {chosen.threads} threads" if chosen.threads > 1 else ""
    per_node = chosen.layout.get("processes_per_node", "any")
    laid_out = f"{per_node} process{'' if per_node == 1 else 'es'} a node{threads}"
    return f"{laid_out} at {clock}" if clock else laid_out


def explain_order(ranked: Sequence[Placement], cause: Cause, compared: int, shown: int | None) -> tuple[Placement, ...]:
    """Give each placement of a ranking its reason: the first against the second, the others against the first.

    Parameters
    ----------
    ranked : placements, best first.
    cause : finds what makes one placement slower than another.
    compared : how many resource sets were compared.
    shown : of how many the reasons are wanted, all where None.
    """
    if not ranked:
        return ()
    best = ranked[0]
    if len(ranked) == 1:
        alone = "the only resource set" if compared == 1 else f"the best of {compared} resource sets compared"
        return (replace(best, reason=alone),)
    reasons = [why_best(best, ranked[1], cause)]
    reasons += [f"{_compared(other, best)}: {cause.of(best, other)}" for other in ranked[1:shown]]
    return tuple(replace(placement, reason=reason) for placement, reason in zip(ranked[:shown], reasons, strict=True))


def why_best(best: Placement, second: Placement, cause: Cause) -> str:
    """The reason why the best placement is better than the next."""
    return f"best; the next is {_compared(second, best)}: {cause.of(best, second)}"


def _compared(placement: Placement, best: Placement) -> str:
    if best.completion <= 0.0:  # a time too short for any number
        return "slower" if placement.completion > 0.0 else "as fast"
    change = placement.completion / best.completion - 1.0
    if abs(change) < 0.0005:
        return "as fast"
    return f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"
