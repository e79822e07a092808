"""The baseline that the paper compares itself with: scalability analysis after Amdahl.

Shi et al., Program scalability analysis for HPC cloud, SC 2012: the time is the
serial part, the parallel part over n, and the communication volume over the network's speed. It knows nothing of cores
that are shared, of messages that stay within a server, or of messages that wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.analytic.cloud.hardware import Hardware
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.cloud.workload import Workload


@dataclass(frozen=True)
class ScalabilityAnalysis:
    """Amdahl's law with communication.

    Parameters
    ----------
    workload : laws of the communication.
    serial, parallel : seconds on one processor.

    Examples
    --------
    >>> profiles = [Profile(n, 10.0, 1000.0, 0.0, 1.0 + 8.0 / n) for n in (2, 4, 8)]
    >>> analysis = ScalabilityAnalysis.fit(profiles)
    >>> round(analysis.serial, 3), round(analysis.parallel, 3)
    (1.0, 8.0)
    """

    workload: Workload
    serial: float
    parallel: float

    @classmethod
    def fit(cls, profiles: Sequence[Profile]) -> ScalabilityAnalysis:
        """Fit both parts to the computation times of profiled runs, relative least squares."""
        computing = np.array([profile.computation_time for profile in profiles])
        columns = np.array([[1.0, 1.0 / profile.processes] for profile in profiles])
        found, _ = scipy.optimize.nnls(columns / computing[:, None], np.ones(len(profiles)))
        return cls(Workload.of(profiles), float(found[0]), float(found[1]))

    def execution_time(self, hardware: Hardware, processes: ArrayLike) -> Floats:
        """T for numbers of processes, one to a processor, all messages over the network.

        Parameters
        ----------
        hardware : what it runs on; times of its network in s.
        processes : numbers of processes, shape (k,). The times have the same shape, in s.
        """
        n = np.asarray(processes, dtype=float)
        message = hardware.startup_time + self.workload.message_size(n) * hardware.word_time
        communication = np.where(n > 1, self.workload.sends(np.maximum(n, 2.0)) * message, 0.0)
        return np.asarray(self.serial + self.parallel / n + communication)
