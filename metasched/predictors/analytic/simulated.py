"""A simulated application as a predictor: it predicts before the first run, and runs correct it.

A variable of the application is the problem size N, the number of processes of one of its labels is P. What a run is
made of is simulated for each N and P that is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.plain_numbers import number_of
from metasched.predictors.analytic.by_parts import ByParts
from metasched.predictors.memory.domain import Domain
from metasched.records import InputError, Prediction, Request
from metasched.simulation.engine import STEPS
from metasched.simulation.language import parse
from metasched.simulation.parts import bandwidth, parts
from metasched.simulation.system import System

#: Spread of log time that scores are counted in: simulations know neither caches nor what else runs.
SPREAD = 0.1
#: Simulations that are kept.
MOST_KNOWN = 10_000


class SimulatedPredictor(ByParts):
    r"""An application of labelled processes on a system, as ``metasched simulate`` takes them.

    Parameters
    ----------
    system : where it runs.
    text : the application.
    label : whose number of processes is P.
    size : the variable that is N.
    processes, variables : of the other labels, and of the other variables.
    application, cluster : what it models; those of the first run where empty.
    known : seconds of computation, latencies and bytes by N and P, as far as they were simulated before.
    steps : most instructions of a simulation; what takes more cannot be predicted.

    Examples
    --------
    >>> from metasched.blocks.entry import Entry, Kind, Quantity
    >>> from metasched.simulation.system import Network, Nodes
    >>> values = {"speed": Quantity(1.0, "Gflop/s", "made"), "bandwidth": Quantity(1.0, "Gbit/s", "made")}
    >>> entry = Entry("node", Kind.cluster, "", values)
    >>> system = System("made", (Network("lan", entry),), (Nodes("n", 16, "lan", entry, {"w": 1}),))
    >>> text = "n = 1000\ndef w():\n    compute(n ** 2 * 1e4 / size)\n"
    >>> predictor = SimulatedPredictor(system, text, label="w", size="n")
    >>> predictor.predict(Request(2000, 4, 1.0, 1000.0)).execution_time
    10.0
    """

    name = "simulated"
    sized = True

    def __init__(
        self,
        system: System,
        text: str,
        *,
        label: str,
        size: str,
        processes: Mapping[str, int] | None = None,
        variables: Mapping[str, float] | None = None,
        application: str = "",
        cluster: str = "",
        known: Mapping[tuple[float, int], Floats | None] | None = None,
        steps: int = STEPS,
    ) -> None:
        self.system, self.text = system, text
        self.code = parse(text, application or "application")
        if label not in self.code.code:
            raise InputError(f"label {label} has no code, expected one of {', '.join(self.code.code)}")
        if size not in self.code.variables:
            expected = ", ".join(self.code.variables) or "one, such as n = 1000"
            raise InputError(f"{size} is not a variable of the application, expected {expected}")
        self.label, self.size, self.steps = label, size, steps
        self.processes, self.variables = dict(processes or {}), dict(variables or {})
        for other in self.code.code:
            if other != label and other not in self.processes:
                raise InputError(f"the number of processes of {other} is not known")
        if not system.slots(label):
            raise InputError(f"label {label} has no slots in {system.name}")
        self.application, self.cluster = application, cluster
        self.known: dict[tuple[float, int], Floats | None] = dict(known or {})
        super().__init__(max(float(self.code.variables[size]), 1.0), bandwidth(system, label))

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time.

        Raises
        ------
        InputError : the system has no room for so many processes, or the application cannot run to its end.
        """
        if self._seconds_of(request.problem_size, request.processors) is None:
            self._simulated(request.problem_size, request.processors)
        found = super().predict(request, level)
        runs = f"corrected by {number_of(len(self.window), 'run')}" if len(self.window) else "never run"
        model = f"simulation of {self.application or self.code.name} on {self.system.name}, {runs}"
        warnings = () if len(self.window) else ("no run has been learned yet: the time comes from simulation alone",)
        return replace(found, model=model, warnings=(*found.warnings, *warnings))

    def _facts(self) -> Mapping[str, Any]:
        return {
            "system": self.system.name,
            "processes": self.label,
            "problem_size": self.size,
            "computation": float(self.factors[0]),
            "communication": float(self.factors[1]),
        }

    def _unlearned(self) -> Domain:
        return Domain(self.problem_size, self.problem_size, 1, self._most())

    def _most(self) -> int:
        return self.system.slots(self.label)

    def _refusal(self, processors: Sequence[int]) -> str:
        asked = ", ".join(map(str, processors[:8]))
        return f"the application cannot be simulated with any of the numbers of processors {asked}"

    def _seconds_of(self, problem_size: float, processors: int) -> Floats | None:
        key = (problem_size, processors)
        if key not in self.known:
            try:
                found: Floats | None = self._simulated(problem_size, processors)
            except InputError:
                found = None
            if len(self.known) >= MOST_KNOWN:
                self.known.pop(next(iter(self.known)))
            self.known[key] = found
        return self.known[key]

    def _simulated(self, problem_size: float, processors: int) -> Floats:
        counts = {label: self.processes.get(label, processors) for label in self.code.code} | {self.label: processors}
        # A variable that is a whole number counts rounds of loops.
        size = int(problem_size) if problem_size == int(problem_size) else problem_size
        return parts(self.system, self.code, counts, {**self.variables, self.size: size}, self.steps)

    def _spread(self, processors: Floats, most: int) -> Floats:
        """The standard deviation of the logarithms of simulated times, the same for all numbers of processors."""
        return np.full(len(processors), SPREAD)
