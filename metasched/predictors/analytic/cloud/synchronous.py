"""The refined model: processes stay on their servers, compute side by side, and meet in exchanges.

Where the paper lets jobs roam among exponential queues, processes of an MPI application have a core each (or share it
evenly) and send at the same moment. So the jobs of a server visit its CPU as a batch, min(n_i, c_i) at a time, and its
network interface as a batch, one message at a time: the residence of a batch is that of its last job. Partners are
near each other as the profile says, and the slowest server sets the pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.cloud.hardware import Hardware
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.cloud.workload import Workload


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of computation and of communication within a server, fitted to the profiles.

    Parameters
    ----------
    parallel, serial : seconds of computation on one core, shared out over the processes or done by each.
    uneven : waiting for the slowest process, as a share of the computation.
    exchange : seconds of an exchange whatever is sent.
    byte : seconds for a byte that one process of the server sends to another.
    """

    parallel: float
    serial: float
    uneven: float
    exchange: float
    byte: float

    @classmethod
    def of(
        cls, profiles: Sequence[Profile], workload: Workload, hardware: Hardware, distributions: Sequence[Ints]
    ) -> Costs:
        """Non-negative relative least squares, first on the computation, then on the waiting.

        Parameters
        ----------
        profiles : measured runs.
        workload : exchanges, messages and bytes by the number of processes.
        hardware : of the servers.
        distributions : processes on each server in each of the runs.
        """
        rows = [_Terms.of(workload, hardware, distribution) for distribution in distributions]
        computing = np.array([profile.computation_time for profile in profiles])
        time = np.array([profile.execution_time for profile in profiles])
        parallel, serial = _solve(
            [[row.slowness.max() / row.processes, row.slowness.max()] for row in rows], computing, computing
        )
        waiting = np.array([profile.waiting_time for profile in profiles])
        # Waiting for other servers is separated here, and scaled by Net_Constant later.
        columns = [
            [done, row.exchanges, row.local_bytes.max(), row.remote.max()]
            for done, row in zip(computing, rows, strict=True)
        ]
        uneven, exchange, byte, _ = _solve(columns, waiting, time)
        return cls(parallel, serial, uneven, exchange, byte)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The factors of each cost for one distribution, at each server that has processes.

    Parameters
    ----------
    processes : n.
    crowd : processes to a core, at least 1.
    slowness : seconds of a core for a second of the reference core, times ``crowd``.
    exchanges : how often a process waits for messages.
    local_bytes : bytes sent within the server.
    remote : seconds in which messages leave the server.
    apart : share of the processes that one need not wait for in an exchange.
    """

    processes: int
    crowd: Floats
    slowness: Floats
    exchanges: float
    local_bytes: Floats
    remote: Floats
    apart: float

    @classmethod
    def of(cls, workload: Workload, hardware: Hardware, distribution: Ints) -> _Terms:
        n = int(distribution.sum())
        busy = distribution > 0
        here = distribution[busy].astype(float)
        crowd = np.maximum(1.0, here / hardware.cores[busy])
        slowness = crowd / hardware.speed[busy]
        if n == 1:
            return cls(n, crowd, slowness, 0.0, np.zeros(1), np.zeros(1), 1.0)
        sends, size = float(workload.sends(n)), float(workload.message_size(n))
        exchanges = float(workload.exchanges(n))
        out = workload.locality.leaving(distribution)[busy]
        batch = here * sends / exchanges
        # An exchange is held up when any message of the server's batch leaves it.
        held_up = 1.0 - (1.0 - out) ** np.maximum(batch, 1.0)
        alone, filled = held_up * hardware.word_time, batch * out * hardware.link_word_time
        seconds = held_up * hardware.startup_time + np.maximum(alone, filled) * size
        apart = max(0.0, 1.0 - sends / exchanges / (n - 1))
        return cls(n, crowd, slowness, exchanges, here * sends * (1.0 - out) * size, exchanges * seconds, apart)


def execution_time(
    workload: Workload, costs: Costs, hardware: Hardware, distribution: Ints, cpu_constant: float, net_constant: float
) -> float:
    """T (s) for one distribution of processes, shape (servers,); both constants multiply their part, 1 changes none.

    Parameters
    ----------
    workload : exchanges, messages and bytes by the number of processes.
    costs : seconds of the parts, as fitted to profiles.
    hardware : of the servers.
    distribution : processes on each server, shape (servers,).
    cpu_constant, net_constant : factors of computation and of communication between servers.
    """
    terms = _Terms.of(workload, hardware, distribution)
    computing = cpu_constant * terms.slowness * (costs.parallel / terms.processes + costs.serial)
    communication = costs.exchange * terms.exchanges + costs.byte * terms.local_bytes + net_constant * terms.remote
    # Where processes share cores, one computes while another waits, unless it waits for all the others.
    hidden = computing * (1.0 - 1.0 / terms.crowd) * terms.apart
    uneven = costs.uneven if terms.processes > 1 else 0.0
    return float((computing * (1.0 + uneven) + np.maximum(communication - hidden, 0.0)).max())


def _solve(columns: Sequence[Sequence[float]], target: Floats, scale: Floats) -> list[float]:
    """Non-negative least squares with rows over ``scale``, columns brought to one length first."""
    matrix = np.asarray(columns, dtype=float) / scale[:, None]
    length = np.sqrt((matrix**2).sum(axis=0))
    length[length == 0] = 1.0
    found, _ = scipy.optimize.nnls(matrix / length, target / scale)
    return [float(value) for value in found / length]
