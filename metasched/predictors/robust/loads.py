"""Runs whose loads were not measured: the usual loads replace them, and the run has a smaller weight.

A run without samples is still worth learning, since its execution time is known. Its loads are unknown, so in addition
to the noise its time has the variance that is caused by loads like those of the measured runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Observations
from metasched.arrays import Floats
from metasched.records import IDLE_BANDWIDTH, IDLE_CPU

#: Standard deviation of the logarithms of loads before any run was measured; idle nodes are then assumed, as in
#: requests.
UNKNOWN_SPREAD = 0.4
#: Weight of this prior deviation, as a number of measured runs.
WORTH = 2.0


@dataclass(frozen=True, slots=True)
class Loads:
    """The usual loads of an application's runs.

    Parameters
    ----------
    cpu, bandwidth : medians: share of a processor, and Mbit/s.
    cpu_spread, bandwidth_spread : standard deviations of their logarithms.
    varied : whether measured loads differed.
    known : whether CPU, and bandwidth, of any run was measured.

    Examples
    --------
    >>> runs = Observations.of([1, 2], [1, 1], [0.5, np.nan], [90.0, np.nan], [3.0, 5.0])
    >>> whole, cpu, _ = Loads.of(runs).filled(runs)
    >>> whole.cpu, cpu.round(2)
    (array([0.5, 0.5]), array([0.  , 0.33]))
    """

    cpu: float
    bandwidth: float
    cpu_spread: float
    bandwidth_spread: float
    varied: bool
    known: tuple[bool, bool] = (True, True)

    @classmethod
    def of(cls, runs: Observations) -> Loads:
        """The usual loads of some runs."""
        cpu, cpu_spread = _usual(runs.cpu, IDLE_CPU)
        bandwidth, bandwidth_spread = _usual(runs.bw, IDLE_BANDWIDTH)
        found = [np.unique(values[~np.isnan(values)]) for values in (runs.cpu, runs.bw)]
        varied, known = any(len(each) > 1 for each in found), (bool(len(found[0])), bool(len(found[1])))
        return cls(cpu, bandwidth, cpu_spread, bandwidth_spread, varied, known)

    def filled(self, runs: Observations) -> tuple[Observations, Floats, Floats]:
        """The runs with the usual loads where none were measured, and the spreads of log CPU and log bandwidth there.

        Returns
        -------
        runs, cpu_spread, bandwidth_spread : the spreads of shape (n,), 0 where the load was measured.
        """
        cpu, bandwidth = np.isnan(runs.cpu), np.isnan(runs.bw)
        whole = replace(runs, cpu=np.where(cpu, self.cpu, runs.cpu), bw=np.where(bandwidth, self.bandwidth, runs.bw))
        return whole, np.where(cpu, self.cpu_spread, 0.0), np.where(bandwidth, self.bandwidth_spread, 0.0)


def _usual(values: Floats, unknown: float) -> tuple[float, float]:
    known = np.log(values[~np.isnan(values)])
    if not len(known):
        # If no load was measured, the effect of loads is already part of the scatter of the runs.
        return unknown, UNKNOWN_SPREAD * WORTH / (WORTH + len(values))
    middle = float(np.median(known))
    squares = float(np.sum((known - middle) ** 2)) + WORTH * UNKNOWN_SPREAD**2
    return float(np.exp(middle)), float(np.sqrt(squares / (len(known) + WORTH)))
