"""A fitted cloud model: profiles and hardware in, time against processes and their distribution out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.cloud import published, synchronous
from metasched.predictors.analytic.cloud.hardware import Hardware
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.cloud.synchronous import Costs
from metasched.predictors.analytic.cloud.workload import Workload
from metasched.records import InputError

#: ``"published"`` is the paper's network, ``"synchronous"`` the refined one.
Method = Literal["published", "synchronous"]
#: Most processes that a prediction is made for.
MOST_PROCESSES = 100_000


@dataclass(frozen=True)
class CloudModel:
    """An application on a kind of server.

    Parameters
    ----------
    method : which network.
    workload : the application's laws.
    costs : what computing and local communication cost in the refined network; None in the published one.
    cpu_constant, net_constant : the two constants fitted, (8) and (9); the refined network's are near 1.
    profiling_error : root mean square of the relative errors on the profiles.
    notes : what the user should know of the fit.
    """

    method: Method
    workload: Workload
    costs: Costs | None
    cpu_constant: float
    net_constant: float
    profiling_error: float
    notes: tuple[str, ...]

    @classmethod
    def fit(
        cls,
        profiles: Sequence[Profile],
        hardware: Hardware,
        distributions: Sequence[Ints] | None = None,
        method: Method = "synchronous",
    ) -> CloudModel:
        """Fit both constants to profiled runs by non-linear least squares on the relative error.

        Parameters
        ----------
        profiles : at least three, with three numbers of processes.
        hardware : servers that were profiled on.
        distributions : processes on each server for each profile; all on the first server if None.

        Raises
        ------
        InputError : with too few profiles, or distributions that do not fit them.
        """
        if method not in get_args(Method):
            raise InputError(f"method is {method!r}, expected one of {', '.join(get_args(Method))}")
        paper = method == "published"
        workload = Workload.published(profiles) if paper else Workload.of(profiles)
        if distributions is None:
            first = np.arange(len(hardware.servers)) == 0
            distributions = [profile.processes * first for profile in profiles]
        for profile, distribution in zip(profiles, distributions, strict=True):
            hardware.check(distribution)
            if distribution.sum() != profile.processes:
                raise InputError(
                    f"a distribution of {distribution.sum()} processes for a profile of {profile.processes}"
                )
        costs = None if paper else Costs.of(profiles, workload, hardware, distributions)
        measured = np.array([profile.execution_time for profile in profiles])
        spread_out = any(np.count_nonzero(distribution) > 1 for distribution in distributions)

        def model(constants: Floats) -> CloudModel:
            cpu, net = np.exp(constants) if spread_out else (np.exp(constants[0]), 1.0)
            return cls(method, workload, costs, float(cpu), float(net), 0.0, ())

        def residual(constants: Floats) -> Floats:
            fitted = model(constants)
            times = [fitted.execution_time(hardware, distribution) for distribution in distributions]
            return np.asarray(np.array(times) / measured - 1.0)

        # Both constants are positive, so their logarithms are searched for; the work is a first guess of kw.
        start = np.log([float((measured * [p.processes for p in profiles]).mean()) if paper else 1.0, 1.0])
        found = scipy.optimize.least_squares(residual, start if spread_out else start[:1])
        notes = () if spread_out else ("profiles on one server do not determine Net_Constant: 1 is assumed",)
        fitted = model(found.x)
        error = float(np.sqrt(np.mean(found.fun**2)))
        return cls(method, workload, costs, fitted.cpu_constant, fitted.net_constant, error, notes)

    def execution_time(self, hardware: Hardware, distribution: Ints) -> float:
        """T for processes distributed over servers, shape (servers,), in seconds."""
        hardware.check(distribution)
        if distribution.sum() > MOST_PROCESSES:
            raise InputError(f"{distribution.sum()} processes, expected at most {MOST_PROCESSES}")
        constants = self.cpu_constant, self.net_constant
        if self.costs is None:
            return published.execution_time(self.workload, hardware, distribution, *constants)
        return synchronous.execution_time(self.workload, self.costs, hardware, distribution, *constants)
