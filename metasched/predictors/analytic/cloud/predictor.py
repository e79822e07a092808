"""The cloud model behind the predictor contract: profiles and hardware first, runs to correct it later.

Available CPU slows all cores, available bandwidth replaces the word time where it is the smaller. The profiles stand
for one problem size; the runs say how the time grows with it and how far the model is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.analytic.cloud.hardware import Hardware
from metasched.predictors.analytic.cloud.model import CloudModel, Method
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.log_regression import LogRegression
from metasched.records import Run, check_above_zero

#: Runs that are kept.
_CAPACITY = 512


class CloudPredictor(LogRegression):
    """An application that was profiled, on servers that were described.

    Parameters
    ----------
    profiles : of small runs, all on the first server.
    hardware : servers to run on; processes fill them one by one.
    problem_size : N that was profiled.
    method : which network.
    application, cluster : what it models; those of the first run where empty.

    Examples
    --------
    >>> from metasched.predictors.analytic.cloud.hardware import Server
    >>> from metasched.records import Request
    >>> profiles = [Profile(n, 100.0, 1000.0, 0.01, 16.0 / n + 0.01) for n in (2, 4, 8)]
    >>> predictor = CloudPredictor(profiles, Hardware((Server("a", 16),), 1e-9), problem_size=1000)
    >>> round(predictor.predict(Request(1000, 16, 1.0, 1000.0)).execution_time, 2)
    1.01
    """

    name = "cloud"

    def __init__(
        self,
        profiles: Sequence[Profile],
        hardware: Hardware,
        *,
        problem_size: float,
        method: Method = "synchronous",
        application: str = "",
        cluster: str = "",
    ) -> None:
        super().__init__(application, cluster, capacity=_CAPACITY)
        self.profiles = tuple(profiles)
        check_above_zero("the problem size profiled", problem_size)
        self.model = CloudModel.fit(profiles, hardware, method=method)
        self.hardware = hardware
        self.problem_size = problem_size
        #: How the logarithm of the time grows with that of N, and what it is off by at the size profiled.
        self.growth, self.level = 1.0, 0.0

    def fit(self, runs: Iterable[Run]) -> CloudPredictor:
        """Learn growth and level from runs; without any the profiles alone answer."""
        runs = list(runs)
        if runs:
            super().fit(runs)
        return self

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        left = log_time - self._modelled(points)
        size = points[:, 0] - np.log(self.problem_size)
        if np.ptp(size) > 0.1:
            self.growth, self.level = (float(value) for value in np.polyfit(size, left, 1))
        else:
            self.level = float(np.median(left[-20:] - self.growth * size[-20:]))

    def _log_time(self, points: Floats) -> Floats:
        size = points[:, 0] - float(np.log(self.problem_size))
        return self._modelled(points) + self.growth * size + self.level

    def _facts(self) -> Mapping[str, Any]:
        return {
            "cpu_constant": self.model.cpu_constant,
            "net_constant": self.model.net_constant,
            "message_size": str(self.model.workload.message_size),
            "sends": str(self.model.workload.sends),
            "growth": self.growth,
        }

    def _modelled(self, points: Floats) -> Floats:
        """Logarithms of the model's times at the size profiled, for logarithms of N, P, CPU and bandwidth.

        Columns of settings, which follow, do not matter to it.
        """
        return np.log([self._seconds(round(p), cpu, bandwidth) for _, p, cpu, bandwidth in np.exp(points[:, :4])])

    def _seconds(self, processes: int, cpu: float, bandwidth: float) -> float:
        servers = tuple(replace(server, speed=server.speed * cpu) for server in self.hardware.servers)
        available = 8e-6 / bandwidth  # Mbit/s to seconds for a byte
        loaded = replace(
            self.hardware,
            servers=servers,
            word_time=max(self.hardware.word_time, available),
            shared_word_time=max(self.hardware.link_word_time, available),
        )
        return self.model.execution_time(loaded, self.hardware.fill(processes))
