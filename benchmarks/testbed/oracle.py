"""How well a campaign could be predicted at best from the two minima: a model that knows the application's true form.

Work and traffic of each program are known from its source. Their coefficients are fitted by non-negative least squares
of relative errors to the training runs, and the predictions compared with the runs that followed, loads as observed.
What remains is what two minima cannot tell: loads that change while a run lasts, processes that wait for each other in
turn, slow links that meet in one exchange, and measurement error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.timeline import Floats
from metasched.records import Run

Terms = Callable[[Floats, Floats], list[Floats]]

#: Work of one process, in N and P: each term is divided by the available CPU.
WORK: dict[str, Terms] = {
    "cg": lambda n, p: [n**2 / p],
    "eigen": lambda n, p: [n**3 / p, n**2],
    "fft": lambda n, p: [n * np.log2(n) / p, n / p],
    "is": lambda n, p: [n * np.log2(n) / p, n / p, n * np.log2(p) / p],
    "md": lambda n, p: [n**2 / p],
    "poisson": lambda n, p: [n**2 / p],
    "ssor": lambda n, p: [n**2 / p],
    "twophase": lambda n, p: [n * np.log2(n) / p, n**2 / p * (2 - 1 / p)],
}
#: Traffic of one process, in N and P: each term is divided by the available bandwidth.
TRAFFIC: dict[str, Terms] = {
    "cg": lambda n, p: [n * (p - 1) / p],
    "eigen": lambda n, p: [n**2 / np.sqrt(p), n**2 * np.log2(p)],
    "fft": lambda n, p: [n * (p - 1) / p**2],
    "is": lambda n, p: [n * (p - 1) / p**2],
    "md": lambda n, p: [n * (p - 1) / p],
    "poisson": lambda n, p: [n + 0 * p],
    "ssor": lambda n, p: [n / np.sqrt(p)],
    "twophase": lambda n, p: [n * (p - 1) / p**2],
}


def terms(application: str, cluster: ClusterModel, runs: Sequence[Run]) -> Floats:
    """The true form's terms, those of work also over the clock where runs tell it; array of shape (runs, terms)."""
    n, p, cpu, bandwidth = np.array(
        [(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw) for run in runs]
    ).T
    sharers = np.ceil(p / cluster.node_count)  # processes that share the busiest link
    several = p > 1
    work = [term / cpu for term in WORK[application](n, p)]
    traffic = [several * sharers * term / bandwidth for term in TRAFFIC[application](n, p)]
    messages = [several * p, several * np.log2(p)]
    clocks = np.array([run.settings.frequency or np.nan for run in runs])
    # Some of the work is the processor's, some the memory's, which does not wait for the clock.
    paced = [] if np.isnan(clocks).any() else [term / clocks for term in work]
    return np.stack([*paced, *work, *traffic, *messages], axis=1)


def predicted(application: str, cluster: ClusterModel, runs: Sequence[Run]) -> Floats:
    """Times of the runs to predict, coefficients from the training runs alone."""
    matrix = terms(application, cluster, runs)
    time = np.array([run.execution_time for run in runs])
    train = np.array([run.phase == "train" for run in runs])
    weighted = matrix[train] / time[train, None]
    scale = weighted.max(axis=0)
    scale[scale == 0.0] = 1.0
    coefficients = nnls(weighted / scale, np.ones(len(weighted)))[0] / scale
    return np.asarray(matrix[~train] @ coefficients)


def errors(application: str, cluster: ClusterModel, runs: Sequence[Run]) -> Floats:
    """Percentage prediction errors of the runs to predict."""
    time = np.array([run.execution_time for run in runs if run.phase != "train"])
    return np.asarray(100.0 * np.abs(predicted(application, cluster, runs) / time - 1.0))
