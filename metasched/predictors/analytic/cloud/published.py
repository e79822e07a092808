"""The paper's model: n jobs circulate in one closed network of two queues a server, Eqs. (1)-(13)."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.cloud.hardware import Hardware
from metasched.predictors.analytic.cloud.workload import Workload
from metasched.queueing.single_class import mean_value_analysis


def visit_ratios(distribution: Ints, waiting_share: float) -> tuple[Floats, Floats]:
    """V_CPU_i and V_net_i of every server, Eqs. (11) and (12), both of shape (servers,).

    Parameters
    ----------
    distribution : processes on each server, shape (servers,).
    waiting_share : V_comm, the share of a job's cycle that is communication overhead; V_comp is the rest.

    Examples
    --------
    >>> visit_ratios(np.array([2, 2]), 0.5)
    (array([0.4375, 0.4375]), array([0.5, 0.5]))
    """
    n = distribution.sum()
    here = distribution / n
    local, remote = here * (distribution - 1) / n, (n - distribution) / n * here
    computing = 1.0 - waiting_share
    return np.asarray(here * computing + (local + remote) * waiting_share), np.asarray(2.0 * remote)


def execution_time(
    workload: Workload, hardware: Hardware, distribution: Ints, cpu_constant: float, net_constant: float
) -> float:
    """T = R s(n), seconds: Eq. (13) with R by mean value analysis.

    Demands are those of a whole run instead of one of its s(n) cycles, which multiplies R by s(n). Where a law falls
    below 0 far from the profiles, messages take no time.

    Parameters
    ----------
    workload : laws of the paper's two forms, :meth:`Workload.published`.
    hardware : its startup time is not used: the paper takes T_s = 0, Eq. (6).
    distribution : processes on each server, shape (servers,).
    cpu_constant, net_constant : CPU_Constant (s) and Net_Constant of Eqs. (8) and (9).
    """
    n = int(distribution.sum())
    computing = cpu_constant / (n * np.minimum(n, hardware.cores) * hardware.speed)  # (8)
    sent = max(float(workload.message_size(n)), 0.0) * max(float(workload.sends(n)), 0.0)
    cpu_visits, net_visits = visit_ratios(distribution, workload.waiting_share)
    demands = np.concatenate([cpu_visits * computing, net_visits * net_constant * sent * hardware.word_time])  # (9)
    return float(n / mean_value_analysis(demands, 0.0, n).throughput[-1])
