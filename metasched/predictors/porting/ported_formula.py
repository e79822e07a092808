"""The formula that a reference model hands over: its trend scaled by Eq. (3), and the bend that it learned there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats
from metasched.predictors.porting.scaled_trend import ScaledTrend
from metasched.predictors.published import PublishedPredictor
from metasched.predictors.residual import ResidualProcess, inputs
from metasched.predictors.robust import RobustPredictor


@dataclass(frozen=True)
class PortedFormula:
    """Time on the target platform, from what was learned on the reference.

    Parameters
    ----------
    trend : the reference's formulas, scaled.
    alone : its formulas for one processor where the reference has a list of their own for them, or None.
    residual : the reference's process on what its formulas leave over, or None.
    bandwidth_ratio : bandwidth of an idle link of the reference over that of the target. The functions of the
        bandwidth were chosen from what links of the reference have to spare, so the target's bandwidths are taken as
        the same shares of a reference link. Communication is scaled by this ratio as well as by Rbw, which therefore
        is 1, as in Eq. (3) with f_bw = bw, where times are inverse to bandwidths from one platform to the other.
    """

    trend: ScaledTrend
    alone: ScaledTrend | None = None
    residual: ResidualProcess | None = None
    bandwidth_ratio: float = 1.0

    @classmethod
    def of(cls, reference: PublishedPredictor | RobustPredictor, bandwidth_ratio: float = 1.0) -> PortedFormula:
        """The formula of a reference model, not yet scaled."""
        if isinstance(reference, RobustPredictor):
            robust = reference.state
            residual = robust.experts.beside_trend if robust.experts is not None else None
            return cls(ScaledTrend.averaged(robust.trend), None, residual, bandwidth_ratio)
        published = reference.state
        alone = ScaledTrend.best(published.alone) if published.alone is not None else None
        return cls(ScaledTrend.best(published.parallel), alone, None, bandwidth_ratio)

    def scaled(self, rcpu: float, rbw: float) -> PortedFormula:
        """The same formula under other scale factors."""
        rbw *= self.bandwidth_ratio
        alone = self.alone.scaled(rcpu, rbw) if self.alone is not None else None
        return replace(self, trend=self.trend.scaled(rcpu, rbw), alone=alone)

    def split(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Time (s) and the share of it spent computing, for arrays of one shape (n,)."""
        time, share = self.trend.split(problem_size, processors, cpu, bw * self.bandwidth_ratio)
        if self.alone is not None:
            time_alone, _ = self.alone.split(problem_size, processors, cpu, bw)
            time = np.where(processors == 1.0, time_alone, time)
            share = np.where(processors == 1.0, 1.0, share)
        if self.residual is not None:
            bend, _ = self.residual.predict(self.points(problem_size, processors, cpu, bw))
            time = time * np.exp(bend)
        return time, share

    def points(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Inputs of processes on what the formula leaves over, as on the reference, shape (n, 4)."""
        return inputs(problem_size, processors, cpu, bw * self.bandwidth_ratio)

    def log_error(self, runs: Observations) -> Floats:
        """Log of measured over expected times, shape (n,)."""
        time, _ = self.split(runs.problem_size, runs.processors, runs.cpu, runs.bw)
        return np.asarray(np.log(runs.time / time))
