from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metasched.predictors.contract import Predictor
from metasched.predictors.judging.conditions import observed
from metasched.predictors.phases.predictor import PhasedPredictor, _summed, loads_of
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request
from metasched.store.documents import dump, parse
from tests.predictors.phases.two_phases import campaign

TRAINING = campaign(40, 1000, 3000)
LARGER = campaign(40, 4000, 8000, seed=7, counts=(4, 6, 8))


@pytest.fixture(scope="module")
def text() -> str:
    return dump(PhasedPredictor("two", "c8").fit(TRAINING))


@pytest.fixture
def phased(text: str) -> PhasedPredictor:
    return parse(text)


def errors(phased: PhasedPredictor, runs) -> np.ndarray:
    found = [phased.predict_processes(run.problem_size, *loads_of(run, ("a", "b"))) for run in runs]
    return np.array([abs(one.execution_time / run.execution_time - 1) for one, run in zip(found, runs, strict=True)])


def test_it_keeps_the_contract(phased) -> None:
    assert isinstance(phased, Predictor)
    many = phased.predict_many([1000, 2000], [4, 8], 0.9, 80.0)
    one = phased.predict(Request(2000, 8, 0.9, 80.0))
    assert many.execution_time[1] == pytest.approx(one.execution_time)
    assert one.interval.low < one.execution_time < one.interval.high
    assert "phase a" in one.model


def test_processes_and_phases_halve_the_error_of_a_single_model_outside_the_training_range(phased) -> None:
    single = RobustPredictor("two", "c8").fit(TRAINING)
    of_single = [
        abs(single.predict(observed(run, single, 0.9).request).execution_time / run.execution_time - 1)
        for run in LARGER
    ]
    assert errors(phased, LARGER).mean() < 0.5 * np.mean(of_single)


def test_a_run_takes_as_long_as_its_slowest_process_in_each_phase(phased) -> None:
    cpu = np.ones(8)
    slow_first, slow_last = cpu.copy(), cpu.copy()
    slow_first[0] = slow_last[7] = 0.5
    free, first, last = (
        phased.predict_processes(2000, [cpu, each], np.full(8, 90.0)).execution_time
        for each in (cpu, slow_first, slow_last)
    )
    assert first == pytest.approx(free)  # the first process has so little to do that it may be slow
    assert last > 1.3 * free


def test_it_learns(phased) -> None:
    state = phased.state
    for run in LARGER[:6]:
        phased.learn(run)
    phased.settle()
    assert phased.state.domain.largest_size > state.domain.largest_size
    assert phased.window.seen == len(TRAINING) + 6
    assert errors(phased, LARGER[6:]).mean() < 0.05


def test_a_run_without_marks_only_teaches_the_intervals(phased) -> None:
    before = phased.predict(Request(2000, 8, 0.9, 80.0)).execution_time
    calibration = phased.state.calibration
    phased.learn(replace(LARGER[0], marks=()))
    assert phased.predict(Request(2000, 8, 0.9, 80.0)).execution_time == before
    assert phased.state.calibration != calibration


def test_it_answers_the_same_after_it_was_saved_and_loaded(phased) -> None:
    again = parse(dump(phased))
    assert isinstance(again, PhasedPredictor)
    assert again.predict(Request(2500, 6, 0.7, 60.0)) == phased.predict(Request(2500, 6, 0.7, 60.0))
    cpu, bw = np.linspace(0.4, 1.0, 6), np.full(6, 70.0)
    assert again.predict_processes(2500, cpu, bw) == phased.predict_processes(2500, cpu, bw)
    assert dump(again) == dump(phased)


@pytest.mark.parametrize("marks", [(), TRAINING[3].marks[:-1], (*TRAINING[3].marks, TRAINING[3].marks[0])])
def test_incomplete_marks_are_refused(marks) -> None:
    with pytest.raises(InputError, match=r"has \d+ phase marks, expected one for each of its processes in"):
        PhasedPredictor("two", "c8").fit([*TRAINING[:3], replace(TRAINING[3], marks=marks)])


def test_phases_err_independently(phased) -> None:
    """The variance of the run's time is the sum of those of its phases."""
    time, spread = np.array([[30.0], [40.0]]), np.array([[0.1], [0.2]])
    total, joint = _summed(time, spread, phased.state)
    assert total == pytest.approx([phased.state.overhead * 70.0])
    assert joint == pytest.approx([np.hypot(3.0, 8.0) / 70.0])
