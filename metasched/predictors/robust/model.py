"""The one model of the robust method: log T = log formula(N, P, cpu, bw) + process(log N, log P) + noise.

The formula is that of ``structure``, the process that of ``gaussian_process``, whose basis is the derivatives by the
formula's ten parameters. The formula is fitted under the covariance of process and noise, and these to the residuals of
the formula, a few times in turn. The process does not depend on the loads. So the predicted time never increases with
available CPU or bandwidth, and its division into computation and communication is that of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candidate_functions.terms import Observations
from metasched.arrays import Floats
from metasched.predictors.abilities import PowerTerm
from metasched.predictors.expected_scales import as_expected
from metasched.predictors.gaussian_process import (
    Kinship,
    ResidualProcess,
    ScalePrior,
    Scales,
    most_probable,
    run_covariance,
    t_weights,
    well_chosen,
)
from metasched.predictors.memory.setting_columns import SettingColumns
from metasched.predictors.robust.effects import Effects
from metasched.predictors.robust.far_off import FAR_OFF_IF_UNLIKE, first_weights
from metasched.predictors.robust.formula_text import texts
from metasched.predictors.robust.loads import Loads
from metasched.predictors.robust.shared_scaling import sharing
from metasched.predictors.robust.structure import Numbers, Structure, factors
from metasched.records import DEFAULT_SETTINGS, Settings

#: Prior medians of the scales: smooth part, its lengths in log N and log P, scaling, noise, and the noise on one
#: processor relative to that on many. Halving or doubling any but the last changes the mean error on the design seeds
#: by less than 3 % of it, at every number of runs. The noise is the median of what all runs of a campaign show, on the
#: design seeds and on other programs. It is smaller on one processor: the more processes wait for each other, the less
#: the smallest averages say about the loads that delay a run.
SCALES = ScalePrior(Scales(0.06, (2.0, 2.0), 0.05, 0.032, 0.33), fixed_lengths=2, least_noise=0.011, fixed_alone=False)
#: Length scale of the smooth part in each column of the settings.
LENGTH = 2.0
#: Rounds in which formula, scales and weights are estimated, the last one without scales and weights: usually, and the
#: first time that the runs are of several platforms, of which some may differ from the others.
ROUNDS, ROUNDS_OF_SEVERAL = 3, 6
#: Standard deviations of the formula's parameters between platforms, and of those of the effects. Platforms mainly
#: differ in speed, and a little in the effects of latency and memory. They were chosen on the ports between the design
#: campaigns among the deviations of a first trial, a half and a tenth of them.
APART = Numbers(0.8, 0.005, 0.2, 0.003, 0.003, 0.2, 0.01, 0.015, 0.005, 0.01)
APART_OF_EFFECTS = 0.05
#: The smallest weight of another platform.
LEAST_WEIGHT = 1e-3
#: Fewest runs among which outliers are distinguished.
FEWEST_WEIGHED = 5
#: How far beyond the learned range the process is extrapolated, in logarithms (a factor e); beyond it is constant.
BEYOND = 1.0
#: Standard deviation of log time at a distance of one (a factor e) in N and P beyond the learned range; and the largest
#: factor by which an outlier may enlarge the variance of the noise that is expected of the next run.
OUTSIDE, LARGEST_FACTOR = 0.08, 4.0
#: The former if no load varied: then no run separates computation from communication, which scale differently.
OUTSIDE_UNDIVIDED = 0.15
#: Additional standard deviation of the log of communication, for a factor e in P beyond the learned range, where
#: collective operations change their algorithms and processes begin to share links. With it the coverage of 90 %
#: intervals beyond the learned P of the design campaigns is 92 % at 60 runs (82 % without), and on four other programs
#: 93 % (70 % without).
SPREADING_OUTSIDE = 0.5
#: Factor on their mean: the noise of the next run has longer tails than the weights of past runs show. With it 88 to
#: 91 % of the runs of the design seeds are within their 90 % intervals, at every number of runs.
TAILS = 1.7
#: Largest number of processor counts whose part of the formula is cached.
MOST_COUNTS = 4096
#: Largest number of cached answers to single requests.
MOST_ANSWERS = 16
#: The noise on one processor relative to that on many if no load varied: no load is then seen only in part.
ALONE_UNVARIED = 1.0


@dataclass(frozen=True)
class Model:
    """Formula and process, fitted to the same runs.

    Parameters
    ----------
    formula : with its most probable parameters.
    process : on the residuals of the formula, under the scales that are expected of the next run; its basis is the
        derivatives by the formula's parameters.
    scales : the most probable ones.
    loads : that replace loads not measured.
    weights : of the runs of the window, shape (n,); below 1 for outliers.
    unlearned : variance of log time by settings for which it predicts and that never varied among the runs.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> n, p = rng.uniform(100, 1000, 40), rng.choice([1.0, 2.0, 4.0, 8.0], 40)
    >>> model = Model.fit(Observations.of(n, p, np.full(40, 0.9), np.full(40, 90.0), 1e-3 * n**2 / p))
    >>> time, spread = model.predict(*np.array([[500.0], [4.0], [0.9], [90.0]]))
    >>> bool(np.allclose(time, 62.5, rtol=0.02))
    True
    """

    formula: Structure
    process: ResidualProcess
    scales: Scales
    loads: Loads
    weights: Floats
    unlearned: float = 0.0

    @classmethod
    def fit(
        cls,
        runs: Observations,
        scales: Scales | None = None,
        *,
        search: bool = True,
        settings: Sequence[Settings] = (),
        platforms: Sequence[int] = (),
    ) -> Model:
        """Fit to runs.

        Parameters
        ----------
        runs : oldest first; NaN where a load was not measured.
        scales : of the process, to start from or, without a search, to use. With neither, all priors are taken as
            stated, and nothing is learned about how well they suit.
        search : whether to look for the most probable scales.
        settings : of the runs; if empty, all have the default settings.
        platforms : of the runs by number, 0 for the target platform; if empty, all are of the target platform.
        """
        sample, stated = _Sample.of(runs, settings, platforms), scales is None and not search
        rounds = ROUNDS if sample.alone or scales is not None else ROUNDS_OF_SEVERAL
        prior = scale_prior(sample.points.shape[1], sample.loads)
        scales = scales if scales is not None and len(scales.lengths) == sample.points.shape[1] else prior.medians
        formula = Structure.around(sample.runs, sample.effects, sample.rows)
        expected, spreads = formula.vector, formula.spreads
        beforehand = sample.process(formula, prior.medians, np.ones(len(sample.runs)))
        weights = first_weights(beforehand, settings=bool(formula.powers))
        for turn in range(rounds):
            noise, extra = 1.0 / weights, sample.disturbed(formula)
            slopes, kin = sample.left_by(formula)[0], sample.kinship(formula, scales, noise, extra)
            covariance = run_covariance(scales, sample.points, slopes, sample.own(scales, noise, extra), kin)
            formula = formula.fitted(sample.runs, expected, covariance, sample.rows)
            if search and turn < rounds - 1:
                slopes, error = sample.unexplained(formula)
                scales = most_probable(
                    sample.points, slopes, spreads, error, prior, scales, noise=noise, extra=extra, kinship=kin
                )
            if turn < rounds - 1 and len(weights) >= FEWEST_WEIGHED:
                weights = sample.weighed(formula, scales, weights)
        process = (sample.process if stated else sample.expecting)(formula, scales, weights)
        return cls(formula, process, scales, sample.loads, weights).under(DEFAULT_SETTINGS)

    @classmethod
    def of(
        cls,
        formula: Structure,
        runs: Observations,
        scales: Scales,
        weights: Sequence[float] | Floats,
        settings: Sequence[Settings] = (),
        platforms: Sequence[int] = (),
    ) -> Model:
        """The model with a known formula, scales, and weights of its runs in (0, 1], such as one read from a file."""
        sample, known = _Sample.of(runs, settings, platforms), np.asarray(weights, dtype=np.float64)
        if len(known) != len(sample.runs):
            raise ValueError(f"{len(known)} weights, expected {len(sample.runs)}, one for each run")
        formula = replace(formula, effects=sample.effects)
        if len(formula.powers) != len(sample.effects.names) or len(scales.lengths) != sample.points.shape[1]:
            expected = ", ".join(sample.effects.names) or "none"
            raise ValueError(f"{len(formula.powers)} numbers of effects, expected one for each of: {expected}")
        process = sample.expecting(formula, scales, known)
        return cls(formula, process, scales, sample.loads, known).under(DEFAULT_SETTINGS)

    def under(self, settings: Settings) -> Model:
        """The same model, answering for other settings.

        Raises
        ------
        InputError : a parameter is unknown, or a word where numbers were.
        """
        effects = self.formula.effects
        setting = tuple(effects.columns.rows([settings])[0].tolist())
        return replace(self, formula=replace(self.formula, setting=setting), unlearned=effects.unlearned(settings))

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times (s), and spreads of the logarithms of what will be measured, for arrays of one shape (n,)."""
        points = np.log(np.stack([n, p], axis=1))
        return self.at(points[:, 0], cpu, bw, self.of_counts(p), self.residual(points))

    def predict_one(self, n: float, p: int, cpu: float, bw: float) -> tuple[float, float]:
        """The same for one request, its bandwidth in Mbit/s, in a fifth of the time, since it avoids arrays.

        The last answers are cached, since intervals at several levels are requested for one placement.
        """
        asked = n, p, cpu, bw
        found = self._answers.get(asked)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[asked] = self._predicted_one(*asked)
        return found

    def _predicted_one(self, n: float, p: int, cpu: float, bw: float) -> tuple[float, float]:
        formula, log_n, log_p, (of_count, further) = self.formula, math.log(n), math.log(p), self._of_count(p)
        logs = log_n - self._middle[0], math.log(cpu), math.log(bw) - self._middle[1]
        computation, communication = formula.log_terms(*logs, *of_count[:2])
        sent = 1.0 / (1.0 + math.exp(min(computation - communication, 700.0)))
        slopes = [one * other for one, other in factors(sent, *logs, *of_count[2:5])]
        if formula.powers:
            effects = zip(of_count[5 : 5 + len(formula.powers)], of_count[5 + len(formula.powers) : -1], strict=True)
            slopes += [(1.0 - sent) * first + sent * second for first, second in effects]
        (low_n, low_p), (high_n, high_p) = self._corners
        held_n = min(max(log_n, low_n - BEYOND), high_n + BEYOND)
        within = np.array([[held_n, min(max(log_p, low_p - BEYOND), high_p + BEYOND), *further]])
        mean, variance, absorbed = self.process.form(within)
        away_n, away_p = max(log_n - high_n, low_n - log_n, 0.0), max(log_p - high_p, low_p - log_p, 0.0)
        free = self.process.roots @ (slopes - absorbed[0])
        disturbed = float(free @ free) + self.noise_factor * self.process.scales.noise_on(p) ** 2
        outside = (self._outside * away_n) ** 2 + (self._outside**2 + (SPREADING_OUTSIDE * sent) ** 2) * away_p**2
        spread = math.sqrt(float(variance[0]) + outside + disturbed + self.unstated)
        first, second = (math.exp(min(term + mean[0], 709.0)) for term in (computation, communication))
        return first + second, spread

    def _of_count(self, p: int) -> tuple[tuple[float, ...], list[float]]:
        if p not in self._counts:
            if len(self._counts) > MOST_COUNTS:
                self._counts.clear()
            log_p = math.log(p)
            further = self._within_reach(np.array([[0.0, log_p]]))[0, 2:].tolist()
            self._counts[p] = (*self.formula.of_counts(np.array([float(p)]))[:, 0].tolist(), log_p), further
        return self._counts[p]

    @cached_property
    def text(self) -> str:
        """Both terms of the formula written out, with N, P, cpu and bw in their units."""
        return " + ".join(self.texts)

    @cached_property
    def texts(self) -> tuple[str, str]:
        """The formula's computation and communication, each written out with its numbers."""
        return texts(self.formula)

    @cached_property
    def _answers(self) -> dict[tuple[float, int, float, float], tuple[float, float]]:
        return {}

    @cached_property
    def _counts(self) -> dict[int, tuple[tuple[float, ...], list[float]]]:
        return {}

    @cached_property
    def _middle(self) -> tuple[float, float]:
        return math.log(self.formula.size), math.log(self.formula.bandwidth)

    @cached_property
    def _outside(self) -> float:
        return OUTSIDE if self.loads.varied else OUTSIDE_UNDIVIDED

    @cached_property
    def unstated(self) -> float:
        """Variance of log time by what the settings do not state, or what no run had: no run makes it less."""
        return self.formula.effects.unstated(self.formula.powers, self.formula.setting) + self.unlearned

    @cached_property
    def _corners(self) -> list[list[float]]:
        return [corner[:2].tolist() for corner in self.box]

    def residual(self, points: Floats) -> Floats:
        """The process at log N, log P (n, 2): mean, variance, and the basis that it explains, shape (n, 2 + m)."""
        mean, variance, absorbed = self.process.form(self._within_reach(points))
        return np.concatenate([mean[:, None], variance[:, None], absorbed], axis=1)

    def residual_mean(self, points: Floats) -> Floats:
        """The mean of :meth:`residual` alone, shape (n,)."""
        return self.process.mean(self._within_reach(points))

    def _within_reach(self, points: Floats) -> Floats:
        """Points (n, 2) with the columns of the settings, moved to the box :attr:`reach`: shape (n, 2 + c)."""
        low, high = self.reach
        if self.formula.powers:
            columns = self.formula.effects.columns
            points = np.hstack([points, columns.filled(np.array(self.formula.setting), points[:, 1])])
        return np.minimum(np.maximum(points, low), high)

    def of_counts(self, p: Floats) -> Floats:
        """All that depends on P alone, shape (7 + 2 e, k): the rows of the formula, then two more.

        The first of these is the squared distance (in logarithms) from the learned counts, the second the variance of
        the noise.
        """
        away = self._away(np.log(p), 1)
        return np.vstack([self.formula.of_counts(p), away, self.noise_factor * self.process.scales.noise_on(p) ** 2])

    def at(self, log_n: Floats, cpu: Floats, bw: Floats, of_counts: Floats, residual: Floats) -> tuple[Floats, Floats]:
        """Times (s) and spreads of their logarithms.

        Parameters
        ----------
        log_n, cpu, bw : arrays of shape (n,).
        of_counts : of the P of each, see :meth:`of_counts`, shape (7 + 2 e, n).
        residual : of the process at N and P, shape (n, 2 + m).
        """
        formula, logs = self.formula, (log_n - self._middle[0], np.log(cpu), np.log(bw) - self._middle[1])
        computation, communication = formula.log_terms(*logs, of_counts[0], of_counts[1])
        computation += residual[:, 0]
        communication += residual[:, 0]
        time, sent = _sum(computation, communication), np.ones_like(log_n)
        np.divide(communication, time, out=sent, where=(time > 0.0) & (time < np.inf))
        slopes = formula.slopes(sent, *logs, of_counts[:-2])
        slopes -= residual[:, 2:].T
        variance = residual[:, 1] + self._outside**2 * (self._away(log_n, 0) + of_counts[-2]) + self.unstated
        variance += (SPREADING_OUTSIDE * sent) ** 2 * of_counts[-2]
        return time, self.process.spread(variance, slopes, of_counts[-1])

    def time_at(
        self, log_n: Floats | np.float64, cpu: Floats, bw: Floats, computation: Floats, communication: Floats
    ) -> Floats:
        """Times (s) alone.

        Parameters
        ----------
        log_n, cpu, bw : arrays of shape (n,), or one log N for all.
        computation, communication : the first two of what the formula says of P, with the mean that the process adds.
        """
        log_size, log_link = log_n - self._middle[0], np.log(bw) - self._middle[1]
        return _sum(*self.formula.log_terms(log_size, np.log(cpu), log_link, computation, communication))

    def power_terms(self, n: float, computation: Floats, communication: Floats) -> tuple[PowerTerm, PowerTerm]:
        """Both terms as powers of the loads, from the last two arguments of :meth:`time_at`, shape (k,)."""
        log_size, t = math.log(n) - self._middle[0], self.formula.numbers
        terms = self.formula.log_terms(log_size, 0.0, -self._middle[1], computation, communication)
        with np.errstate(over="ignore"):
            first, second = (np.exp(term) for term in terms)
        return PowerTerm(first, -t.cpu, 0.0), PowerTerm(second, -t.waiting, -t.bandwidth)

    def covariance(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Covariance of the true log times at some conditions, (n, n), and the variances of the noise of runs, (n,)."""
        points = np.log(np.stack([n, p], axis=1))
        within, formula = self._within_reach(points), self.formula
        across, taken, within = self.process.between(within)
        terms = formula.terms(n, p, cpu, bw)
        free = self.process.roots @ (terms.slopes - taken.T)
        beyond, sent = np.zeros_like(within), terms.communication / terms.time
        for side, alike in ((0, 0.0), (1, SPREADING_OUTSIDE**2 * np.outer(sent, sent))):
            for away in (points[:, side] - self.box[1][side], self.box[0][side] - points[:, side]):
                away = np.maximum(away, 0.0)
                beyond += (self._outside**2 + alike) * np.minimum.outer(away, away) ** 2
        noise = self.noise_factor * self.process.scales.noise_on(p) ** 2
        return within - across + free.T @ free + beyond, noise

    def _away(self, values: Floats, side: int) -> Floats:
        low, high = self.box
        return np.asarray(np.maximum(np.maximum(values - high[side], low[side] - values), 0.0) ** 2)

    @cached_property
    def noise_factor(self) -> float:
        """Expected variance of the noise of a run, relative to that of the median run: the mean over past runs."""
        return TAILS * float(np.mean(np.minimum(1.0 / self.weights, LARGEST_FACTOR)))

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """Smallest and largest learned log N, log P and columns of settings, each of shape (2 + c,)."""
        return self.process.points.min(axis=0), self.process.points.max(axis=0)

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """The box outside of which the process is constant."""
        return self.box[0] - BEYOND, self.box[1] + BEYOND


def _sum(computation: Floats, communication: Floats) -> Floats:
    """The sum of two terms, given by their logarithms, which are overwritten; infinite on overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(computation, out=computation) + np.exp(communication, out=communication))


