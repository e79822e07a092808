"""The one model of the robust method: log T = log formula(N, P, cpu, bw) + process(log N, log P) + noise.

The formula is that of ``structure``, the process that of ``gaussian_process`` with the formula's ten numbers as its
levers. Process and noise say how far the formula is believed, the formula what the process is about; each is found
under the other, a few times in turn. As the process knows nothing of the loads, time never grows with available CPU or
bandwidth, and its share of computation and communication is the formula's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats, PowerTerm
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
from metasched.predictors.robust.loads import Loads
from metasched.predictors.robust.structure import Numbers, Structure, factors
from metasched.records import DEFAULT_SETTINGS, Settings

#: Scales before any run: bend, its lengths in log N and log P, scaling, noise. Halving or doubling any of them changes
#: the mean error on the design seeds by less than 3 % of itself at every number of runs.
SCALES = ScalePrior(Scales(0.06, (2.0, 2.0), 0.05, 0.03), fixed_lengths=2)
#: Length of the bend in each column of the settings.
LENGTH = 2.0
#: Times that formula, scales and weights are found anew, the last time without scales and weights; and the first time
#: that runs are of several platforms, of which some may be unlike the others.
ROUNDS, ROUNDS_OF_SEVERAL = 3, 6
#: How far the formula's numbers are off from platform to platform, and those of the effects. Each has its own speed;
#: the shape is common but for what latency and memory change. On the ports between the design campaigns a tenth or a
#: half of the first trial's spreads did better than all of them.
APART = Numbers(0.8, 0.005, 0.2, 0.003, 0.003, 0.2, 0.01, 0.015, 0.005, 0.01)
APART_OF_EFFECTS = 0.05
#: The least that a run on another platform counts.
LEAST_WEIGHT = 1e-3
#: Runs from which on wild ones can be distinguished from others.
FEWEST_WEIGHED = 5
#: How far beyond what was learned the bend goes on to change, in logarithms (a factor e); from there on it stays.
BEYOND = 1.0
#: Spread of log time for a distance of one (a factor e) in N and P beyond what was learned, and how many times the
#: usual variance one wild run may count in what is expected of the next.
OUTSIDE, WILDEST = 0.08, 4.0
#: That spread where no load varied: then no run separated computation from communication, which scale differently.
OUTSIDE_UNDIVIDED = 0.15
#: Spread of the log of communication besides, for a factor e in P beyond what was learned: collective operations change
#: their algorithms there, and processes begin to share links. With it 90 % intervals held 92 % of the runs beyond the
#: learned P of the design campaigns at 60 runs, 82 % without; 93 and 70 % of those of four other programs.
SPREADING_OUTSIDE = 0.5
#: What their mean is multiplied by: the tails of the next run's noise reach farther than the weights of past runs tell.
TAILS = 1.2
#: Processor counts whose part of the formula is remembered at most.
MOST_COUNTS = 4096
#: Answers to single requests that are remembered at most.
MOST_ANSWERS = 16
#: Spread of the noise on many processors, and how much less it is on one, in units of its scale: the more processes
#: wait for each other, the less the smallest averages say of the loads that delay a run. Of 2,400 errors on the design
#: seeds and two recorded campaigns this had a log likelihood larger by 60 than the same noise for all runs, and by 100
#: than noise that grows with the load. With :data:`TAILS` and :data:`OUTSIDE`, chosen there too, 90 % intervals held
#: 90 and 93 % of the outcomes at 20 and at 60 runs of the design seeds, and 90 % of both at those of the recorded ones.
NOISE, NOISE_ALONE = 1.8, 1.2


@dataclass(frozen=True)
class Model:
    """Formula and process, fitted to the same runs.

    Parameters
    ----------
    formula : with its most probable numbers.
    process : on what the formula leaves over, its levers the numbers.
    loads : that stand in for loads not measured.
    weights : of the runs of the window, shape (n,); below 1 for wild ones.

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
    loads: Loads
    weights: Floats

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
        scales : of the process, to start from or, without a search, to use.
        search : whether to look for the most probable scales.
        settings : of the runs; all alike where there are none.
        platforms : of the runs by number, 0 for the one asked about, which all are of where there are none.
        """
        sample = _Sample.of(runs, settings, platforms)
        rounds = ROUNDS if sample.alone or scales is not None else ROUNDS_OF_SEVERAL
        prior, weights = scale_prior(sample.points.shape[1]), np.ones(len(sample.runs))
        scales = scales if scales is not None and len(scales.lengths) == sample.points.shape[1] else prior.medians
        formula = Structure.around(sample.runs, sample.effects, sample.rows)
        expected, spreads = formula.vector, formula.spreads
        for turn in range(rounds):
            noise, extra = sample.noise / weights, sample.disturbed(formula)
            slopes, kin = sample.left_by(formula)[0], sample.kinship(formula)
            covariance = run_covariance(scales, sample.points, slopes, scales.noise**2 * noise + extra, kin)
            formula = formula.fitted(sample.runs, expected, covariance, sample.rows)
            if search and turn < rounds - 1:
                slopes, error = sample.left_by(formula)
                error += slopes @ (formula.vector - expected)
                scales = most_probable(
                    sample.points, slopes, spreads, error, prior, scales, noise=noise, extra=extra, kinship=kin
                )
            if turn < rounds - 1 and len(weights) >= FEWEST_WEIGHED:
                weights = sample.weighed(formula, scales, weights)
        return cls(formula, sample.process(formula, scales, weights), sample.loads, weights).under(DEFAULT_SETTINGS)

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
        """The model with a known formula, scales and weights, as one that was kept in a file.

        Parameters
        ----------
        formula : of computation and communication.
        runs : what it was fitted to, with NaN for loads that were not measured.
        scales : of the process.
        weights : of the runs, shape (n,), in (0, 1].
        settings, platforms : of each run; 0 is the platform itself. Both empty where all are alike.
        """
        sample, known = _Sample.of(runs, settings, platforms), np.asarray(weights, dtype=np.float64)
        if len(known) != len(sample.runs):
            raise ValueError(f"{len(known)} weights, expected {len(sample.runs)}, one for each run")
        formula = replace(formula, effects=sample.effects)
        if len(formula.powers) != len(sample.effects.names) or len(scales.lengths) != sample.points.shape[1]:
            expected = ", ".join(sample.effects.names) or "none"
            raise ValueError(f"{len(formula.powers)} numbers of effects, expected one for each of: {expected}")
        return cls(formula, sample.process(formula, scales, known), sample.loads, known).under(DEFAULT_SETTINGS)

    def under(self, settings: Settings) -> Model:
        """The same model, answering for other settings.

        Raises
        ------
        InputError
            A parameter is unknown, or a word where numbers were.
        """
        (row,) = self.formula.effects.columns.rows([settings])
        return replace(self, formula=replace(self.formula, setting=tuple(row.tolist())))

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times (s), and spreads of the logarithms of what will be measured, for arrays of one shape (n,)."""
        points = np.log(np.stack([n, p], axis=1))
        return self.at(points[:, 0], cpu, bw, self.of_counts(p), self.bend(points))

    def predict_one(self, n: float, p: int, cpu: float, bw: float) -> tuple[float, float]:
        """The same for one request, in a fifth of the time: what does not need arrays is done without.

        The last answers are kept: of one placement an interval is asked for, and the time limit at another level.
        """
        asked = n, p, cpu, bw
        found = self._answers.get(asked)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[asked] = self._predicted_one(*asked)
        return found

    def _predicted_one(self, n: float, p: int, cpu: float, bw: float) -> tuple[float, float]:
        formula, log_n, (of_count, further) = self.formula, math.log(n), self._of_count(p)
        log_p = of_count[-1]
        logs = log_n - self._middle[0], math.log(cpu), math.log(bw) - self._middle[1]
        computation, communication = formula.log_terms(*logs, *of_count[:2])
        sent = 1.0 / (1.0 + math.exp(min(computation - communication, 700.0)))
        slopes = [one * other for one, other in factors(sent, *logs, *of_count[2:5])]
        if formula.powers:
            effects = zip(of_count[5 : 5 + len(formula.powers)], of_count[5 + len(formula.powers) : -1], strict=True)
            slopes += [(1.0 - sent) * first + sent * second for first, second in effects]
        (low_n, low_p), (high_n, high_p) = self._corners
        held_n = min(max(log_n, low_n - BEYOND), high_n + BEYOND)
        held = np.array([[held_n, min(max(log_p, low_p - BEYOND), high_p + BEYOND), *further]])
        mean, variance, absorbed = self.process.form(held)
        away_n, away_p = max(log_n - high_n, low_n - log_n, 0.0), max(log_p - high_p, low_p - log_p, 0.0)
        free = self.process.roots @ (slopes - absorbed[0])
        noise = self.process.scales.noise * (self._noise[0] - self._noise[1] / p)
        disturbed = float(free @ free) + self.wildness * noise * noise
        outside = (self._outside * away_n) ** 2 + (self._outside**2 + (SPREADING_OUTSIDE * sent) ** 2) * away_p**2
        spread = math.sqrt(float(variance[0]) + outside + disturbed)
        first, second = (math.exp(min(term + mean[0], 709.0)) for term in (computation, communication))
        return first + second, spread

    def _of_count(self, p: int) -> tuple[tuple[float, ...], list[float]]:
        if p not in self._counts:
            if len(self._counts) > MOST_COUNTS:
                self._counts.clear()
            log_p = math.log(p)
            further = self._held(np.array([[0.0, log_p]]))[0, 2:].tolist()
            self._counts[p] = (*self.formula.of_counts(np.array([float(p)]))[:, 0].tolist(), log_p), further
        return self._counts[p]

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
    def _noise(self) -> tuple[float, float]:
        return noise_numbers(self.loads)

    @cached_property
    def _outside(self) -> float:
        return OUTSIDE if self.loads.varied else OUTSIDE_UNDIVIDED

    @cached_property
    def _corners(self) -> list[list[float]]:
        return [corner[:2].tolist() for corner in self.box]

    def bend(self, points: Floats) -> Floats:
        """Of the process at log N, log P (n, 2): mean, variance, what it takes over of each number; (n, 2 + m)."""
        mean, variance, absorbed = self.process.form(self._held(points))
        return np.concatenate([mean[:, None], variance[:, None], absorbed], axis=1)

    def bend_mean(self, points: Floats) -> Floats:
        """What :meth:`bend` expects, without its spread, shape (n,)."""
        return self.process.mean(self._held(points))

    def _held(self, points: Floats) -> Floats:
        """Points (n, 2) with the columns of the settings, within reach: shape (n, 2 + c)."""
        low, high = self.reach
        if self.formula.powers:
            columns = self.formula.effects.columns
            points = np.hstack([points, columns.filled(np.array(self.formula.setting), points[:, 1])])
        return np.minimum(np.maximum(points, low), high)

    def of_counts(self, p: Floats) -> Floats:
        """All that depends on P alone, shape (7 + 2 e, k): what the formula says, then two more rows.

        The first is the squared distance (in logarithms) from the counts learned, the second the variance of the noise,
        relative to the usual.
        """
        away = self._away(np.log(p), 1)
        return np.vstack([self.formula.of_counts(p), away, self.wildness * relative_noise(p, self.loads)])

    def at(self, log_n: Floats, cpu: Floats, bw: Floats, of_counts: Floats, bend: Floats) -> tuple[Floats, Floats]:
        """Times (s) and spreads of their logarithms.

        Parameters
        ----------
        log_n, cpu, bw : arrays of shape (n,).
        of_counts : of the P of each, see :meth:`of_counts`, shape (7 + 2 e, n).
        bend : what the process says of N and P, shape (n, 2 + m).
        """
        formula, logs = self.formula, (log_n - self._middle[0], np.log(cpu), np.log(bw) - self._middle[1])
        computation, communication = formula.log_terms(*logs, of_counts[0], of_counts[1])
        computation += bend[:, 0]
        communication += bend[:, 0]
        time, sent = _sum(computation, communication), np.ones_like(log_n)
        np.divide(communication, time, out=sent, where=(time > 0.0) & (time < np.inf))
        slopes = formula.slopes(sent, *logs, of_counts[:-2])
        slopes -= bend[:, 2:].T
        variance = bend[:, 1] + self._outside**2 * (self._away(log_n, 0) + of_counts[-2])
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
        """Of the true log times at some conditions, (n, n), and the variances of the noise of runs there, (n,)."""
        points = np.log(np.stack([n, p], axis=1))
        held, formula = self._held(points), self.formula
        across, taken, within = self.process.between(held)
        terms = formula.terms(n, p, cpu, bw)
        free = self.process.roots @ (terms.slopes - taken.T)
        beyond, sent = np.zeros_like(within), terms.communication / terms.time
        for side, alike in ((0, 0.0), (1, SPREADING_OUTSIDE**2 * np.outer(sent, sent))):
            for away in (points[:, side] - self.box[1][side], self.box[0][side] - points[:, side]):
                away = np.maximum(away, 0.0)
                beyond += (self._outside**2 + alike) * np.minimum.outer(away, away) ** 2
        noise = self.wildness * self.process.scales.noise**2 * relative_noise(p, self.loads)
        return within - across + free.T @ free + beyond, noise

    def _away(self, values: Floats, side: int) -> Floats:
        low, high = self.box
        away = np.maximum(np.maximum(values - high[side], low[side] - values), 0.0)
        away *= away
        return np.asarray(away)

    @cached_property
    def wildness(self) -> float:
        """Variance of the noise to expect of a run, relative to that of the typical one: as much as runs had so far."""
        return TAILS * float(np.mean(np.minimum(1.0 / self.weights, WILDEST)))

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """Least and largest log N, log P and columns of settings that the process knows, each of shape (2 + c,)."""
        return self.process.points.min(axis=0), self.process.points.max(axis=0)

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """The box within which the bend changes."""
        return self.box[0] - BEYOND, self.box[1] + BEYOND


