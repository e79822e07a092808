from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.predictors.analytic.spmd.fitting import PARAMETERS, fit_surface
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.analytic.spmd.surface import execution_time, speedup
from metasched.records import InputError, Run

#: QCRD stage 2 in units of T_1 (Cremonesi and Gennaro, Table 4); g(p) = 1/p.
QCRD = Phase(0.71, 0.0, 0.049, 0.41, 0.0, 0.001, contention=0.19, io="bus")
PROCESSORS, DISKS = (axis.ravel() for axis in np.meshgrid([2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64]))


def surface(phase: Phase) -> np.ndarray:
    return speedup(Application("a", (phase,)), PROCESSORS, DISKS, reference_time=1.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_to_42_noisy_points_of_qcrd_recovers_the_surface(seed: int) -> None:
    truth = surface(QCRD)
    observed = truth * (1 + 0.02 * np.random.default_rng(seed).standard_normal(truth.size))
    fit = fit_surface(Phase(1.0, io="bus"), PROCESSORS, DISKS, 1 / observed)
    error = surface(fit.phase) / truth - 1
    # The paper's average error; no unbiased fit of three effective parameters can bring the other below 0.53 %.
    assert np.sqrt((error**2).sum()) / error.size < 0.005
    assert np.sqrt((error**2).mean()) < 0.01


@pytest.mark.parametrize("io", ["bus", "clustered"])
def test_a_fit_to_exact_times_finds_the_parameters(io: str) -> None:
    truth = Phase(8.0, 0.1, 0.05, 0.5, 0.02, 1.0, contention=0.4, io=io, dimensions=2.0)  # type: ignore[arg-type]
    p, d = (axis.ravel() for axis in np.meshgrid([1, 2, 4, 8], [1, 2, 4]))
    keep = np.isfinite(execution_time(Application("a", (truth,)), p, d))
    p, d = p[keep], d[keep]
    fit = fit_surface(Phase(1.0, io=truth.io, dimensions=2.0), p, d, execution_time(Application("a", (truth,)), p, d))
    for name in PARAMETERS:
        assert getattr(fit.phase, name) == pytest.approx(getattr(truth, name), rel=1e-3), name


def test_standard_errors_cover_the_truth_as_often_as_they_promise() -> None:
    truth = Phase(8.0, 0.3, 0.4, 4.0, 0.4, 4.0, contention=0.5, io="bus", dimensions=2.0)
    p, d = (axis.ravel() for axis in np.meshgrid([1, 2, 4, 8, 16], [1, 2, 4]))
    exact = execution_time(Application("a", (truth,)), p, d)
    scores = []
    for seed in range(8):
        noisy = exact * (1 + 0.002 * np.random.default_rng(seed).standard_normal(exact.size))
        fit = fit_surface(Phase(1.0, io="bus", dimensions=2.0), p, d, noisy)
        scores.append((fit.phase.io_transfer - 4.0) / fit.standard_error["io_transfer"])
    assert 0.4 < np.std(scores) < 2.0


def test_parameters_that_cannot_be_told_apart_are_named() -> None:
    # With more than one processor everywhere and c = 1, serial computation and startup are both constants.
    fit = fit_surface(Phase(1.0, io="bus"), PROCESSORS, DISKS, 1 / surface(replace(QCRD, serial_computation=0.01)))
    assert np.isinf(fit.standard_error["serial_computation"])
    assert np.isinf(fit.standard_error["communication_startup"])
    assert any("serial_computation, communication_startup" in note for note in fit.notes)


@pytest.mark.parametrize(
    ("processors", "time", "message"),
    [
        ([1, 2, 4], [4.0, 2.0, 1.0], "3 observations, expected at least 7"),
        ([4] * 8, [1.0] * 8, "all observations have 4 processors"),
        ([1, 2, 4, 8, 16, 32, 64], [1.0] * 6 + [-1.0], "an observed time is -1.0"),
        ([1, 2, 4, 8, 16, 32, 3], [1.0] * 7, "not defined for 3 processors"),
    ],
)
def test_observations_that_cannot_be_fitted_are_refused(processors: list[int], time: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_surface(Phase(1.0, synchronization=2), processors, 1, time)


def test_runs_that_contradict_each_other_are_fitted_all_the_same() -> None:
    phase = Phase(1.0, communication_transfer=1.0, synchronization=2, computation_bursts=10.0, dimensions=2.0, io="bus",
                  spread="uniform")  # fmt: skip
    asked = [(100.0, 1, 1.0), (200.0, 2, 0.5), (400.0, 4, 0.9), (100.0, 4, 1.0), (300.0, 1, 0.7)] * 2
    times = (419.0, 942.0, 0.275390625, 59.0, 18.0, 684.0, 486.0, 759.0, 91.0, 536.75)
    runs = [Run("a", "c", n, p, cpu, 90.0, time) for (n, p, cpu), time in zip(asked, times, strict=True)]
    predicted = SpmdPredictor(phase).fit(runs).predict(runs[0].request)
    assert predicted.interval.low < predicted.execution_time < predicted.interval.high
