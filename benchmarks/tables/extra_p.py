"""Extra-P beside the other contenders, where it is installed (``pip install 'metasched[peers]'``).

It models time over P and N only: the loads are unknown to it, so its column is the same whatever is known of them. It
wants its measurements on a grid, while the training runs have sizes at random; each run is therefore moved to the
nearest of some sizes, its time along the power law in N that the runs on as many processors show. Its option for
negative exponents is on, since time falls with P. It does not learn from later runs.
"""

from __future__ import annotations

import logging
import warnings
from collections import defaultdict
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from metasched.predictors.judging.groups import groups
from metasched.records import Run
from metasched.store.files.campaigns import read_campaign

SIZES = 6  # of the grid; Extra-P asks for five or more values of a parameter


def installed() -> bool:
    """Whether Extra-P can take part here."""
    return find_spec("extrap") is not None


def judge(folder: Path) -> tuple[float, float]:
    """Mean and deviation of its PPE (%) on the runs to predict of a campaign."""
    (group,) = groups(read_campaign(folder).runs)
    ppe = 100.0 * np.abs(predict(group.training, group.rest) / [run.execution_time for run in group.rest] - 1.0)
    return float(ppe.mean()), float(ppe.std())


def predict(learned: Sequence[Run], asked: Sequence[Run]) -> np.ndarray:
    """Times (s) that Extra-P's best model of P and N expects, shape (n,)."""
    from extrap.entities.coordinate import Coordinate
    from extrap.entities.measurement import Measurement
    from extrap.modelers.multi_parameter.multi_parameter_modeler import MultiParameterModeler

    logging.getLogger("extrap").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = [Measurement(Coordinate(*at), None, None, times) for at, times in sorted(gridded(learned).items())]
        modeler = MultiParameterModeler()
        modeler.single_parameter_modeler.allow_negative_exponents = True
        function = modeler.create_model(points).hypothesis.function
        return np.array([float(function.evaluate([float(run.processors), run.problem_size])) for run in asked])


def gridded(runs: Sequence[Run], sizes: int = SIZES) -> dict[tuple[float, float], list[float]]:
    """Times of the runs by processors and size, each run moved to the nearest of some sizes.

    Examples
    --------
    >>> runs = [Run("cg", "c8", n, 2, 1.0, 90.0, float(n**2)) for n in (100, 105, 195, 200)]
    >>> {at: np.round(times, 6).tolist() for at, times in gridded(runs, sizes=2).items()}
    {(2.0, 100.0): [10000.0, 10000.0], (2.0, 200.0): [40000.0, 40000.0]}
    """
    every = np.log([run.problem_size for run in runs])
    grid = np.linspace(every.min(), every.max(), sizes)
    found: dict[tuple[float, float], list[float]] = defaultdict(list)
    for count in sorted({run.processors for run in runs}):
        own = [run for run in runs if run.processors == count]
        size, time = np.log([(run.problem_size, run.execution_time) for run in own]).T
        power = np.polyfit(size, time, 1)[0] if np.ptp(size) else 0.0
        nearest = grid[np.abs(size[:, None] - grid).argmin(axis=1)]
        for to, moved in zip(nearest, time + power * (nearest - size), strict=True):
            found[float(count), round(float(np.exp(to)), 3)].append(float(np.exp(moved)))
    return dict(found)
