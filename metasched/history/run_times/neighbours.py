"""Run times from jobs that are alike: a weighted distribution of what they took, and of what those that run have shown.

What a job is compared with are the last jobs of its user, those of the user that run, and the last jobs of others
with the same limit. Each counts by how alike it is (processors, limit, name) and how recent; the weights are an
exponential of a linear form. Jobs that still run tell that they take longer than they have run: the distribution is
the product-limit estimate of Kaplan & Meier ("Nonparametric estimation from incomplete observations", JASA 53, 1958)
with weights.

Several such forms are asked, and each counts by how well it did lately (exponentially weighted average forecaster;
Cesa-Bianchi & Lugosi, "Prediction, Learning, and Games", 2006, Section 2.2). The ends of intervals are quantiles whose
levels follow how often they held (Gibbs & Candès, "Adaptive conformal inference under distribution shift", 2021).
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.history.backfilling import outlived
from metasched.history.job_log import Floats

#: How many ended jobs of a user, running ones of a user, and ended ones of others with the same limit are compared.
OWN, RUNNING, OTHERS = 60, 12, 24
#: Limits of which the others' last jobs are kept.
MOST_LIMITS = 2000
#: Quantile levels of the distribution that is kept of each job until it ends.
GRID = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])

#: Levels whose quantiles' mean is the answer: the median, less jumpy where few jobs are known.
MIDDLE = np.linspace(0.4, 0.66, 7)

# Columns of what is kept of a job.
_RUN, _WIDTH, _LIMIT, _ENDED, _SUBMITTED, _NAME, _STEM, _USER = range(8)
_COLUMNS = 8

#: The forms, one a column. Rows: distance in log2 processors, whether they differ; distance in log2 limit, whether it
#: differs; rank by recency; log hours since it ended, log of ten minutes between the submissions; nearness in rank
#: among jobs with the same processors and limit, and among all; distance in the hour of the day; whether it was ended
#: by its limit (with a plus), within a minute (with a minus); log rank; other name, other name but for digits.
OWN_FORMS = np.array([
    [1.407, 0.649, 0.233, 0.405, 0.8], [0.792, 0.902, 0.653, 1.112, 0.8], [2.644, 2.041, 2.644, 4.016, 2.6],
    [1.004, 0.563, 1.31, 0.625, 1], [0.011, 0.011, 0.011, 0.011, 0.35], [0.265, 0.295, 0.341, 0.276, 0.2],
    [0.106, 0.147, -0.078, 0.029, 0.05], [-0.374, -0.507, -0.637, -0.514, -0.374],
    [-0.144, -0.296, -0.144, -0.441, -0.5], [-0.079, 0.094, 0.003, 0.317, 0.1], [0.282, 0.334, 0.193, -0.038, 0.1],
    [0.267, 0.36, 0.655, 0.288, 0.1], [0.05, 0.246, 0.05, 0.098, 0.3], [1, 1, 1, 1, 1], [1.5, 1.5, 1.5, 1.5, 1.5],
])  # fmt: skip
#: For others' jobs: distance in log2 processors, rank, log rank, log hours since it ended.
OTHER_FORMS = np.array([
    [2.2, 0.855, 1.339, 3.032, 2.2], [0.077, 0.087, 0.111, 0.212, 0.2], [0.039, -0.177, -0.335, -0.123, 0.1],
    [0, 0.275, 0, -0.196, 0.1],
])  # fmt: skip
#: What others' jobs, and running ones, count beside ended ones of the user.
OTHERS_COUNT = np.array([0.007, 0.012, 0.007, 0.004, 0.007])
RUNNING_COUNT = np.array([0.282, 0.399, 0.343, 0.369, 0.6])
#: Quantile levels that each form answers with.
LEVELS = np.array([0.549, 0.549, 0.565, 0.554, 0.53])
#: How fast a form's past losses are forgotten, and how strongly losses count (per mean loss).
MEMORY, RATE = 0.995, 20.0
#: The same of the losses with a user's jobs, which count besides.
OWN_MEMORY, OWN_RATE = 0.95, 0.5
#: Step of the levels of intervals, and how much wider than the quantiles they are.
STEP, MARGIN = 0.004, 1.02


@dataclass(frozen=True, slots=True)
class Submission:
    """What is known of a job when it is submitted.

    Parameters
    ----------
    user : who submits it.
    processors, limit : P, and its time limit (s).
    name : the job's name, executable or whatever it is called by; empty where there is none.
    """

    user: Hashable
    processors: int
    limit: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of a job's run time.

    Parameters
    ----------
    run_time, low, high : median and ends of the interval (s).
    quantiles : at the levels of :data:`GRID` (s).
    answers : what each form says (s).
    reason : what it mostly rests on.
    """

    run_time: float
    low: float
    high: float
    quantiles: Floats
    answers: Floats


