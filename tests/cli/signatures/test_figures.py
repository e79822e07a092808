"""The picture of how an application scales by its signature: what stands in it, by numbers that can be checked."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import area, lines, looks, words

from metasched.cli.signatures.figures import phase_efficiencies, speedup_and_efficiency
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.signature.times.prediction import Prediction
from metasched.signature.times.timed import PhaseTime


def predicted(processes: int, time: float, phases: dict[int, float], weight: int = 2) -> Prediction:
    """One whose interval is from four fifths to twice the time."""
    made = tuple(
        PhaseTime(number, weight, seconds, 0.75 * seconds, 0.25 * seconds) for number, seconds in phases.items()
    )
    return Prediction(processes, time, (0.8 * time, 2.0 * time), "made", made)


#: Alone it takes 80 s; with two processes 50 s, with four 40 s, with eight 100 s.
COUNTS, TIMES = (2, 4, 8), (50.0, 40.0, 100.0)
SCALING = Scaling(np.array(COUNTS), np.array(TIMES), 80.0)
PREDICTED = [predicted(count, time, {1: 20.0 / count, 2: 5.0}) for count, time in zip(COUNTS, TIMES, strict=True)]


def test_speedups_stand_with_their_interval_beside_the_ideal_and_what_was_measured() -> None:
    figure = speedup_and_efficiency(PREDICTED, {1: 80.0, 4: 32.0}, SCALING, "An application")
    left, right = figure.axes
    assert figure.get_suptitle() == "An application"
    assert lines(left) == {
        "ideal": [(2.0, 2.0), (4.0, 4.0), (8.0, 8.0)],
        "predicted": [(2.0, 1.6), (4.0, 2.0), (8.0, 0.8)],
        "measured": [(1.0, 1.0), (4.0, 2.5)],
        "worthwhile up to n = 2": [(2.0, 0.0), (2.0, 1.0)],
    }
    assert area(left) == {2.0: (0.8, 2.0), 4.0: (1.0, 2.5), 8.0: (0.4, 1.0)}
    assert lines(right) == {
        "all": [(2.0, 0.8), (4.0, 0.5), (8.0, 0.1)],
        "phase 1": [(2.0, 1.0), (4.0, 1.0), (8.0, 1.0)],
        "phase 2": [(2.0, 1.0), (4.0, 0.5), (8.0, 0.25)],
    }
    assert (words(left), words(right)) == (("processes n", "speedup"), ("processes n", "efficiency"))
    assert len(set(looks(right))) == 3
    # From one process, which was measured, to eight, each number has its tick.
    assert (left.get_xticks().tolist(), right.get_xticks().tolist()) == ([1, 2, 3, 4, 5, 6, 7, 8],) * 2
    assert left.get_ylim()[0] == right.get_ylim()[0] == 0.0
    assert all(axes.get_legend() is not None for axes in figure.axes)


def test_without_measurements_none_are_drawn() -> None:
    left, _ = speedup_and_efficiency(PREDICTED, {}, SCALING, "").axes
    assert [*lines(left)] == ["ideal", "predicted", "worthwhile up to n = 2"]


def test_the_efficiency_of_a_phase_is_of_its_time_on_all_processes_relative_to_the_first() -> None:
    assert phase_efficiencies(PREDICTED) == {1: pytest.approx([1.0] * 3), 2: pytest.approx([1.0, 0.5, 0.25])}


def test_the_phases_that_take_most_time_somewhere_are_drawn_in_the_order_of_their_numbers() -> None:
    few = {number: float(number) for number in range(1, 9)}
    many = few | {1: 100.0}
    found = phase_efficiencies([predicted(1, 1.0, few), predicted(2, 1.0, many)])
    assert [*found] == [1, 4, 5, 6, 7, 8]
    assert found[1] == pytest.approx([1.0, 0.005])


def test_phases_that_differ_or_take_no_time_have_no_efficiency() -> None:
    assert phase_efficiencies([predicted(1, 1.0, {1: 1.0}), predicted(2, 1.0, {2: 1.0})]) == {}
    assert [*phase_efficiencies([predicted(1, 1.0, {1: 1.0, 2: 0.0}), predicted(2, 1.0, {1: 1.0, 2: 1.0})])] == [1]
