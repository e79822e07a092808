"""What the pictures show: the points, the ticks and the knee that a reader takes from them."""

from __future__ import annotations

import numpy as np
import pytest

from metasched.cli.figures import predicted_against_measured, time_and_efficiency
from metasched.predictors.contract import Predictions
from metasched.predictors.judging.evaluation import Evaluation, Outcome
from metasched.records import Interval, Prediction, Run


def outcome(measured: float, predicted: float, processors: int = 2) -> Outcome:
    run = Run("cg", "c8", 100, processors, 1.0, 100.0, measured)
    return Outcome(run, Prediction(predicted, Interval(predicted / 2, predicted * 2, 0.9), "m"))


def labels(ticks: list[object]) -> list[str]:
    return [tick.get_text() for tick in ticks]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.6), (1.2, 1.4), (0.4, 30.0), (50.0, 90_000.0)])
def test_times_stand_on_the_axes_as_plain_numbers(low: float, high: float) -> None:
    figure = predicted_against_measured(Evaluation((outcome(low, low), outcome(high, high))), "")
    figure.canvas.draw()
    (axes,) = figure.axes
    for axis, (first, last) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        shown = [tick for tick in axis.get_majorticklocs() if first <= tick <= last]
        assert len(shown) >= 2
        assert not [text for text in labels(axis.get_majorticklabels()) if "mathdefault" in text]
        assert not [text for text in labels(axis.get_minorticklabels()) if text]


def test_the_runs_learned_from_stand_beside_those_predicted() -> None:
    learned = [outcome(1.0, 1.1), outcome(4.0, 3.5)]
    figure = predicted_against_measured(Evaluation((outcome(2.0, 2.2),)), "", learned)
    (points,) = [line for line in figure.axes[0].lines if line.get_label() == "learned from"]
    assert np.asarray(points.get_xydata()).tolist() == [[1.0, 1.1], [4.0, 3.5]]


def test_efficiency_is_speedup_over_processors_and_the_knee_is_where_their_product_is_largest() -> None:
    time = np.array([12.0, 6.0, 4.0, 4.0])  # speedups 1, 2, 3, 3; times efficiency 1, 2, 2.25, 1.125
    figure = time_and_efficiency([1, 2, 4, 8], Predictions(time, time, time, 0.9), "")
    time_axes, efficiency_axes = figure.axes
    assert np.asarray(efficiency_axes.lines[0].get_ydata()).tolist() == [1.0, 1.0, 0.75, 0.375]
    (knee,) = [line for line in time_axes.lines if str(line.get_label()).startswith("knee")]
    assert knee.get_label() == "knee: worthwhile up to P = 4"
    assert np.asarray(knee.get_xydata()).tolist() == [[4.0, 4.0]]


def test_each_of_few_numbers_of_processors_has_its_tick_and_of_many_the_powers_of_two() -> None:
    def shown(counts: list[int]) -> list[str]:
        time = 12.0 / np.array(counts)
        figure = time_and_efficiency(counts, Predictions(time, time, time, 0.9), "")
        figure.canvas.draw()
        return [text for text in labels(figure.axes[0].get_xticklabels()) if text]

    assert shown([1, 2, 4]) == ["1", "2", "3", "4"]
    assert shown([1, 3, 20]) == ["1", "2", "4", "8", "16"]
