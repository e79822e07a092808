"""The formula of the robust method: Eq. (1) with learned exponents and a serial part.

With n = N / N0 and b = bw / bw0, both relative to the medians of the runs, and p = P / P0, relative to the fewest
processors of any run, the time (s) is

    T = A n^growth / cpu^cpu (p^-speedup + serial)                                                      computation
      + A communication n^(growth + volume) b^-bandwidth cpu^-waiting 2 (1 - 1/P) (P / 2)^spreading     communication

There are ten parameters, each with a normal prior (those of factors on their logarithms). So three runs are enough for
a prediction, and sixty determine the parameters almost alone. The factor 2 (1 - 1/P) is common to a ring, an all-to-all
and a tree: nothing is sent on one processor, and the step from one to two is the largest. Times a power of P, it is
within a few percent of each of Table 1's functions over the processor counts of one application, as is a power of N of
each of the 77 complexity functions. So the formula interpolates between the entries of the tables of Eq. (1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from candidate_functions.terms import Observations
from metasched.arrays import Floats
from metasched.predictors.robust.effects import NO_EFFECTS, Effects

#: Steps of the search for the most probable numbers at most, and the gain at which it ends.
STEPS, ENOUGH = 15, 1e-5


class Numbers(NamedTuple):
    """The ten parameters of the formula, or one property of each, such as its prior mean."""

    amount: Any
    growth: Any
    serial: Any
    speedup: Any
    cpu: Any
    communication: Any
    volume: Any
    spreading: Any
    bandwidth: Any
    waiting: Any


#: Prior means and standard deviations. They are those of a first trial with few runs (exponents of N from 1 to 3,
#: communication a tenth of the computation within a factor of six, time inverse to CPU and bandwidth up to overlap);
#: communication and its exponent of P were then chosen on the design campaigns with three to eight runs, communication
#: and the deviation of the exponent of CPU on these and on other programs. The serial part is small and uncertain:
#: programs that run on hundreds of nodes have far less of it than those on a few. With a median of 0.015 within a
#: factor of 4.5 the speedup exceeded 1 to make up for it, and the mean error on the design campaigns was larger by 2 to
#: 5 % of it with three to eight runs, the same on other programs. From twenty runs on, halving or doubling any standard
#: deviation changes no mean error by more than 3 % of it.
PRIOR = Numbers(0.0, 2.0, np.log(0.004), 1.0, 1.0, np.log(0.06), -0.5, -0.5, 0.9, 0.2)
SPREAD = Numbers(10.0, 0.8, 2.0, 0.07, 0.05, 1.8, 0.5, 0.5, 0.2, 0.3)
#: The prior median of communication grows with this power of P0, since it is stated for two processors, relative to the
#: computation on P0. With 1 the prior would be that of the program on one processor, whatever the processors of its
#: runs; with 1/2, the same share of the time on any P0, as if everybody used as many processors as keep it small. With
#: 0, communication of runs that all used hundreds of processors was taken for computation (``docs/models.md``).
BY_FEWEST = 0.75
#: Lower bounds: time must not fall with a heavier load, nor computation grow with P.
LEAST = np.array([0.0 if name in ("speedup", "cpu", "bandwidth", "waiting") else -np.inf for name in Numbers._fields])


def prior_means(fewest: float) -> Numbers:
    """Prior means of the parameters of runs on ``fewest`` processors and more.

    >>> prior_means(1.0) == PRIOR, round(float(np.exp(prior_means(256.0).communication)), 2)
    (True, 3.84)
    """
    return PRIOR._replace(communication=PRIOR.communication + BY_FEWEST * np.log(fewest))


@dataclass(frozen=True)
class Terms:
    """Both terms at many conditions, and the derivatives of log time by the parameters.

    Parameters
    ----------
    computation, communication, time : arrays of shape (n,), seconds; the time is their sum.
    slopes : array of shape (m, n), derivatives of its logarithm by the parameters, first those ten.
    """

    computation: Floats
    communication: Floats
    time: Floats
    slopes: Floats


@dataclass(frozen=True)
class Structure:
    """The formula.

    Parameters
    ----------
    numbers : the ten parameters; ``amount``, ``serial`` and ``communication`` as logarithms.
    size, processors, bandwidth : N0, P0 and bw0 (Mbit/s).
    effects : of the runs' settings; none if all settings are equal.
    powers : the parameters of the effects.
    setting : the row of settings for which it predicts, NaN where not stated, shape (c,).

    Examples
    --------
    >>> made = Numbers(np.log(10.0), 2.0, np.log(1e-9), 1.0, 1.0, np.log(1e-9), 0.0, 0.0, 1.0, 0.0)
    >>> formula = Structure(made, size=1000.0, processors=1.0, bandwidth=90.0)
    >>> formula.log_time(*np.array([[2000.0], [4.0], [0.5], [90.0]])).round(4)
    array([2.9957])
    """

    numbers: Numbers
    size: float
    processors: float
    bandwidth: float
    effects: Effects = NO_EFFECTS
    powers: tuple[float, ...] = ()
    setting: tuple[float, ...] = ()

    @classmethod
    def around(cls, runs: Observations, effects: Effects = NO_EFFECTS, rows: Floats | None = None) -> Structure:
        """The formula with its prior means, scaled to these runs; rows of their settings, shape (n, c)."""
        sends = runs.processors > 1.0
        links = runs.bw[sends] if sends.any() else runs.bw
        size, bandwidth = (float(np.exp(np.log(values).mean())) for values in (runs.problem_size, links))
        powers = tuple(prior.value for prior in effects.priors)
        setting = (np.nan,) * len(effects.columns.columns)
        bare = cls(prior_means(p0 := float(runs.processors.min())), size, p0, bandwidth, effects, powers, setting)
        amount = np.median(np.log(runs.time / bare.of_runs(runs, rows).time))
        return replace(bare, numbers=bare.numbers._replace(amount=float(amount)))

    @property
    def vector(self) -> Floats:
        """All parameters, those of the effects last, shape (m,)."""
        return np.array([*self.numbers, *self.powers])

    @cached_property
    def spreads(self) -> Floats:
        """Prior standard deviation of each parameter, shape (m,)."""
        return np.array([*SPREAD, *(prior.spread for prior in self.effects.priors)])

    @cached_property
    def least(self) -> Floats:
        """Lower bound of each parameter, shape (m,)."""
        return np.array([*LEAST, *(prior.least for prior in self.effects.priors)])

    def with_numbers(self, numbers: Floats) -> Structure:
        """The same formula with other parameters, array of shape (m,)."""
        ten, powers = numbers[: len(PRIOR)].tolist(), numbers[len(PRIOR) :].tolist()
        return replace(self, numbers=Numbers(*ten), powers=tuple(powers))

    def of_counts(self, processors: Floats, rows: Floats | None = None) -> Floats:
        """All that depends on P and the settings alone, for arrays of shape (k,) to (5 + 2 e, k).

        Logarithms of computation and communication at N0, CPU 1 and bw0; the serial share of the computation;
        log(P / P0) and log(P / 2); the derivatives of both logarithms by the e parameters of the effects.

        Parameters
        ----------
        processors : P.
        rows : complete rows of settings, shape (k, c); that of the formula if None.
        """
        t = self.numbers
        fewest, two = np.log(processors / self.processors), np.log(processors / 2.0)
        shared, serial = np.exp(-t.speedup * fewest), np.exp(t.serial)
        with np.errstate(divide="ignore"):
            sent = np.log(2.0 - 2.0 / np.maximum(processors, 1.0)) + t.spreading * two
        whole = shared + serial
        known = [t.amount + np.log(whole), t.amount + t.communication + sent, serial / whole, fewest, two]
        if not self.powers:
            return np.array(known)
        log_p = np.log(processors)
        if rows is None:
            rows = self.effects.columns.filled(np.array(self.setting), log_p)
        found = self.effects.factors(self.powers, log_p, rows)
        known[0], known[1] = known[0] + found.computation, known[1] + found.communication
        return np.array([*known, *found.by_computation, *found.by_communication])

    def log_terms(
        self, log_size: Any, log_cpu: Any, log_link: Any, computation: Any, communication: Any
    ) -> tuple[Any, Any]:
        """Logarithms of both terms from log(N / N0), log cpu, log(bw / bw0) and the first two of :meth:`of_counts`.

        It accepts numbers and arrays of shape (n,).

        Parameters
        ----------
        log_size, log_cpu, log_link : log(N / N0), log cpu, and log(bw / bw0), bandwidths in Mbit/s.
        computation, communication : logarithms of the terms at the usual size, CPU 1 and the usual bandwidth.
        """
        t = self.numbers
        first = t.growth * log_size
        first -= t.cpu * log_cpu
        first += computation
        second = (t.growth + t.volume) * log_size
        second -= t.waiting * log_cpu
        second -= t.bandwidth * log_link
        second += communication
        return first, second

    def log_time(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Log of time for arrays of one shape (n,)."""
        logs = np.log(problem_size / self.size), np.log(cpu), np.log(bw / self.bandwidth)
        return np.asarray(np.logaddexp(*self.log_terms(*logs, *self.of_counts(processors)[:2])))

    def slopes(self, sent: Floats, log_size: Floats, log_cpu: Floats, log_link: Floats, of_counts: Floats) -> Floats:
        """Derivatives of log time by the parameters, (m, n), from the share of communication; others as above.

        Parameters
        ----------
        sent : share of the time that is communication, shape (n,).
        log_size, log_cpu, log_link : as in :meth:`log_terms`.
        of_counts : of :meth:`of_counts`, for the processors of each.
        """
        ten, effects = len(PRIOR), len(self.powers)
        slopes = np.empty((ten + effects, len(sent)))
        for row, (one, other) in enumerate(factors(sent, log_size, log_cpu, log_link, *of_counts[2:5])):
            np.multiply(one, other, out=slopes[row])
        if effects:
            slopes[ten:] = (1.0 - sent) * of_counts[5 : 5 + effects] + sent * of_counts[5 + effects :]
        return slopes

    def terms(
        self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats, rows: Floats | None = None
    ) -> Terms:
        """Both terms and their slopes, for arrays of one shape (n,); rows of settings as in :meth:`of_counts`."""
        logs = np.log(problem_size / self.size), np.log(cpu), np.log(bw / self.bandwidth)
        of_counts = self.of_counts(processors, rows)
        computation, communication = (np.exp(term) for term in self.log_terms(*logs, of_counts[0], of_counts[1]))
        time = computation + communication
        return Terms(computation, communication, time, self.slopes(communication / time, *logs, of_counts))

    def of_runs(self, runs: Observations, rows: Floats | None) -> Terms:
        """Both terms under the conditions of measured runs, with their rows of settings, shape (n, c)."""
        return self.terms(runs.problem_size, runs.processors, runs.cpu, runs.bw, rows)

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")  # a step that overflows is not taken
    def fitted(self, runs: Observations, prior: Floats, covariance: Floats, rows: Floats | None = None) -> Structure:
        """The formula with the most probable parameters (Levenberg-Marquardt).

        Parameters
        ----------
        runs : what to fit to.
        prior : array of shape (m,), the prior means of the parameters.
        covariance : array of shape (n, n), of the residuals of log time.
        rows : settings of the runs, shape (n, c).
        """
        factor = scipy.linalg.cholesky(covariance, lower=True)
        log_time, spreads, least = np.log(runs.time), self.spreads, self.least

        def misfit(numbers: Floats) -> tuple[float, Structure, Floats, Floats, Floats]:
            formula = self.with_numbers(numbers)
            terms = formula.of_runs(runs, rows)
            observed = np.column_stack([log_time - np.log(terms.time), terms.slopes.T])
            white = scipy.linalg.solve_triangular(factor, observed, lower=True, check_finite=False)
            left, steep = white[:, 0], white[:, 1:] * spreads
            away = (numbers - prior) / spreads
            return float(left @ left + away @ away), formula, left, steep, away

        numbers, damping = self.vector, 1e-3
        value, formula, left, steep, away = misfit(numbers)
        for _ in range(STEPS):
            uphill = steep.T @ left - away
            free = (numbers > least) | (uphill > 0.0)  # a parameter at its lower bound moves up or not at all
            curvature = (steep.T @ steep + np.eye(len(numbers)))[np.ix_(free, free)]
            curvature[np.diag_indices(len(curvature))] *= 1.0 + damping
            there = numbers.copy()
            there[free] += np.linalg.solve(curvature, uphill[free]) * spreads[free]
            there = np.maximum(there, least)
            found = misfit(there)
            if found[0] < value:
                gain, numbers, damping = value - found[0], there, 0.2 * damping
                value, formula, left, steep, away = found
                if gain < ENOUGH:
                    break
            else:
                damping *= 8.0
        return formula


def factors(sent: Any, log_size: Any, log_cpu: Any, log_link: Any, serial: Any, fewest: Any, two: Any) -> Numbers:
    """The derivatives of log time as products of two; it accepts numbers and arrays of shape (n,).

    Parameters
    ----------
    sent : share of the time that is communication.
    log_size, log_cpu, log_link : as in :meth:`Structure.log_terms`.
    serial : share of the computation that is serial.
    fewest, two : log(P / P0) and log(P / 2).
    """
    computing = 1.0 - sent
    serial = computing * serial
    return Numbers(
        amount=(1.0, 1.0),
        growth=(1.0, log_size),
        serial=(1.0, serial),
        speedup=(serial - computing, fewest),
        cpu=(-computing, log_cpu),
        communication=(1.0, sent),
        volume=(sent, log_size),
        spreading=(sent, two),
        bandwidth=(-sent, log_link),
        waiting=(-sent, log_cpu),
    )
