"""The paper's model: n jobs circulate in one closed network of two queues a server, Eqs. (1)-(13)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metasched.contention.single_class import mean_value_analysis
from metasched.predictors.cloud.hardware import Hardware
from metasched.predictors.cloud.workload import Workload
from metasched.predictors.contract import Floats


def visit_ratios(distribution: NDArray[np.int64], waiting_share: float) -> tuple[Floats, Floats]:
    """V_CPU_i and V_net_i of every server, both of shape (servers,).

    Examples
    --------
    >>> visit_ratios(np.array([2, 2]), 0.5)
    (array([0.4375, 0.4375]), array([0.5, 0.5]))
    """
    n = distribution.sum()
    here = distribution / n
    local, remote = here * (distribution - 1) / n, (n - distribution) / n * here
    computing = 1.0 - waiting_share
    cpu = here * computing + np.maximum(local, 0.0) * waiting_share + remote * waiting_share  # (11)
    return np.asarray(cpu), np.asarray(2.0 * remote)  # (12)


def execution_time(
    workload: Workload,
    hardware: Hardware,
    distribution: NDArray[np.int64],
    cpu_constant: float,
    net_constant: float,
) -> float:
    """T = R s(n), seconds, for one distribution of shape (servers,)."""
    n = int(distribution.sum())
    sends = float(workload.sends(n)) if n > 1 else 1.0
    used = np.minimum(np.maximum(distribution, 1), hardware.cores)
    cpu_service = cpu_constant / (sends * n * used * hardware.speed)  # (8), for each server its own cores and speed
    message = hardware.startup_time + float(workload.message_size(n)) * hardware.word_time  # (5)
    cpu_visits, net_visits = visit_ratios(distribution, workload.waiting_share)
    demands = np.concatenate([cpu_visits * cpu_service, net_visits * net_constant * message])  # (9)
    response_time = n / mean_value_analysis(demands, 0.0, n).throughput[-1]
    return float(response_time * sends)  # (13)
