"""Run times from similar jobs: the weighted distribution of their run times, with running jobs as censored values.

A job is compared with the last jobs of its user, with the running jobs of the user, and with the last jobs of other
users with the same limit. Each is weighted by its similarity (processors, limit, name, executable) and its age; the
weights are exponentials of a linear form, see ``similarity``. The run time of a running job has only a lower bound, so
the distribution is the weighted product-limit estimate of Kaplan & Meier ("Nonparametric estimation from incomplete
observations", JASA 53, 1958).

Some forms take the run times of the user's jobs with other limits in proportion to the limit: users who ask for twice
the time often need more, and whether in proportion or not differs between them. Jobs without a limit are not scaled.

Several such forms are combined, each weighted by its recent accuracy (exponentially weighted average forecaster;
Cesa-Bianchi & Lugosi, "Prediction, Learning, and Games", 2006, Section 2.2). The ends of intervals are quantiles whose
levels follow the recent coverage (Gibbs & Candès, "Adaptive conformal inference under distribution shift", 2021).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Floats
from metasched.history.backfilling import outlived
from metasched.history.run_times.job_columns import (
    CUT,
    LIMIT,
    NAME,
    ROWS,
    RUN,
    SHORT,
    STEM,
    USER,
    WIDTH,
    LastJobs,
    code_of,
    without_numbers,
)
from metasched.history.run_times.similarity import (
    FORMS,
    OTHERS,
    OWN,
    RUNNING,
    weights_of_others,
    weights_of_own,
)
from metasched.history.submission import NO_LIMIT, Submission
from metasched.plain_numbers import span

#: Most limits whose last jobs are kept, and most names whose stems (without digits) are.
MOST_LIMITS, MOST_NAMES = 2000, 100_000
#: Levels of the quantiles that are kept for each job until it ends.
GRID = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
#: Weights of these quantiles in the prediction: centred slightly above the median, since long jobs that still run are
#: missing among those that have ended, and spread, since the median alone is less stable.
MIDDLE = np.array([0, 0, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0, 0]) / 12.0

#: Levels of the distribution of the remaining run time at which a queue is simulated.
EVENLY = (np.arange(5) + 0.5) / 5.0
#: Shifts the levels from job to job; multiples of the golden ratio spread evenly.
GOLDEN = (5.0**0.5 - 1.0) / 2.0

#: What a job to compare with is: an ended one of the user; one with another limit, its run time in proportion to the
#: limit; an ended one of others; a running one of the user.
_ENDED_OWN, _IN_PROPORTION, _OTHERS, _RUNS = range(4)
#: The quantile level at which each form predicts; chosen like all numbers below as those of the similarity were.
LEVELS = np.array([0.549, 0.549, 0.565, 0.554, 0.53])
#: The forms that take run times of the user's ended jobs with other limits in proportion to the limit.
PROPORTIONAL = np.array([False, True, False, True, True])
#: Weights of the forms before their accuracy is known; the last forgets fastest, for users whose jobs change.
PRIOR = np.array([1.0, 1.0, 1.0, 1.0, 0.1])
#: Decay of a form's past losses, and how strongly they count (per mean loss).
MEMORY, RATE = 0.995, 20.0
#: The same for the losses on a user's own jobs, which are added.
OWN_MEMORY, OWN_RATE = 0.95, 0.5
#: Step of the levels of intervals, and the factor by which they are wider than the quantiles.
STEP, MARGIN = 0.004, 1.02
#: With more jobs than this whose ends are awaited, steps are smaller in proportion: all of these had been predicted
#: before the outcome of the first was known, and would else move the levels too far together.
AWAITED = 25
#: How far beyond 0 and 1 levels may go, where intervals have no end but 0 or the limit. Misses stay remembered there,
#: as coverage in the long run requires.
BEYOND = 0.2


#: As how many observed jobs those count that are shorter, and those that are longer, than any observed. Without them an
#: interval from few jobs is too narrow: the next of n + 1 is the shortest or the longest in 2 of n + 1 cases.
UNSEEN = 0.25

#: What reasons call jobs by their names.
SAME_NAME = "of this user with the same name, size and limit"
SIMILAR_NAME = "of this user with a similar name and the same size and limit"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The prediction of a job's run time.

    Parameters
    ----------
    run_time, low, high : median and ends of the interval (s).
    quantiles : at the levels of :data:`GRID` (s).
    answers : the prediction of each form (s).
    own : whether any job of the user had ended.
    """

    run_time: float
    low: float
    high: float
    quantiles: Floats
    answers: Floats
    own: bool


