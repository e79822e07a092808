"""The pictures of scaling over servers and of speedup surfaces: what stands in them, by numbers that can be checked."""

from __future__ import annotations

import numpy as np
from drawn import lines, looks, words
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Path3DCollection

from metasched.cli.models.scale_figures import scaling_over_servers
from metasched.cli.models.surface_figures import speedup_surface
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.store.files.spmd import ObservedSurface


def test_time_speedup_and_efficiency_of_each_model_stand_beside_each_other_and_the_knee_of_the_first() -> None:
    first = Scaling(np.array([1, 2, 4, 16]), np.array([8.0, 4.0, 4.0, 2.0]), 8.0)
    other = Scaling(np.array([1, 2, 4, 16]), np.array([8.0, 8.0, 2.0, 1.0]), 8.0)
    figure = scaling_over_servers({"fitted": first, "given": other}, "Servers")
    assert figure.get_suptitle() == "Servers"
    shown = {
        "execution time (s)": ([8.0, 4.0, 4.0, 2.0], [8.0, 8.0, 2.0, 1.0]),
        "speedup": ([1.0, 2.0, 2.0, 4.0], [1.0, 1.0, 4.0, 8.0]),
        "efficiency": ([1.0, 1.0, 0.5, 0.25], [1.0, 0.5, 1.0, 0.5]),
    }
    for axes, (what, values) in zip(figure.axes, shown.items(), strict=True):
        assert words(axes) == ("processes n", what)
        counts = [1.0, 2.0, 4.0, 16.0]
        fitted, given = ([*zip(counts, each, strict=True)] for each in values)
        # Speedup times efficiency is 1, 2, 1 and 1.
        knee = {"worthwhile up to n = 2": [(2.0, 0.0), (2.0, 1.0)]}
        assert lines(axes) == {"fitted": fitted, "given": given} | knee
        assert len(set(looks(axes)[:2])) == 2
        assert (axes.get_xticks().tolist(), axes.get_ylim()[0]) == ([1.0, 2.0, 4.0, 8.0, 16.0], 0.0)
    assert [axes.get_legend() is not None for axes in figure.axes] == [True, False, False]


SPEEDUP = np.array([[1.0, 1.5], [2.0, np.nan], [3.0, 5.0]])
PROCESSORS, DISKS = np.array([1.0, 2.0, 8.0]), np.array([1.0, 4.0])


def test_a_surface_has_a_line_for_each_number_of_disks_without_what_is_not_defined() -> None:
    figure = speedup_surface(PROCESSORS, DISKS, SPEEDUP, "A surface")
    space, flat = figure.axes
    assert figure.get_suptitle() == "A surface"
    assert lines(flat) == {"d = 1": [(1.0, 1.0), (2.0, 2.0), (8.0, 3.0)], "d = 4": [(1.0, 1.5), (8.0, 5.0)]}
    assert len(set(looks(flat))) == 2
    assert (words(flat), flat.get_xscale(), flat.get_ylim()[0]) == (("processors p", "speedup"), "log", 0.0)
    assert (*words(space), space.get_zlabel()) == ("log2 p", "log2 d", "speedup")  # type: ignore[attr-defined]
    (net,) = [each for each in space.collections if isinstance(each, Line3DCollection)]
    corners = {tuple(point) for line in net._segments3d for point in np.asarray(line).tolist()}
    assert {(0.0, 0.0, 1.0), (1.0, 0.0, 2.0), (3.0, 0.0, 3.0), (0.0, 2.0, 1.5), (3.0, 2.0, 5.0)} <= corners
    legend = flat.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == ""


def test_what_was_observed_stands_as_points_of_the_same_colour_as_the_line_of_its_disks() -> None:
    seen = ObservedSurface(np.array([2.0, 8.0, 8.0]), np.array([1.0, 1.0, 4.0]), np.array([0.5, 0.4, 0.25]))
    space, flat = speedup_surface(PROCESSORS, DISKS, SPEEDUP, "", seen).axes
    one, points_of_one, four, points_of_four = flat.lines
    assert np.asarray(points_of_one.get_xydata()).tolist() == [[2.0, 2.0], [8.0, 2.5]]
    assert np.asarray(points_of_four.get_xydata()).tolist() == [[8.0, 4.0]]
    assert (points_of_one.get_color(), points_of_four.get_color()) == (one.get_color(), four.get_color())
    assert {points_of_one.get_linestyle(), points_of_four.get_linestyle()} == {"None"}
    assert "None" not in {str(points_of_one.get_marker()), str(points_of_four.get_marker())}
    (points,) = [each for each in space.collections if isinstance(each, Path3DCollection)]
    assert np.array(points._offsets3d).T.tolist() == [[1.0, 0.0, 2.0], [3.0, 0.0, 2.5], [3.0, 2.0, 4.0]]
    legend = flat.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "lines: model; points: observed"
