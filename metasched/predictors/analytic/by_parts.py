"""What the predictors share that know what times are made of before any run: runs correct the parts.

Available CPU slows computation; available bandwidth slows the bytes where it is below that of the link. Runs correct
computation and communication by a factor each, and say how the time grows with N where the parts do not.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.columns import ByColumns, Columns, broadcast
from metasched.predictors.contract import Predictions
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.window import RunWindow, measured
from metasched.records import InputError, Run

#: Runs that are kept.
CAPACITY = 512
#: Spread of log time that scores are counted in, at the largest number of processes learned.
SPREAD = 0.02
#: How firmly the factors of computation and communication are taken to be one: as a run of this relative error.
ALIKE = 0.05
#: From which spread of log N on its growth is learned.
SIZES = 0.1


class ByParts(ByColumns):
    """Times made of computation, latencies and bytes, corrected by runs.

    Parameters
    ----------
    problem_size : N that the parts are of, where they do not know N.
    bandwidth : of a link that nothing else uses (Mbit/s).
    timed : execution times (s) of runs that stand in for runs, by number of processes.
    """

    application: str
    cluster: str
    #: Whether the parts know N.
    sized = False

    def __init__(self, problem_size: float, bandwidth: float, timed: Mapping[int, float] | None = None) -> None:
        self.problem_size, self.bandwidth, self.timed = problem_size, bandwidth, dict(timed or {})
        self.window = RunWindow(capacity=CAPACITY)
        self.domain = self._unlearned()
        self.calibration = Calibration()
        #: What multiplies computation and communication, and how log time grows with log N.
        self.factors, self.growth = np.ones(2), self._growth
        self._start()

    def fit(self, runs: Iterable[Run]) -> Self:
        """Learn factors and growth from runs; without any the parts' own times answer.

        Raises
        ------
        InputError : there are no parts for any of them.
        """
        known = list(runs)
        self.window = RunWindow(known, CAPACITY)
        self.domain = Domain.of(known) if known else self._unlearned()
        if known:
            self.application = self.application or known[0].application
            self.cluster = self.cluster or known[0].cluster
            rows = _rows(self.window)
            if not np.isfinite(self._parts(rows).sum(axis=1)).any():
                raise InputError(self._refusal(sorted({run.processors for run in known})))
        self._start()
        return self

    def corrected(self, runs: Sequence[Run]) -> Self:
        """Another that knows these runs and no others; what was computed for either is known to both.

        Raises
        ------
        InputError : there are no parts for any of the runs.
        """
        other = copy.copy(self)
        other.fit(runs)
        return other

    def prepare(self) -> None:
        """Compute what rankings will ask for, where that is known beforehand and takes long."""

    def restore(self, window: RunWindow, calibration: Calibration) -> None:
        """Take up where a predictor left off that had these runs and scores."""
        self.window, self.calibration = window, calibration
        self.domain = Domain.of(window) if len(window) else self._unlearned()
        self._correct()

    def learn(self, run: Run) -> None:
        """Take one finished run into account."""
        rows = _rows([run])
        expected = float(self._times(rows, self.factors, self.growth)[0])
        own = score(run.execution_time, expected, float(self._spread(rows[:, 1], self._most())[0]))
        self.calibration = self.calibration.learned(own)
        self.window.add(run)
        self.domain = self.domain.learned(run)
        self._correct()

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        spread = self._spread(columns[1], self._most())
        return self.calibration.around(self._expected(columns), spread, level)

    def _expected(self, columns: Columns) -> Floats:
        return self._times(np.stack(columns, axis=1), self.factors, self.growth)

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the expected times that are computation; all where there is no expectation."""
        rows = np.stack(broadcast(problem_size, processors, available_cpu, available_bandwidth), axis=1)
        parts = self._parts(rows) * self.factors
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(parts[:, 0]), parts[:, 0] / parts.sum(axis=1), 1.0)

    @abstractmethod
    def _seconds_of(self, problem_size: float, processors: int) -> Floats | None:
        """Seconds of computation, latencies and bytes, shape (3,); None where there are none. N counts where sized."""

    @abstractmethod
    def _unlearned(self) -> Domain:
        """What is known before any run has been learned."""

    @abstractmethod
    def _most(self) -> int:
        """The largest number of processors that anything is known of."""

    @abstractmethod
    def _refusal(self, processors: Sequence[int]) -> str:
        """Why nothing can be learned from runs with these numbers of processors."""

    @property
    def _growth(self) -> float:
        """How log time grows with log N where no runs say it."""
        return 0.0 if self.sized else 1.0

    def _start(self) -> None:
        """Correct the parts, and rehearse: each number of processes is predicted from the smaller ones."""
        self._correct()
        rows, times = self._evidence()
        counts = np.unique(rows[:, 1]).tolist()
        # From one count alone the two factors cannot be separated: the first rehearsal has two, where there are three.
        pairs = [*pairwise(counts)][1 if len(counts) > 2 else 0 :]
        scores = []
        for before, now in pairs:
            smaller, here = rows[:, 1] <= before, rows[:, 1] == now
            factors, growth = self._fitted(rows[smaller], times[smaller])
            means = self._times(rows[here], factors, growth)
            spread = self._spread(rows[here, 1], int(before))
            scores += [score(*one) for one in zip(times[here].tolist(), means.tolist(), spread.tolist(), strict=True)]
        self.calibration = Calibration.starting(scores)

    def _correct(self) -> None:
        rows, times = self._evidence()
        self.factors, self.growth = self._fitted(rows, times)

    def _evidence(self) -> tuple[Floats, Floats]:
        """Rows of N, P, CPU and bandwidth, shape (k, 4), and times, of the runs; of the timed ones without any."""
        if len(self.window):
            rows, times = _rows(self.window), np.array([run.execution_time for run in self.window])
        else:
            of = [(self.problem_size, float(n), 1.0, self.bandwidth) for n in self.timed]
            rows, times = np.array(of).reshape(-1, 4), np.array([*self.timed.values()], dtype=np.float64)
        defined = np.isfinite(self._parts(rows).sum(axis=1))
        return rows[defined], times[defined]

    def _fitted(self, rows: Floats, times: Floats) -> tuple[Floats, float]:
        """Factors of computation and communication for which relative errors are least, and the growth with N."""
        if not len(rows):
            return np.ones(2), self._growth
        parts, growth = self._parts(rows), self._growth
        size = np.log(rows[:, 0] / self.problem_size)
        if not self.sized and np.ptp(size) > SIZES:
            growth = float(np.polyfit(size, np.log(times / parts.sum(axis=1)), 1)[0])
        shares = parts * self._grown(rows[:, 0], growth)[:, None] / times[:, None]
        level = float(np.exp(-np.mean(np.log(shares.sum(axis=1)))))
        alike = ALIKE / level * np.eye(2)
        found, _ = scipy.optimize.nnls(np.vstack([shares, alike]), np.append(np.ones(len(rows)), [ALIKE, ALIKE]))
        return np.asarray(found), growth

    def _times(self, rows: Floats, factors: Floats, growth: float) -> Floats:
        return np.asarray(self._grown(rows[:, 0], growth) * (self._parts(rows) @ factors))

    def _grown(self, sizes: Floats, growth: float) -> Floats:
        return np.asarray((sizes / self.problem_size) ** growth)

    def _parts(self, rows: Floats) -> Floats:
        """Computation and communication (s) before any correction, shape (k, 2), without growth."""
        kinds, place = np.unique(rows[:, :2] if self.sized else rows[:, 1:2], axis=0, return_inverse=True)
        seconds = [self._seconds_of(kind[0], round(kind[-1])) for kind in kinds.tolist()]
        whole = np.array([[np.inf] * 3 if each is None else each for each in seconds]).reshape(-1, 3)
        stretched = whole[place.ravel()] * self._stretch(rows)
        return np.stack([stretched[:, 0], stretched[:, 1] + stretched[:, 2]], axis=1)

    def _per_part(self) -> Floats:
        return self.factors[[0, 1, 1]]

    def _stretch(self, rows: Floats) -> Floats:
        """How many times as long computation, latencies and bytes take with the loads of rows, shape (k, 3)."""
        return np.stack([1.0 / rows[:, 2], np.ones(len(rows)), np.maximum(self.bandwidth / rows[:, 3], 1.0)], axis=1)

    def _spread(self, processors: Floats, most: int) -> Floats:
        """Every doubling beyond what was learned adds as much doubt."""
        return np.asarray(SPREAD * np.sqrt(1.0 + np.maximum(np.log2(processors / most), 0.0)))


def _rows(runs: Iterable[Run]) -> Floats:
    """N, P, CPU and bandwidth of runs, shape (k, 4); loads that were not measured slow nothing."""
    seen = measured(runs)
    cpu, bandwidth = np.nan_to_num(seen.cpu, nan=1.0), np.nan_to_num(seen.bw, nan=np.inf)
    return np.stack([seen.problem_size, seen.processors, cpu, bandwidth], axis=1)