def scale_prior(inputs: int, loads: Loads) -> ScalePrior:
    """:data:`SCALES` for a process with further inputs besides N and P, and for loads that may not vary."""
    lengths = SCALES.medians.lengths + (LENGTH,) * (inputs - 2)
    alone = SCALES.medians.alone if loads.varied else ALONE_UNVARIED
    return replace(SCALES, medians=replace(SCALES.medians, lengths=lengths, alone=alone))


@dataclass(frozen=True)
class _Sample:
    """The complete runs that a model is fitted to, and the uncertainty of their loads."""

    runs: Observations
    points: Floats
    loads: Loads
    cpu_spread: Floats
    bandwidth_spread: Floats
    effects: Effects
    rows: Floats
    platforms: NDArray[np.intp]

    @classmethod
    def of(cls, runs: Observations, settings: Sequence[Settings] = (), platforms: Sequence[int] = ()) -> _Sample:
        platform = np.array(platforms or (0,) * len(runs), dtype=np.intp)
        loads = Loads.of(runs.at(np.flatnonzero(platform == 0)) if 0 in platform else runs)
        points = np.log(np.stack([runs.problem_size, runs.processors], axis=1))
        columns = SettingColumns.of(settings, points[:, 1])
        rows: Floats = np.empty((len(runs), 0))
        if columns.columns:
            rows = columns.filled(columns.rows(settings, learned=True), points[:, 1])
        points = np.hstack([points, rows])
        chosen = well_chosen(points)
        whole, cpu_spread, bandwidth_spread = loads.filled(runs.at(chosen))
        effects = Effects(columns)
        return cls(whole, points[chosen], loads, cpu_spread, bandwidth_spread, effects, rows[chosen], platform[chosen])

    @property
    def alone(self) -> bool:
        """Whether all runs are of the target platform."""
        return not self.platforms.any()

    def own(self, scales: Scales, noise: Floats, extra: Floats) -> Floats:
        """Variance that each run has for itself, shape (n,); parameters as of :class:`ResidualProcess`."""
        return np.asarray(scales.noise_on(self.runs.processors) ** 2 * noise + extra)

    def kinship(self, formula: Structure, scales: Scales, noise: Floats, extra: Floats) -> Kinship | None:
        """Correlation with runs on other platforms; None if there are none. Noise and extra as of :meth:`own`."""
        if self.alone:
            return None
        kinship = Kinship(self.platforms, np.array([*APART, *(APART_OF_EFFECTS for _ in formula.powers)]))
        slopes, error = self.unexplained(formula)
        return sharing(kinship, scales, self.points, slopes, formula.spreads, error, self.own(scales, noise, extra))

    def weighed(self, formula: Structure, scales: Scales, weights: Floats) -> Floats:
        """Weights of the runs, below 1 for outliers and for runs of platforms that differ from the others.

        Parameters
        ----------
        formula, scales : under which the runs are judged.
        weights : those before, shape (n,), in (0, 1]. The new ones have the same shape.
        """
        error, spread = self.process(formula, scales, weights).leave_one_out()
        found = t_weights(error / spread)
        if self.alone:
            return found
        own = self.platforms == 0
        # Few runs do not show whether one of them is an outlier or the platform unlike the others, unless it is absurd.
        whole = own & (np.count_nonzero(own) < FEWEST_WEIGHED) & (found > FAR_OFF_IF_UNLIKE)
        of_platform = self.process(formula, scales, found).group_weights(self.platforms)
        return np.where(whole, 1.0, found * np.where(own, 1.0, np.maximum(of_platform, LEAST_WEIGHT)))

    def disturbed(self, formula: Structure) -> Floats:
        """Variance of log time due to loads that were not measured, shape (n,)."""
        terms, t = formula.of_runs(self.runs, self.rows), formula.numbers
        sent = terms.communication / terms.time
        by_cpu = ((1.0 - sent) * t.cpu + sent * t.waiting) * self.cpu_spread
        return np.asarray(by_cpu**2 + (sent * t.bandwidth * self.bandwidth_spread) ** 2)

    def left_by(self, formula: Structure) -> tuple[Floats, Floats]:
        """Derivatives of log time by the parameters (n, m), and the residuals of log time, (n,)."""
        terms = formula.of_runs(self.runs, self.rows)
        return terms.slopes.T, np.log(self.runs.time / terms.time)

    def unexplained(self, formula: Structure) -> tuple[Floats, Floats]:
        """The same derivatives, and the residuals that the prior means leave where they are linear, (n,)."""
        slopes, error = self.left_by(formula)
        return slopes, error + slopes @ (formula.vector - Structure.around(self.runs, self.effects, self.rows).vector)

    def process(self, formula: Structure, scales: Scales, weights: Floats) -> ResidualProcess:
        """The process on the residuals of a formula.

        Parameters
        ----------
        formula : whose errors are its observations.
        scales : of the process.
        weights : of the runs, shape (n,): the noise of each is divided by its weight.
        """
        slopes, error = self.left_by(formula)
        noise, extra = 1.0 / weights, self.disturbed(formula)
        kinship = self.kinship(formula, scales, noise, extra)
        return ResidualProcess(
            self.points, slopes, formula.spreads, error, scales, noise=noise, extra=extra, moved=False, kinship=kinship
        )

    def expecting(self, formula: Structure, scales: Scales, weights: Floats) -> ResidualProcess:
        """The same for predictions, with the deviations that are expected of the next run.

        Where runs differ in settings, the noise on one processor relative to that on many is an expected one, too.
        There, and on several platforms, agreement does not make deviations smaller than those of the priors.
        """
        found, differ = self.process(formula, scales, weights), bool(formula.powers)
        prior = replace(scale_prior(self.points.shape[1], self.loads), fixed_alone=not differ)
        return as_expected(found, prior, self.unexplained(formula)[1], least=float(differ or not self.alone))
