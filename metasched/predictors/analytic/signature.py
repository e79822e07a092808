"""An application's signature behind the predictor contract: rules and hardware first, runs to correct them later.

The rules say what each process does at a count that no run has seen, blocks of hardware how long that takes. Available
CPU slows computation; available bandwidth slows the bytes where it is below that of the link. Runs correct computation
and communication by a factor each, and say how the time grows with N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.plain_numbers import number_of
from metasched.predictors.analytic.by_parts import ByParts
from metasched.predictors.columns import columns_of
from metasched.predictors.contract import Learned, PhaseShare, PhaseShares, Term
from metasched.predictors.memory.domain import Domain
from metasched.records import InputError, Prediction, Request, check_above_zero
from metasched.signature.rules.application import Application
from metasched.signature.rules.reporting import checked_count
from metasched.signature.times.by_blocks import apart
from metasched.signature.times.hardware import Hardware

#: Share of the time from which on a phase is a term of its own.
SHOWN = 0.01
#: Up to how many processors the parts are computed beforehand.
PREPARED = 256


class SignaturePredictor(ByParts):
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
    >>> from metasched.signature.rules.fitting import fit
    >>> from metasched.signature.times.hardware import assumed
    >>> from metasched.signature.traces.trace import trace_of
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
        check_above_zero("the problem size of the signature", problem_size)
        self.rules, self.hardware, self.notes = rules, hardware, tuple(notes)
        self.application, self.cluster = application, cluster
        #: Seconds of computation, latencies and bytes of each phase; None where the rules hold for no such count.
        self.known: dict[int, Floats | None] = dict(known or {})
        super().__init__(float(problem_size), hardware.bandwidth, timed)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time.

        Raises
        ------
        InputError : the rules hold for no such number of processes; the nearest that they hold for are named.
        """
        checked_count(self.rules, request.processors)
        found = super().predict(request, level)
        if not np.isfinite(found.execution_time):
            asked = number_of(request.processors, "process", "processes")
            raise InputError(f"the rules of the signature do not hold for {asked}")
        learned = ", ".join(map(str, self.rules.learned))
        model = f"signature of {learned} processes on {self.hardware.device.name}"
        # Numbers of processors that no run has seen are what signatures are for.
        warnings = [*self.domain.warnings(replace(request, processors=self.domain.most_processors))]
        if self.domain.smallest_size == self.domain.largest_size != request.problem_size:
            known = f"{self.domain.largest_size:g}"
            warnings.append(f"only problem_size {known} was learned: the time is assumed to grow in proportion to it")
        if not len(self.window):
            warnings.append("no run has been learned yet: the time comes from the signature alone")
        return replace(found, model=model, warnings=(*warnings, *self.notes))

    def prepare(self) -> None:
        """Compute the parts of all small numbers of processors, each of which takes some hundredths of a second."""
        for count in range(1, PREPARED + 1):
            self._seconds(count)

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
                how = f"rules of {number_of(request.processors, 'process', 'processes')} on {self.hardware.device.name}"
                terms.append(Term(f"computation, {name}", how, float(here[0])))
                terms.append(Term(f"communication, {name}", how, float(here[1:].sum())))
        return tuple(terms)

    def learned(self) -> Learned:
        """What was learned, with the phases on the processors of the last run or, without runs, of the largest trace.

        There are none where the rules do not hold for that number.
        """
        traced = self.rules.learned
        processors = [max(traced), *(run.processors for run in self.window)][-1]
        try:
            phases = PhaseShares(processors, min(traced), self.phases(processors))
        except InputError:
            return super().learned()
        return replace(super().learned(), phases=phases)

    def phases(self, processors: int) -> tuple[PhaseShare, ...]:
        """The phases that matter, and the others together.

        Raises
        ------
        InputError : the rules do not hold for so many processes.
        """
        least = min(self.rules.learned)
        here, before = self._seconds(processors), self._seconds(least)
        if here is None or before is None:
            raise InputError(self._refusal([processors]))
        here, before = here * self._per_part(), before * self._per_part()
        shares = here.sum(axis=1) / here.sum()
        found: list[PhaseShare] = []
        for phase in [*np.flatnonzero(shares >= SHOWN).tolist(), None]:
            chosen = [phase] if phase is not None else np.flatnonzero(shares < SHOWN).tolist()
            now, then = here[chosen].sum(axis=0), before[chosen].sum()
            if (seconds := float(now.sum())) > 0.0:
                efficiency = least * float(then) / (processors * seconds)
                found.append(PhaseShare(phase, seconds / float(here.sum()), float(now[1:].sum()) / seconds, efficiency))
        return tuple(found)

    def _facts(self) -> Mapping[str, Any]:
        return {
            "signature": ", ".join(map(str, self.rules.learned)),
            "hardware": self.hardware.device.name,
            "computation": float(self.factors[0]),
            "communication": float(self.factors[1]),
            "growth": self.growth,
        }

    def _unlearned(self) -> Domain:
        """The state before any run has been learned: the traced runs alone."""
        return Domain(self.problem_size, self.problem_size, min(self.rules.learned), max(self.rules.learned))

    def _most(self) -> int:
        return max([*self.rules.learned, self.domain.most_processors])

    def _refusal(self, processors: Sequence[int]) -> str:
        asked = ", ".join(map(str, processors[:8]))
        return f"the rules of the signature hold for none of the numbers of processors {asked}"

    def _seconds_of(self, problem_size: float, processors: int) -> Floats | None:
        found = self._seconds(processors)
        return None if found is None else found.sum(axis=0)

    def _seconds(self, count: int) -> Floats | None:
        if count not in self.known:
            try:
                checked_count(self.rules, count)
                self.known[count] = apart(self.rules, self.hardware, count)
            except InputError:
                self.known[count] = None
        return self.known[count]