class _Ring:
    """The last jobs of a user or a limit, newest last."""

    __slots__ = ("_count", "_most", "_rows")

    def __init__(self, most: int) -> None:
        self._most, self._count = most, 0
        self._rows = np.empty((4, _COLUMNS))

    def add(self, row: Sequence[float]) -> None:
        size = len(self._rows)
        if self._count == size:
            if size < 2 * self._most:
                self._rows = np.concatenate([self._rows, np.empty((min(size, 2 * self._most - size), _COLUMNS))])
            else:
                self._rows[: self._most] = self._rows[size - self._most :]
                self._count = self._most
        self._rows[self._count] = row
        self._count += 1

    def newest_first(self) -> Floats:
        return self._rows[max(0, self._count - self._most) : self._count][::-1]


class Neighbours:
    """Expects run times from the jobs that are alike; see the module.

    Parameters
    ----------
    level : of the intervals.

    Examples
    --------
    >>> past = Neighbours()
    >>> job = Submission("ada", 4, 3600.0)
    >>> for number in range(9):
    ...     told = past.submitted(number, job, 900.0 * number)
    ...     past.started(number, 900.0 * number)
    ...     ended = past.ended(number, 600.0 + number, 900.0 * number + 600.0)
    >>> 600 <= past.expect(job, 9000.0).run_time <= 608
    True
    >>> past.reason(job, 9000.0)
    'the last 9 jobs of this user with the same size and limit took 10 min'
    """

    def __init__(self, level: float = 0.9) -> None:
        forms = OWN_FORMS.shape[1]
        self._own: dict[Hashable, _Ring] = {}
        self._others: dict[float, _Ring] = {}
        self._running: dict[Hashable, dict[Hashable, list[float]]] = {}
        self._known: dict[Hashable, tuple[Submission, float, Forecast]] = {}
        self._codes: dict[Hashable, int] = {}
        self._own_losses: dict[Hashable, Floats] = {}
        self._losses, self._scale = np.zeros(forms), 1.0
        self._miss = (1.0 - level) / 2.0
        self._low, self._high = self._miss, 1.0 - self._miss

    def expect(self, job: Submission, now: float) -> Forecast:
        """What is expected of a job that is submitted now."""
        items, weights, ended = self._alike(job, now)
        return self._forecast(job, items, weights, ended)

    def submitted(self, key: Hashable, job: Submission, now: float) -> Forecast:
        """A job is submitted: what is expected of it is remembered until it ends."""
        found = self.expect(job, now)
        self._known[key] = job, now, found
        return found

    def started(self, key: Hashable, now: float) -> None:
        """A job has started."""
        if key in self._known:
            job, submitted, _ = self._known[key]
            self._running.setdefault(job.user, {})[key] = self._row(job, now, math.nan, submitted)

    def ended(self, key: Hashable, run_time: float, now: float) -> Submission | None:
        """A job has ended; what was submitted, None where nothing is known of it."""
        if key not in self._known:
            return None
        job, submitted, found = self._known.pop(key)
        if (running := self._running.get(job.user)) is not None:
            running.pop(key, None)
            if not running:
                del self._running[job.user]
        row = self._row(job, run_time, now, submitted)
        self._own.setdefault(job.user, _Ring(OWN)).add(row)
        self._others.setdefault(job.limit, _Ring(OTHERS)).add(row)
        if len(self._others) > MOST_LIMITS:
            del self._others[next(iter(self._others))]
        self._learn(job.user, found, run_time)
        return job

    def withdrawn(self, key: Hashable) -> None:
        """A job will not be told of any more: nothing is learned of it."""
        if key in self._known:
            job, *_ = self._known.pop(key)
            if (running := self._running.get(job.user)) is not None:
                running.pop(key, None)
                if not running:
                    del self._running[job.user]

    def remaining(self, key: Hashable, ran: float) -> float:
        """How long a job is expected to run on (s) that has run so long; its run time where ``ran`` is 0."""
        job, _, found = self._known[key]
        if ran <= 0:
            return found.run_time
        passed = float(np.interp(ran, found.quantiles, GRID, left=0.0, right=1.0))
        if passed >= GRID[-1]:
            return outlived(ran, job.limit) - ran
        return max(float(np.interp((1.0 + passed) / 2.0, GRID, found.quantiles)) - ran, 1.0)

    def forget(self, user: Hashable) -> None:
        """Forget all jobs of a user."""
        self._own.pop(user, None)
        self._own_losses.pop(user, None)
        self._running.pop(user, None)
        code = float(self._codes.get(user, -1))
        for name, ring in list(self._others.items()):
            kept = [row for row in ring.newest_first()[::-1] if row[_USER] != code]
            self._others[name] = _Ring(OTHERS)
            for row in kept:
                self._others[name].add(row)
        for key in [key for key, (job, _, _) in self._known.items() if job.user == user]:
            del self._known[key]

    def reason(self, job: Submission, now: float) -> str:
        """What the expectation mostly rests on, in words."""
        items, weights, ended = self._alike(job, now)
        own = items[:, _USER] == self._code(job.user)
        alike = own & (items[:, _WIDTH] == math.log2(job.processors)) & (items[:, _LIMIT] == math.log2(job.limit))
        groups = {
            "of this user with the same name, size and limit": alike
            & ended
            & (items[:, _NAME] == self._code(job.name)),
            "of this user with the same size and limit": alike & ended,
            "of this user": own & ended & ~alike,
            "of this user that run have run for": own & ~ended,
            "of others with the same limit": ~own,
        }
        if not job.name:
            del groups["of this user with the same name, size and limit"]
        shares = {what: float(weights[which].sum()) for what, which in groups.items()}
        total = float(weights.sum())
        if not total:
            return f"nothing is known of such jobs; the limit is {_spoken(job.limit)}"
        best = next(
            (what for what, share in shares.items() if share >= 0.5 * total), max(shares, key=lambda each: shares[each])
        )
        last = items[groups[best]][:9, _RUN]
        low, high = (_spoken(float(each)) for each in np.quantile(last, [0.25, 0.75]))
        took = "" if best.endswith("run for") else " took"
        return f"the last {last.size} jobs {best}{took} {low if low == high else f'{low} to {high}'}"

    def _code(self, name: Hashable) -> float:
        return float(self._codes.setdefault(name, len(self._codes)))

    def _row(self, job: Submission, run: float, ended: float, submitted: float) -> list[float]:
        stem = re.sub(r"\d+", "#", job.name) if job.name else ""
        return [run, math.log2(job.processors), math.log2(job.limit), ended, submitted, self._code(job.name),
                self._code(("stem", stem)), self._code(job.user)]  # fmt: skip

    def _alike(self, job: Submission, now: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Jobs to compare with, their weights under each form, shape (jobs, forms), and which of them have ended."""
        this = self._row(job, 0.0, 0.0, now)
        own = self._own[job.user].newest_first() if job.user in self._own else np.empty((0, _COLUMNS))
        running = np.array(list(self._running.get(job.user, {}).values())[-RUNNING:]).reshape(-1, _COLUMNS)[::-1]
        if len(running):
            running = running.copy()
            running[:, _RUN] = now - running[:, _RUN]
        items = np.concatenate([own, running])
        forms = OWN_FORMS.shape[1]
        weights = np.empty((0, forms))
        if len(items):
            rank = np.concatenate([np.arange(len(own)), np.arange(len(running))]).astype(float)
            width, limit = (np.abs(items[:, each] - this[each]) for each in (_WIDTH, _LIMIT))
            gone = np.zeros(len(items))
            gone[: len(own)] = np.log1p(np.maximum(now - own[:, _ENDED], 0.0) / 3600.0)
            apart = np.maximum(now - items[:, _SUBMITTED], 0.0)
            same = ((width == 0) & (limit == 0))[: len(own)]
            near = np.zeros((2, len(items)))
            near[0, : len(own)] = np.where(same, 1.0 / np.cumsum(same).clip(1), 0.0)
            near[1, : len(own)] = 1.0 / (1.0 + rank[: len(own)])
            hour = 2.0 * np.abs((apart / 86_400.0 + 0.5) % 1.0 - 0.5)
            cut = np.zeros(len(items))
            cut[: len(own)] = own[:, _RUN] >= 0.98 * np.exp2(own[:, _LIMIT])
            name, stem = (
                (items[:, each] != this[each]).astype(float) if job.name else np.zeros(len(items))
                for each in (_NAME, _STEM)
            )
            form = np.stack([
                width, width > 0, limit, limit > 0, rank, gone, np.log1p(apart / 600.0), near[0], near[1], hour, cut,
                items[:, _RUN] < 60.0, np.log1p(rank), name, stem,
            ], axis=1)  # fmt: skip
            weights = np.exp(-(form @ OWN_FORMS))
            weights[len(own) :] *= RUNNING_COUNT
        ended = np.ones(len(items), dtype=bool)
        ended[len(own) :] = False
        if job.limit in self._others:
            others = self._others[job.limit].newest_first()
            rank = np.arange(len(others), dtype=float)
            theirs = others[:, _USER] != this[_USER]
            others, rank = others[theirs], rank[theirs]
            form = np.stack([
                np.abs(others[:, _WIDTH] - this[_WIDTH]), rank, np.log1p(rank),
                np.log1p(np.maximum(now - others[:, _ENDED], 0.0) / 3600.0),
            ], axis=1)  # fmt: skip
            items = np.concatenate([items, others])
            weights = np.concatenate([weights, OTHERS_COUNT * np.exp(-(form @ OTHER_FORMS))])
            ended = np.concatenate([ended, np.ones(len(others), dtype=bool)])
        return items, weights, ended

    def _forecast(self, job: Submission, items: Floats, weights: Floats, ended: NDArray[np.bool_]) -> Forecast:
        """The weighted product-limit estimate, cut at the limit, and what is made of it."""
        limit = job.limit
        if not len(items):
            flat = np.full(GRID.size, limit)
            return Forecast(limit, 0.0, limit, flat, np.full(OWN_FORMS.shape[1], limit))
        order = np.argsort(items[:, _RUN], kind="stable")
        values = np.append(np.minimum(items[order, _RUN], limit), limit)
        sorted_weights, gone = weights[order], ended[order]
        risk = np.cumsum(sorted_weights[::-1], axis=0)[::-1]
        left = np.where(gone[:, None], 1.0 - sorted_weights / np.maximum(risk, 1e-300), 1.0)
        passed = 1.0 - np.cumprod(np.maximum(left, 0.0), axis=0)  # distribution function under each form
        answers = values[(passed < LEVELS - 1e-9).sum(axis=0)]
        counts = self._counts(job.user)
        mixed = passed @ counts
        low, high = values[np.searchsorted(mixed, [self._low - 1e-9, self._high - 1e-9])]
        quantiles = values[np.searchsorted(mixed, GRID - 1e-9)]
        middle = values[np.searchsorted(mixed, MIDDLE)]
        run_time = max(float(middle.mean()), 1.0)
        low = 0.0 if self._low <= 0 else min(float(low) / MARGIN, run_time)
        high = limit if self._high >= 1 else max(min(float(high) * MARGIN, limit), run_time)
        return Forecast(run_time, low, high, np.maximum(quantiles, 1.0), answers)

    def _counts(self, user: Hashable) -> Floats:
        """How much each form counts for a user, shape (forms,)."""
        losses = RATE * self._losses / self._scale
        if user in self._own_losses:
            losses = losses + OWN_RATE * self._own_losses[user] / self._scale
        counts = np.exp(losses.min() - losses)
        return np.asarray(counts / counts.sum())

    def _learn(self, user: Hashable, found: Forecast, run_time: float) -> None:
        missed = np.abs(found.answers - run_time)
        self._own_losses[user] = OWN_MEMORY * self._own_losses.get(user, 0.0) + missed - missed.min()
        self._losses = MEMORY * self._losses + (1.0 - MEMORY) * missed
        self._scale = MEMORY * self._scale + (1.0 - MEMORY) * float(missed.mean())
        self._low = min(max(self._low + STEP * (self._miss - (run_time < found.low)), -0.05), 0.45)
        self._high = max(min(self._high - STEP * (self._miss - (run_time > found.high)), 1.05), 0.55)


def _spoken(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
