"""What the pictures show: the points, the ticks and the knee that a reader takes from them."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import area, lines, looks, words
from matplotlib.container import ErrorbarContainer

from metasched.cli.figures import WINDOW, error_over_time, predicted_against_measured, style, time_and_efficiency
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


def test_each_number_of_processors_has_its_points_with_their_intervals_and_the_diagonal_spans_all_times() -> None:
    found = Evaluation((outcome(10.0, 12.0, 4), outcome(2.0, 1.0), outcome(20.0, 30.0, 4)))
    figure = predicted_against_measured(found, "cg on c8", [outcome(1.0, 1.5)])
    (axes,) = figure.axes
    assert axes.get_title() == "cg on c8"
    assert words(axes) == ("measured execution time (s)", "predicted execution time (s)")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    found_bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    points = [container.lines[0] for container in found_bars]
    assert [container.get_label() for container in found_bars] == ["P = 2", "P = 4"]
    assert [np.asarray(line.get_xydata()).tolist() for line in points] == [[[2.0, 1.0]], [[10.0, 12.0], [20.0, 30.0]]]
    assert len({(line.get_marker(), line.get_color()) for line in points}) == 2
    bars = [[each.tolist() for each in container.lines[2][0].get_segments()] for container in found_bars]
    assert bars == [[[[2.0, 0.5], [2.0, 2.0]]], [[[10.0, 6.0], [10.0, 24.0]], [[20.0, 15.0], [20.0, 60.0]]]]
    assert [[1.0, 1.0], [20.0, 20.0]] in [np.asarray(line.get_xydata()).tolist() for line in axes.lines]


def test_errors_stand_in_the_order_of_the_runs_with_the_median_of_the_last_fifteen() -> None:
    errors = [5.0, 50.0, 20.0, *[10.0] * 9, *[40.0] * 9]
    evaluations = {
        "one": Evaluation(tuple(outcome(100.0, 100.0 + each) for each in errors)),
        "other": Evaluation((outcome(10.0, 8.0),)),
    }
    (axes,) = error_over_time(evaluations, "cg").axes
    assert words(axes) == ("run, in order of time", "percentage prediction error (%)")
    assert axes.get_ylim()[0] == 0.0
    points, median, point, alone = axes.lines
    order = [*range(1, len(errors) + 1)]
    assert np.asarray(points.get_xydata()).T.tolist() == [order, pytest.approx(errors)]
    assert WINDOW == 15
    by_hand = [sorted(errors[max(0, k - 15) : k]) for k in order]
    middles = [(each[(len(each) - 1) // 2] + each[len(each) // 2]) / 2 for each in by_hand]
    assert np.asarray(median.get_xydata()).T.tolist() == [order, pytest.approx(middles)]
    assert (
        np.asarray(point.get_xydata()).tolist() == np.asarray(alone.get_xydata()).tolist() == [[1.0, pytest.approx(20)]]
    )
    assert [str(line.get_label()) for line in (median, alone)] == ["one", "other"]
    assert (points.get_color(), point.get_color()) == (median.get_color(), alone.get_color())
    assert points.get_color() != point.get_color()
    assert {points.get_linestyle(), point.get_linestyle()} == {"None"}
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "points, and median of 15"


def test_times_stand_with_their_interval_and_efficiency_has_an_axis_of_its_own() -> None:
    time = np.array([12.0, 8.0, 3.0])
    figure = time_and_efficiency([2, 4, 8], Predictions(time, 0.5 * time, 2.0 * time, 0.9), "cg on c8")
    left, right = figure.axes
    assert left.get_title() == "cg on c8"
    assert lines(left)["execution time"] == [(2.0, 12.0), (4.0, 8.0), (8.0, 3.0)]
    assert area(left) == {2.0: (6.0, 24.0), 4.0: (4.0, 16.0), 8.0: (1.5, 6.0)}
    # Relative to the fewest processors, which count as wholly used: 24/12/2, 24/8/4 and 24/3/8.
    assert lines(right) == {"efficiency": [(2.0, 1.0), (4.0, 0.75), (8.0, 1.0)]}
    assert (words(left), right.get_ylabel()) == (("processors P", "predicted execution time (s)"), "efficiency")
    assert (left.get_ylim()[0], right.get_ylim()) == (0.0, (0.0, 1.1))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "90% interval", "execution time", "knee: worthwhile up to P = 8", "efficiency",
    ]  # fmt: skip


def test_curves_differ_in_their_looks_and_not_by_colour_alone() -> None:
    looks_of = [tuple(style(place).values()) for place in range(28)]
    assert len(set(looks_of)) == 28
    for colour in {look[0] for look in looks_of}:
        alike = [look[1:] for look in looks_of if look[0] == colour]
        assert len(set(alike)) == len(alike)
    assert looks(time_and_efficiency([1, 2], Predictions(*(np.ones(2),) * 3, 0.9), "").axes[0])[0][2] == "o"