_ENDLESS = math.log2(NO_LIMIT)
#: Limits are kept as logarithms, which are exact to so many seconds at least.
ROUNDING = 0.001
#: No jobs, and no weights.
_NONE, _NO_WEIGHTS = np.empty((ROWS, 0)), np.empty((len(FORMS), 0))


class Neighbours:
    """Predicts run times from similar jobs; see the module.

    >>> past = Neighbours()
    >>> job = Submission("ada", 4, 3600.0)
    >>> for number in range(9):
    ...     expected = past.submitted(number, job, 900.0 * number)
    ...     past.started(number, 900.0 * number)
    ...     past.ended(number, 600.0 + number, 900.0 * number + 600.0)
    >>> 600 <= past.expect(job, 9000.0).run_time <= 608
    True
    >>> past.reason(job, 9000.0)
    'the last 9 jobs of this user with the same size and limit took 10.0 min to 10.1 min'
    """

    def __init__(self, level: float = 0.9) -> None:
        forms = len(FORMS)
        self._own: dict[Hashable, LastJobs] = {}
        self._others: dict[Hashable, LastJobs] = {}
        self._running: dict[Hashable, dict[Hashable, list[float]]] = {}
        self._known: dict[Hashable, tuple[Submission, float, Forecast]] = {}
        self._stems: dict[str, float] = {}
        self._own_losses: dict[Hashable, Floats] = {}
        self._losses, self._scale = np.zeros(forms), 1.0
        self._miss = (1.0 - level) / 2.0
        self._low, self._high = self._miss, 1.0 - self._miss

    def expect(self, job: Submission, now: float) -> Forecast:
        """The prediction for a job submitted now."""
        return self._forecast(job, *self._alike(job, now))

    def submitted(self, key: Hashable, job: Submission, now: float) -> Forecast:
        """Predict a job that has been submitted; the prediction is kept until the job ends."""
        found = self.expect(job, now)
        self._known[key] = job, now, found
        return found

    def adopt(self, key: Hashable, other: Neighbours) -> None:
        """Predict a job that another predictor knows and that has not ended, as if it had been submitted here."""
        job, submitted, _ = other._known[key]
        self.submitted(key, job, submitted)
        if (column := other._running.get(job.user, {}).get(key)) is not None:
            self._running.setdefault(job.user, {})[key] = column

    def started(self, key: Hashable, now: float) -> None:
        """Note that a job has started at a time (s): its run time is at least what it has run since."""
        if key in self._known:
            job, submitted, _ = self._known[key]
            self._running.setdefault(job.user, {})[key] = self._column(job, now, math.nan, submitted)

    def ended(self, key: Hashable, run_time: float, now: float) -> None:
        """Learn from a job that has ended, if it is known.

        Parameters
        ----------
        key : what :meth:`submitted` was given.
        run_time : how long it ran (s).
        now : when it ended (s).
        """
        if (known := self._left(key)) is None:
            return
        job, submitted, found = known
        column = self._column(job, run_time, now, submitted)
        for rings, name, most in ((self._own, job.user, OWN), (self._others, job.limit, OTHERS)):
            if name not in rings:
                rings[name] = LastJobs(most)
            rings[name].add(column)
        if len(self._others) > MOST_LIMITS:
            del self._others[next(iter(self._others))]
        self._learn(job.user, found, run_time)

    def withdrawn(self, key: Hashable) -> None:
        """Forget a job that has left the queue without running."""
        self._left(key)

    def _left(self, key: Hashable) -> tuple[Submission, float, Forecast] | None:
        """What is kept of a job, which is kept no longer; None if it is unknown."""
        known = self._known.pop(key, None)
        if known is not None and (running := self._running.get(known[0].user)) is not None:
            running.pop(key, None)
            if not running:
                del self._running[known[0].user]
        return known

    def left(self, key: Hashable, ran: float, shares: Floats) -> Floats:
        """Quantiles of the remaining run time (s) of a job after ``ran`` seconds.

        Parameters
        ----------
        key, ran : the job, and how long it has run (s), 0 if it is pending.
        shares : levels between 0 and 1, array of shape (shares,), the shape of the result.
        """
        job, _, found = self._known[key]
        passed = float(np.interp(ran, found.quantiles, GRID, left=0.0)) if ran > 0 else 0.0
        if passed >= GRID[-1]:
            return np.full(shares.shape, outlived(ran, job.limit) - ran)
        return np.maximum(np.interp(passed + (1.0 - passed) * shares, GRID, found.quantiles) - ran, 1.0)

    def possible(self, key: Hashable, ran: float, place: int) -> tuple[float, ...]:
        """Possible remaining run times (s) of a job after ``ran`` seconds, evenly spread over the distribution.

        Parameters
        ----------
        key, ran : the job, and how long it has run (s), 0 if it is pending.
        place : of the job among others, at least 0: it shifts the levels, so that not all are long at once.
        """
        return tuple(self.left(key, ran, np.mod(EVENLY + place * GOLDEN, 1.0)).tolist())

    def forget(self, user: Hashable) -> None:
        """Forget all jobs of a user."""
        self._own.pop(user, None)
        self._own_losses.pop(user, None)
        self._running.pop(user, None)
        self._stems.clear()  # they hold names of the user's jobs
        code = code_of(user)
        for name, ring in list(self._others.items()):
            kept = [job for job in ring.columns.T if job[USER] != code]
            self._others[name] = LastJobs(OTHERS)
            for job in kept:
                self._others[name].add(job)
        for key in [key for key, (known, _, _) in self._known.items() if known.user == user]:
            del self._known[key]

    def reason(self, job: Submission, now: float) -> str:
        """The main basis of a prediction, as a sentence: the jobs with the most weight, all forms taken together."""
        items, weights, origin = self._alike(job, now)
        mixed = self._counts(job.user) @ (weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))
        own = origin == _ENDED_OWN
        alike = own & (items[WIDTH] == math.log2(job.processors)) & (items[LIMIT] == math.log2(job.limit))
        groups = {
            SAME_NAME: alike & (items[NAME] == code_of(job.name)),
            SIMILAR_NAME: alike & (items[STEM] == self._stem(job.name)),
            "of this user with the same size and limit": alike,
            "of this user with another size or limit": own & ~alike,
            "of this user with other limits, in proportion to the limit,": origin == _IN_PROPORTION,
            "of this user, still running,": origin == _RUNS,
            "of others with the same limit": origin == _OTHERS,
        }
        if not job.name:
            del groups[SAME_NAME], groups[SIMILAR_NAME]
        shares = {what: float(mixed[which].sum()) for what, which in groups.items()}
        total = float(mixed.sum())
        if not total:
            return f"nothing is known of such jobs; the limit is {span(job.limit)}"
        best = next(
            (what for what, share in shares.items() if share >= 0.5 * total), max(shares, key=lambda each: shares[each])
        )
        last = items[RUN, groups[best]][-9:]
        low, high = (span(float(each)) for each in np.quantile(last, [0.25, 0.75]))
        jobs = "job" if last.size == 1 else f"{last.size} jobs"
        so_far = " so far" if best.endswith("running,") else ""
        return f"the last {jobs} {best} took {low if low == high else f'{low} to {high}'}{so_far}"

    def _stem(self, name: str) -> float:
        """The code of a name without its digits; a name of nothing else keeps them."""
        if (found := self._stems.get(name)) is None:
            if len(self._stems) >= MOST_NAMES:
                self._stems.clear()
            found = self._stems[name] = code_of(without_numbers(name))
        return found

    def _column(self, job: Submission, run: float, ended: float, submitted: float) -> list[float]:
        return [math.log2(job.processors), math.log2(job.limit), ended, submitted, float(run >= 0.98 * job.limit),
                float(run < 60.0), run, code_of(job.name), self._stem(job.name), code_of(job.user),
                self._stem(job.executable) if job.executable else math.nan]  # fmt: skip

    def _alike(self, job: Submission, now: float) -> tuple[Floats, Floats, NDArray[np.int8]]:
        """Similar jobs, their weights, and what each is; shapes (rows, jobs), (forms, jobs), (jobs,).

        In the order of :data:`_ENDED_OWN` and the following; the newest last among each.
        """
        this = np.array(self._column(job, 0.0, 0.0, now))
        own, scaled, others, running = _NONE, _NONE, _NONE, _NONE
        weights, of_scaled, of_others, of_running = _NO_WEIGHTS, _NO_WEIGHTS, _NO_WEIGHTS, _NO_WEIGHTS
        if (ring := self._own.get(job.user)) is not None:
            own = ring.columns
            weights = weights_of_own(own, this, now, ended=True)
            limited = (own[LIMIT] < _ENDLESS) & (this[LIMIT] < _ENDLESS)
            if (differ := (own[LIMIT] != this[LIMIT]) & limited).any():
                scaled, of_scaled = own[:, differ], weights[:, differ]
                scaled[RUN] *= np.exp2(this[LIMIT] - scaled[LIMIT])
                scaled[LIMIT] = this[LIMIT]
                of_scaled[~PROPORTIONAL] = 0.0
                weights[np.ix_(PROPORTIONAL, differ)] = 0.0
        if (ring := self._others.get(job.limit)) is not None:
            others = ring.columns
            theirs = others[USER] != this[USER]
            of_others = weights_of_others(others, this, now)
            if not theirs.all():
                others, of_others = others[:, theirs], of_others[:, theirs]
        if (on := self._running.get(job.user)) is not None:
            running = np.array(list(on.values())[-RUNNING:]).T
            running[RUN] = now - running[RUN]
            running[SHORT] = running[RUN] < 60.0
            running[CUT] = 0.0
            of_running = weights_of_own(running, this, now, ended=False)
        items = (own, scaled, others, running)
        return (
            np.concatenate(items, axis=1), np.concatenate([weights, of_scaled, of_others, of_running], axis=1),
            np.repeat(np.arange(4, dtype=np.int8), [each.shape[1] for each in items]),
        )  # fmt: skip

    def _forecast(self, job: Submission, items: Floats, weights: Floats, origin: NDArray[np.int8]) -> Forecast:
        """The weighted product-limit estimate, and the prediction from it.

        It is truncated at the limit, but those that ran beyond theirs are taken to run as far beyond that of this job.
        """
        limit, run = job.limit, items[RUN]
        if not run.size:
            return Forecast(limit, 0.0, limit, np.full(GRID.size, limit), np.full(len(FORMS), limit), False)
        beyond = np.ceil(run - np.exp2(items[LIMIT]) - ROUNDING)
        run = np.minimum(run, limit + np.maximum(beyond, 0.0))
        order = np.argsort(run, kind="stable")
        values = run[order]
        values = np.append(values, max(limit, values[-1]))
        weights = weights[:, order]
        if origin[-1] != _RUNS:  # none runs
            passed: Floats = np.cumsum(weights, axis=1)
            passed /= np.maximum(passed[:, -1:], 1e-300)
        else:
            risk = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
            left = np.where(origin[order] != _RUNS, 1.0 - weights / np.maximum(risk, 1e-300), 1.0)
            passed = np.asarray(1.0 - np.cumprod(np.maximum(left, 0.0), axis=1), dtype=np.float64)
        answers = values[(passed < LEVELS[:, None] - 1e-9).sum(axis=1)]
        mixed = self._counts(job.user) @ passed
        least, most = self._levels(job, items, origin)
        found = values[np.searchsorted(mixed, np.concatenate([GRID, [least, most]]) - 1e-9)]
        quantiles = np.maximum(found[: GRID.size], 1.0)
        run_time = float(MIDDLE @ quantiles)
        low = 0.0 if least <= 0 else min(float(found[-2]) / MARGIN, run_time)
        longest = float(values[-1])
        high = longest if most >= 1 else max(min(float(found[-1]) * MARGIN, longest), run_time)
        return Forecast(run_time, low, high, quantiles, answers, job.user in self._own)

    def _levels(self, job: Submission, items: Floats, origin: NDArray[np.int8]) -> tuple[float, float]:
        """The levels of the ends of an interval, from 0 and up to 1 where there is a job to end at, see UNSEEN.

        Where no job of the user has ended, those of another user are one observation, however many they are.
        """
        own = int(np.count_nonzero(origin == _ENDED_OWN))
        seen = own or np.unique(items[USER, origin == _OTHERS]).size
        if not seen:
            return 0.0, 1.0
        low, high = ((level * (seen + 2 * UNSEEN) - UNSEEN) / seen for level in (self._low, self._high))
        return low, high

    def _counts(self, user: Hashable) -> Floats:
        """The weight of each form for a user, shape (forms,)."""
        losses = RATE * self._losses / self._scale
        if user in self._own_losses:
            losses = losses + OWN_RATE * self._own_losses[user] / self._scale
        counts = PRIOR * np.exp(losses.min() - losses)
        return np.asarray(counts / counts.sum())

    def _learn(self, user: Hashable, found: Forecast, run_time: float) -> None:
        missed = np.abs(found.answers - run_time)
        self._own_losses[user] = OWN_MEMORY * self._own_losses.get(user, 0.0) + missed - missed.min()
        self._losses = MEMORY * self._losses + (1.0 - MEMORY) * missed
        self._scale = MEMORY * self._scale + (1.0 - MEMORY) * float(missed.mean())
        if not found.own:  # its interval is as wide as it is for another reason than earlier misses
            return
        step = STEP * min(1.0, AWAITED / (len(self._known) + 1))
        self._low = min(max(self._low + step * (self._miss - (run_time < found.low)), -BEYOND), 0.45)
        self._high = max(min(self._high - step * (self._miss - (run_time > found.high)), 1.0 + BEYOND), 0.55)