def _sum(computation: Floats, communication: Floats) -> Floats:
    """The sum of two terms, whose logarithms become the terms; what is larger than all numbers is infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(computation, out=computation) + np.exp(communication, out=communication))


def noise_numbers(loads: Loads) -> tuple[float, float]:
    """Spread of the noise on many processors, and how much less it is on one, in units of its scale.

    Without loads that vary nothing is hidden by their smallest averages, and the noise is the same for all counts.

    Examples
    --------
    >>> noise_numbers(Loads(1.0, 1000.0, 0.1, 0.1, varied=False))
    (1.0, 0.0)
    """
    return (NOISE, NOISE_ALONE) if loads.varied else (1.0, 0.0)


def relative_noise(processors: Floats, loads: Loads) -> Floats:
    """Variance of the noise of runs on P processors relative to the scale of the noise, shape (n,).

    Examples
    --------
    >>> relative_noise(np.array([1.0, 2.0, 8.0]), Loads(0.8, 90.0, 0.1, 0.1, varied=True)).round(2)
    array([0.36, 1.44, 2.72])
    """
    many, less = noise_numbers(loads)
    return np.asarray((many - less / processors) ** 2)


def scale_prior(inputs: int) -> ScalePrior:
    """:data:`SCALES` for a process with further inputs besides N and P."""
    lengths = SCALES.medians.lengths + (LENGTH,) * (inputs - 2)
    return replace(SCALES, medians=replace(SCALES.medians, lengths=lengths))


@dataclass(frozen=True)
class _Sample:
    """The runs that a model looks at, whole, and how unsure each is."""

    runs: Observations
    points: Floats
    noise: Floats
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
        rows = (
            columns.filled(columns.rows(settings, learned=True), points[:, 1])
            if columns.columns
            else np.empty((len(runs), 0))
        )
        points = np.hstack([points, rows])
        chosen = well_chosen(points)
        whole, cpu_spread, bandwidth_spread = loads.filled(runs.at(chosen))
        noise = relative_noise(whole.processors, loads)
        effects = Effects(columns)
        return cls(
            whole, points[chosen], noise, loads, cpu_spread, bandwidth_spread, effects, rows[chosen], platform[chosen]
        )

    @property
    def alone(self) -> bool:
        """Whether all runs are of the platform asked about."""
        return not self.platforms.any()

    def kinship(self, formula: Structure) -> Kinship | None:
        """Of the runs on other platforms; None where there are none."""
        if self.alone:
            return None
        return Kinship(self.platforms, np.array([*APART, *(APART_OF_EFFECTS for _ in formula.powers)]))

    def weighed(self, formula: Structure, scales: Scales, weights: Floats) -> Floats:
        """Weights of the runs, below 1 for wild ones and for those of platforms unlike the others.

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
        of_platform = self.process(formula, scales, np.ones(len(weights))).group_weights(self.platforms)
        found = np.where(own, found, np.maximum(found * of_platform, LEAST_WEIGHT))
        return np.where(own, 1.0, found) if np.count_nonzero(own) < FEWEST_WEIGHED else found

    def disturbed(self, formula: Structure) -> Floats:
        """Variance of log time that loads not measured cause, shape (n,)."""
        terms, t = formula.of_runs(self.runs, self.rows), formula.numbers
        sent = terms.communication / terms.time
        by_cpu = ((1.0 - sent) * t.cpu + sent * t.waiting) * self.cpu_spread
        return np.asarray(by_cpu**2 + (sent * t.bandwidth * self.bandwidth_spread) ** 2)

    def left_by(self, formula: Structure) -> tuple[Floats, Floats]:
        """Slopes (n, m), and what the formula leaves over of log time, (n,)."""
        terms = formula.of_runs(self.runs, self.rows)
        return terms.slopes.T, np.log(self.runs.time / terms.time)

    def process(self, formula: Structure, scales: Scales, weights: Floats) -> ResidualProcess:
        """The process on what a formula leaves over.

        Parameters
        ----------
        formula : whose errors are its observations.
        scales : of the process.
        weights : of the runs, shape (n,): the noise of each is divided by its weight.
        """
        slopes, error = self.left_by(formula)
        return ResidualProcess(
            self.points,
            slopes,
            formula.spreads,
            error,
            scales,
            noise=self.noise / weights,
            extra=self.disturbed(formula),
            moved=False,
            kinship=self.kinship(formula),
        )
