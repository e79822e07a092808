"""The formula that a reference model hands over: its trend scaled by Eq. (3), and the bend that it learned there.

The dedicated runs on the reference belong to what was learned there: where the trend misses them by some percent, it
misses those on the target by as much, and no scale factor is to blame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.scaled_trend import ScaledTrend
from metasched.predictors.published import PublishedPredictor
from metasched.predictors.residual import Hyperparameters, ResidualProcess, inputs, well_chosen
from metasched.predictors.robust import RobustPredictor
from metasched.predictors.simple import supports_search
from metasched.predictors.window import observations
from metasched.records import Run

#: Sharing where neither platform's nodes are known: none.
NOT_KNOWN = LinkSharing()


@dataclass(frozen=True)
class PortedFormula:
    """Time on the target platform, from what was learned on the reference.

    Parameters
    ----------
    trend : the reference's formulas, scaled.
    alone : its formulas for one processor where the reference has a list of their own for them, or None.
    residual : process on what the formulas leave over on the reference, or None.
    bandwidth_ratio : bandwidth of an idle link of the reference over that of the target. The functions of the
        bandwidth were chosen from what links of the reference have to spare, so the target's bandwidths are taken as
        the same shares of a reference link. Communication is scaled by this ratio as well as by Rbw, which therefore
        is 1, as in Eq. (3) with f_bw = bw, where times are inverse to bandwidths from one platform to the other.
    sharing : how many processes share a link on both.
    """

    trend: ScaledTrend
    alone: ScaledTrend | None = None
    residual: ResidualProcess | None = None
    bandwidth_ratio: float = 1.0
    sharing: LinkSharing = NOT_KNOWN

    @classmethod
    def of(
        cls,
        reference: PublishedPredictor | RobustPredictor,
        dedicated_runs: Iterable[Run] = (),
        bandwidth_ratio: float = 1.0,
        sharing: LinkSharing | None = None,
    ) -> PortedFormula:
        """The formula of a reference model, not yet scaled, corrected by dedicated runs there."""
        kernel = None
        if isinstance(reference, RobustPredictor):
            bare = cls(ScaledTrend.averaged(reference.state.trend))
            experts = reference.state.experts
            kernel = experts.beside_trend.hyperparameters if experts is not None else None
        else:
            alone = reference.state.alone
            bare = cls(
                ScaledTrend.best(reference.state.parallel), ScaledTrend.best(alone) if alone is not None else None
            )
        residual = bare.residual_on(observations([*reference.window, *dedicated_runs]), kernel)
        most = reference.state.domain.most_processors
        sharing = replace(sharing, most_processors=most) if sharing is not None else NOT_KNOWN
        return replace(bare, residual=residual, bandwidth_ratio=bandwidth_ratio, sharing=sharing)

    def residual_on(self, runs: Observations, kernel: Hyperparameters | None) -> ResidualProcess | None:
        """Process on what the bare formula leaves over of the reference's runs; None where they are too few for one."""
        if not supports_search(runs):
            return None
        chosen = runs.at(well_chosen(runs))
        error = self.log_error(chosen)
        defined = np.isfinite(error)
        points = self.points(chosen.problem_size, chosen.processors, chosen.cpu, chosen.bw)
        return ResidualProcess(points[defined], error[defined], kernel, optimise=kernel is None)

    def scaled(self, rcpu: float, rbw: float) -> PortedFormula:
        """The same formula under other scale factors."""
        rbw *= self.bandwidth_ratio
        alone = self.alone.scaled(rcpu, rbw) if self.alone is not None else None
        return replace(self, trend=self.trend.scaled(rcpu, rbw), alone=alone)

    def split(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Time (s) and the share of it spent computing, for arrays of one shape (n,)."""
        time, share = self.trend.split(
            problem_size, processors, cpu, bw * self.bandwidth_ratio, self.sharing.congestion(processors)
        )
        if self.alone is not None:
            time_alone, _ = self.alone.split(problem_size, processors, cpu, bw)
            time = np.where(processors == 1.0, time_alone, time)
            share = np.where(processors == 1.0, 1.0, share)
        if self.residual is not None:
            bend, _ = self.residual.predict(self.points(problem_size, processors, cpu, bw))
            time = time * np.exp(bend)
        return time, share

    def levers(self, share: Floats, processors: Floats) -> Floats:
        """Derivatives of log time by log Rcpu, log Rbw and the power of the congestion, shape (n, 3)."""
        rest = 1.0 - share
        return np.stack([share, rest, rest * np.log(self.sharing.congestion(processors))], axis=1)

    def points(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Inputs of processes on what the formula leaves over, as on the reference, shape (n, 4)."""
        return inputs(problem_size, processors, cpu, bw * self.bandwidth_ratio)

    def log_error(self, runs: Observations) -> Floats:
        """Log of measured over expected times, shape (n,)."""
        time, _ = self.split(runs.problem_size, runs.processors, runs.cpu, runs.bw)
        return np.asarray(np.log(runs.time / time))
