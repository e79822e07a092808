"""The time of a run by blocks of hardware, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.signature.rules.application import Application
from metasched.signature.times.clocked_runs import ClockedRun, composed
from metasched.signature.times.costs import BlockCosts
from metasched.signature.times.hardware import LABEL, Hardware
from metasched.signature.times.timed import Engine, PhaseTime, Timed
from metasched.simulation.outcome import concluded
from metasched.simulation.system import Placement

#: How much slower computation is made to see what waits for it.
SLOWER = 1.0 + 2.0**-6


def by_blocks(application: Application, hardware: Hardware) -> Engine:
    """An engine that runs the application's phases on blocks of hardware."""
    slower = replace(hardware, computing=SLOWER * hardware.computing)

    def timed(count: int) -> Timed:
        once, slowed = _timed_on(application, count, (hardware, slower))
        return replace(once, messages=tuple(_taken(*both) for both in zip(once.phases, slowed.phases, strict=True)))

    return timed


def apart(application: Application, hardware: Hardware, count: int) -> Floats:
    """What the time of each phase is made of: an array of shape (phases, 3), computation, latencies, bytes (s).

    The time is homogeneous in the three, so each part is what it adds when it takes twice as long: waiting for the
    computation of others is computation.
    """
    once, computing, sending = (
        np.array([each.weight * each.time for each in of_count.phases])
        for of_count in _timed_on(
            application, count, (hardware, replace(hardware, computing=2.0), replace(hardware, sending=2.0))
        )
    )
    work, bytes_ = np.maximum(computing - once, 0.0), np.maximum(sending - once, 0.0)
    # Which process ends last may change, and with it what a phase takes there: the sum is that of the whole run.
    over = np.maximum((work + bytes_).sum() / max(once.sum(), 1e-30), 1.0)
    work, bytes_ = work / over, bytes_ / over
    left = max(once.sum() - work.sum() - bytes_.sum(), 0.0)
    waits = np.maximum(once - work - bytes_, 0.0)
    return np.stack([work, waits * (left / waits.sum() if waits.sum() else 0.0), bytes_], axis=1)


def _taken(once: PhaseTime, slowed: PhaseTime) -> float:
    """What messages take of a phase (s): what does not grow with the time that computation takes."""
    work = (slowed.time - once.time) / (SLOWER - 1.0)
    return min(max(once.time - work, 0.0), once.communication)


def _timed_on(application: Application, count: int, machines: Sequence[Hardware]) -> list[Timed]:
    """The times by blocks for ``count`` processes on each of several machines."""
    placements = [each.placement(count) for each in machines]
    costs = [BlockCosts(each, LABEL) for each in placements]
    runs = composed(application, count, lambda _: costs)
    return [_timed(one, placement) for one, placement in zip(runs, placements, strict=True)]


def _timed(whole: ClockedRun, placement: Placement) -> Timed:
    clocks = whole.clocks
    outcome = concluded(
        placement.system, placement, {LABEL: clocks.end}, {LABEL: np.asarray(clocks.computing.sum(axis=1))}
    )
    return Timed(whole.phases, energy=outcome.energy, success=outcome.success, warnings=whole.warnings)
