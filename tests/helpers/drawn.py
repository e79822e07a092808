"""What a reader takes from a picture: its lines, areas, words and ticks, as numbers and texts."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

Points = list[tuple[float, ...]]


def lines(axes: Axes) -> dict[str, Points]:
    """The points of each line, by its label; those without one under names that begin with ``_``."""
    return {
        str(line.get_label()): [tuple(point) for point in np.asarray(line.get_xydata()).round(9).tolist()]
        for line in axes.lines
    }


def looks(axes: Axes) -> list[tuple[str, str, str]]:
    """Colour, line and marker of each line: what tells them apart."""
    return [(str(line.get_color()), str(line.get_linestyle()), str(line.get_marker())) for line in axes.lines]


def area(axes: Axes, place: int = 0) -> dict[float, tuple[float, float]]:
    """The lower and the upper end of a filled area at each x."""
    filled = [each for each in axes.collections if isinstance(each, PolyCollection)][place]
    ends: dict[float, set[float]] = {}
    for x, y in np.asarray(filled.get_paths()[0].vertices).round(9).tolist():
        ends.setdefault(x, set()).add(y)
    return {x: (min(found), max(found)) for x, found in sorted(ends.items())}


def words(axes: Axes) -> tuple[str, str]:
    """The names of the axes, with their units."""
    return axes.get_xlabel(), axes.get_ylabel()


def ticks(axes: Axes) -> list[str]:
    """The numbers that stand along the horizontal axis, once the figure is drawn."""
    return [tick.get_text() for tick in axes.get_xticklabels() if tick.get_text()]
