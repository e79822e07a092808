"""Eq. (3): the reference's two terms, scaled to the target platform."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Observations
from metasched.arrays import Floats
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.reference import Reference
from metasched.predictors.porting.transfer import inputs


@dataclass(frozen=True)
class PortedFormula:
    """Times on the target platform, from the model learned on the reference.

    Parameters
    ----------
    reference : its terms.
    bandwidth_ratio : bandwidth of an idle link of the reference over that of the target. How communication depends on
        the bandwidth was learned from what links of the reference have to spare, so the target's bandwidths are taken
        as the same shares of a reference link. Communication is scaled by this ratio as well as by Rbw, which therefore
        is 1, as in Eq. (3) with f_bw = bw, where times are inverse to bandwidths from one platform to the other.
    sharing : how many processes share a link on both.
    rcpu, rbw : scale factors of computation and communication.
    """

    reference: Reference
    bandwidth_ratio: float
    sharing: LinkSharing
    rcpu: float = 1.0
    rbw: float = 1.0

    @property
    def text(self) -> str:
        """Both terms and their scale factors."""
        computation, communication = self.reference.texts
        return f"{self.rcpu:.3g} · [{computation}] + {self.rbw * self.bandwidth_ratio:.3g} · [{communication}]"

    def scaled(self, rcpu: float, rbw: float) -> PortedFormula:
        """The same formula under other scale factors."""
        return replace(self, rcpu=rcpu, rbw=rbw)

    def terms(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Computation and communication (s), for arrays of one shape (n,); infinite where not defined.

        Parameters
        ----------
        problem_size, processors : N and P.
        cpu : least available CPU, a share of one processor of the target.
        bw : least available bandwidth on the target (Mbit/s).
        """
        computation, communication = self.reference.terms(problem_size, processors, cpu, bw * self.bandwidth_ratio)
        congested = self.rbw * self.bandwidth_ratio * self.sharing.congestion(processors)
        return self.rcpu * computation, congested * communication

    def split(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Time (s) and the share of it spent computing, for arrays of one shape (n,)."""
        computation, communication = self.terms(problem_size, processors, cpu, bw)
        time = computation + communication
        defined = (time > 0.0) & (time < np.inf)
        share = np.where(defined, computation, 1.0) / np.where(defined, time, 1.0)
        return np.where(defined, time, np.inf), share

    def basis(self, share: Floats, processors: Floats) -> Floats:
        """Derivatives of log time by log Rcpu, log Rbw and the power of the congestion, shape (n, 3).

        Parameters
        ----------
        share : of the time that is computation, shape (n,).
        processors : P, shape (n,).
        """
        rest = 1.0 - share
        return np.stack([share, rest, rest * np.log(self.sharing.congestion(processors))], axis=1)

    def points(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Inputs of the process on the residuals of the formula, as on the reference, shape (n, 4)."""
        return inputs(problem_size, processors, cpu, bw * self.bandwidth_ratio)

    def log_error(self, runs: Observations) -> Floats:
        """Log of measured over expected times, shape (n,)."""
        time, _ = self.split(runs.problem_size, runs.processors, runs.cpu, runs.bw)
        return np.asarray(np.log(runs.time / time))
