"""An application's signature behind the predictor contract: rules and hardware first, runs to correct them later.

The rules say what each process does at a count that no run has seen, blocks of hardware how long that takes. Available
CPU slows computation; available bandwidth slows the bytes where it is below that of the link. Runs correct computation
and communication by a factor each, and say how the time grows with N.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.predictors.contract import ByBatch, Floats, Predictions, Term, broadcast, columns_of
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.window import RunWindow, measured
from metasched.records import InputError, Prediction, Request, Run
from metasched.signature.application import Application
from metasched.signature.prediction import Hardware, apart
from metasched.signature.reporting import checked_count

#: Runs that are kept.
CAPACITY = 512
#: Spread of log time that scores are counted in, at the largest number of processes learned.
SPREAD = 0.02
#: How firmly the factors of computation and communication are taken to be one: as a run of this relative error.
ALIKE = 0.05
#: From which spread of log N on its growth is learned.
SIZES = 0.1
#: Share of the time from which on a phase is a term of its own.
SHOWN = 0.01


class SignaturePredictor(ByBatch):
    """An application whose signature was fitted, on hardware by its blocks.

    Parameters
    ----------
    rules : what ``metasched signature fit`` found.
    hardware : where it runs.
    problem_size : N that the signature is of.
    timed : execution times (s) of the runs that were traced, by number of processes; they stand in for runs.
    application, cluster : what it models; those of the first run where empty.
    notes : what a reader of the predictions has to know of the rules.
    known : what each number of processes is made of (``apart``), as far as it was computed before.

    Examples
    --------
    >>> from metasched.signature.fitting import fit
    >>> from metasched.signature.prediction import assumed
    >>> from metasched.signature.traces import trace_of
    >>> def ring(n):
    ...     steps = [("compute", (1.6e9 / n,)), ("allreduce", (1000, 0, 0))] * 10
    ...     return trace_of({rank: [("init", ()), *steps, ("finalize", ())] for rank in range(n)})
    >>> rules = fit([ring(n) for n in (4, 8, 16)]).application
    >>> predictor = SignaturePredictor(rules, assumed(), problem_size=1000, timed={4: 4.02, 8: 2.02, 16: 1.02})
    >>> round(predictor.predict(Request(1000, 64, 1.0, 1000.0)).execution_time, 2)
    0.26
    """

    name = "signature"

    def __init__(
        self,
        rules: Application,
        hardware: Hardware,
        *,
        problem_size: float,
        timed: Mapping[int, float] | None = None,
        application: str = "",
        cluster: str = "",
        notes: Sequence[str] = (),
        known: Mapping[int, Floats | None] | None = None,
    ) -> None:
        if not (np.isfinite(problem_size) and problem_size > 0):
            raise InputError(f"the problem size of the signature is {problem_size:g}, expected a finite number above 0")
        self.rules, self.hardware, self.problem_size = rules, hardware, float(problem_size)
        self.timed, self.notes = dict(timed or {}), tuple(notes)
        self.application, self.cluster = application, cluster
        self.bandwidth = hardware.bandwidth
        #: Seconds of computation, latencies and bytes of each phase; None where the rules hold for no such count.
        self.known: dict[int, Floats | None] = dict(known or {})
        self.window = RunWindow(capacity=CAPACITY)
        self.domain = self._of_signature()
        self.calibration = Calibration()
        #: What multiplies computation and communication, and how log time grows with log N.
        self.factors, self.growth = np.ones(2), 1.0
        self._start()

    def fit(self, runs: Iterable[Run]) -> SignaturePredictor:
        """Learn factors and growth from runs; without any the signature's own times answer.

        Raises
        ------
        InputError : the rules hold for the number of processors of none of them.
        """
        known = list(runs)
        self.window = RunWindow(known, CAPACITY)
        self.domain = Domain.of(known) if known else self._of_signature()
        if known:
            self.application = self.application or known[0].application
            self.cluster = self.cluster or known[0].cluster
            rows = _rows(self.window)
            if not np.isfinite(self._parts(rows).sum(axis=1)).any():
                asked = ", ".join(map(str, sorted({run.processors for run in known})[:8]))
                raise InputError(f"the rules of the signature hold for none of the numbers of processors {asked}")
        self._start()
        return self

    def restore(self, window: RunWindow, calibration: Calibration) -> None:
        """Take up where a predictor left off that had these runs and scores."""
        self.window, self.calibration = window, calibration
        self.domain = Domain.of(window) if len(window) else self._of_signature()
        self._correct()

    def learn(self, run: Run) -> None:
        """Take one finished run into account."""
        rows = _rows([run])
        expected = float(self._expected(rows, self.factors, self.growth)[0])
        own = score(run.execution_time, expected, float(self._spread(rows[:, 1], self._most())[0]))
        self.calibration = self.calibration.learned(own)
        self.window.add(run)
        self.domain = self.domain.learned(run)
        self._correct()

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time.

        Raises
        ------
        InputError : the rules hold for no such number of processes; the nearest that they hold for are named.
        """
        checked_count(self.rules, request.processors)
        found = super().predict(request, level)
        if not np.isfinite(found.execution_time):
            raise InputError(f"the rules of the signature do not hold for {request.processors} processes")
        learned = ", ".join(map(str, self.rules.learned))
        model = f"signature of {learned} processes on {self.hardware.device.name}"
        # Numbers of processors that no run has seen are what signatures are for.
        warnings = [*self.domain.warnings(replace(request, processors=self.domain.most_processors))]
        if self.domain.smallest_size == self.domain.largest_size != request.problem_size:
            known = f"{self.domain.largest_size:g}"
            warnings.append(f"only problem_size {known} was learned: the time is assumed to grow in proportion to it")
        return replace(found, model=model, warnings=(*warnings, *self.notes))

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many at once; infinite for numbers of processes that the rules do not hold for."""
        rows = np.stack(broadcast(problem_size, processors, available_cpu, available_bandwidth), axis=1)
        time = self._expected(rows, self.factors, self.growth)
        low, high = self.calibration.ends(time, self._spread(rows[:, 1], self._most()), level)
        return Predictions(time, low, high, level)

    def expect_many(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The execution times of :meth:`predict_many` without their intervals."""
        rows = np.stack(broadcast(problem_size, processors, available_cpu, available_bandwidth), axis=1)
        return self._expected(rows, self.factors, self.growth)

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the expected times that are computation; all where there is no expectation."""
        rows = np.stack(broadcast(problem_size, processors, available_cpu, available_bandwidth), axis=1)
        parts = self._parts(rows) * self.factors
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(parts[:, 0]), parts[:, 0] / parts.sum(axis=1), 1.0)

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """Computation and communication of each phase that matters, and of the others together (Eq. 6)."""
        self.predict(request)
        phases = self._seconds(request.processors)
        stretched = self._stretch(np.stack(columns_of(request), axis=1)) * self._per_part()
        grown = float(self._grown(np.array([request.problem_size]), self.growth)[0])
        each = (np.zeros((1, 3)) if phases is None else phases) * stretched * grown
        shares = each.sum(axis=1) / each.sum()
        terms: list[Term] = []
        for phase in [*np.flatnonzero(shares >= SHOWN).tolist(), None]:
            here = each[phase] if phase is not None else each[shares < SHOWN].sum(axis=0)
            name = f"phase {phase}" if phase is not None else "other phases"
            if here.sum() > 0.0:
                how = f"rules of {request.processors} processes on {self.hardware.device.name}"
                terms.append(Term(f"computation, {name}", how, float(here[0])))
                terms.append(Term(f"communication, {name}", how, float(here[1:].sum())))
        return tuple(terms)

    def _facts(self) -> Mapping[str, Any]:
        return {
            "signature": ", ".join(map(str, self.rules.learned)),
            "hardware": self.hardware.device.name,
            "computation": float(self.factors[0]),
            "communication": float(self.factors[1]),
            "growth": self.growth,
        }

    def _of_signature(self) -> Domain:
        """What is known without runs."""
        return Domain(self.problem_size, self.problem_size, min(self.rules.learned), max(self.rules.learned))

    def _most(self) -> int:
        return max([*self.rules.learned, self.domain.most_processors])

    def _start(self) -> None:
        """Correct the parts, and rehearse: each number of processes is predicted from the smaller ones."""
        self._correct()
        rows, times = self._evidence()
        counts = np.unique(rows[:, 1]).tolist()
        # From one count alone the two factors cannot be told: the first rehearsal has two, where there are three.
        pairs = [*pairwise(counts)][1 if len(counts) > 2 else 0 :]
        scores = []
        for before, now in pairs:
            smaller, here = rows[:, 1] <= before, rows[:, 1] == now
            factors, growth = self._fitted(rows[smaller], times[smaller])
            told = self._expected(rows[here], factors, growth)
            spread = self._spread(rows[here, 1], int(before))
            scores += [score(*one) for one in zip(times[here].tolist(), told.tolist(), spread.tolist(), strict=True)]
        self.calibration = Calibration.starting(scores)

    def _correct(self) -> None:
        rows, times = self._evidence()
        self.factors, self.growth = self._fitted(rows, times)

    def _evidence(self) -> tuple[Floats, Floats]:
        """Rows of N, P, CPU and bandwidth, shape (k, 4), and times, of the runs; of the traced ones without any."""
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
            return np.ones(2), 1.0
        parts, growth = self._parts(rows), 1.0
        size = np.log(rows[:, 0] / self.problem_size)
        if np.ptp(size) > SIZES:
            growth = float(np.polyfit(size, np.log(times / parts.sum(axis=1)), 1)[0])
        shares = parts * self._grown(rows[:, 0], growth)[:, None] / times[:, None]
        level = float(np.exp(-np.mean(np.log(shares.sum(axis=1)))))
        alike = ALIKE / level * np.eye(2)
        found, _ = scipy.optimize.nnls(np.vstack([shares, alike]), np.append(np.ones(len(rows)), [ALIKE, ALIKE]))
        return np.asarray(found), growth

    def _expected(self, rows: Floats, factors: Floats, growth: float) -> Floats:
        return np.asarray(self._grown(rows[:, 0], growth) * (self._parts(rows) @ factors))

    def _grown(self, sizes: Floats, growth: float) -> Floats:
        return np.asarray((sizes / self.problem_size) ** growth)

    def _parts(self, rows: Floats) -> Floats:
        """Computation and communication (s) before any correction, shape (k, 2), at the size of the signature."""
        counts, place = np.unique(rows[:, 1], return_inverse=True)
        seconds = [self._seconds(round(count)) for count in counts.tolist()]
        whole = np.array([[np.inf] * 3 if each is None else each.sum(axis=0) for each in seconds]).reshape(-1, 3)
        stretched = whole[place.ravel()] * self._stretch(rows)
        return np.stack([stretched[:, 0], stretched[:, 1] + stretched[:, 2]], axis=1)

    def _per_part(self) -> Floats:
        return self.factors[[0, 1, 1]]

    def _stretch(self, rows: Floats) -> Floats:
        """How many times as long computation, latencies and bytes take with the loads of rows, shape (k, 3)."""
        return np.stack([1.0 / rows[:, 2], np.ones(len(rows)), np.maximum(self.bandwidth / rows[:, 3], 1.0)], axis=1)

    def _seconds(self, count: int) -> Floats | None:
        if count not in self.known:
            try:
                checked_count(self.rules, count)
                self.known[count] = apart(self.rules, self.hardware, count)
            except InputError:
                self.known[count] = None
        return self.known[count]

    def _spread(self, processors: Floats, most: int) -> Floats:
        """Every doubling beyond what was learned adds as much doubt."""
        return np.asarray(SPREAD * np.sqrt(1.0 + np.maximum(np.log2(processors / most), 0.0)))


def _rows(runs: Iterable[Run]) -> Floats:
    """N, P, CPU and bandwidth of runs, shape (k, 4); loads that were not measured slow nothing."""
    seen = measured(runs)
    cpu, bandwidth = np.nan_to_num(seen.cpu, nan=1.0), np.nan_to_num(seen.bw, nan=np.inf)
    return np.stack([seen.problem_size, seen.processors, cpu, bandwidth], axis=1)
