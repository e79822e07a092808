"""The picture of a simulated run: its stretches as bars, and its power as steps."""

from __future__ import annotations

import math

import numpy as np
from drawn import lines, words
from matplotlib.collections import PolyCollection

from metasched.cli.simulations.figures import gantt_and_power
from metasched.simulation.groups import Group
from metasched.simulation.outcome import Outcome


def outcome(groups: list[Group]) -> Outcome:
    known = (10.0, 2000.0, 200.0, 300.0, math.nan, math.nan)
    return Outcome(*known, {}, (), np.array([0.0, 4.0, 10.0]), np.array([100.0, 300.0, 50.0]), tuple(groups))


def bars(figure) -> list[tuple[str, str, list[tuple[float, ...]]]]:
    """Label, hatch and bars (left, right, bottom, top) of each kind of each group."""
    found = []
    for each in figure.axes[0].collections:
        assert isinstance(each, PolyCollection)
        boxes = [np.asarray(path.vertices) for path in each.get_paths()]
        spans = [tuple(np.round([*box.min(axis=0), *box.max(axis=0)], 6).tolist()) for box in boxes]
        label = str(each.get_label())
        found.append((label if label[0] != "_" else "", each.get_hatch() or "", [(a, c, b, d) for a, b, c, d in spans]))
    return found


def test_the_stretches_of_each_group_stand_in_its_row_and_each_kind_once_in_the_legend() -> None:
    work = Group("work", range(1, 5), {}, drawn=[("wait", 0.0, 1.0), ("compute", 1.0, 6.0), ("send", 6.0, 6.0)])
    main = Group("main", range(1), {}, drawn=[("compute", 0.0, 4.0), ("wait", 4.0, 9.5), ("compute", 9.5, 10.0)])
    figure = gantt_and_power(outcome([work, main]), "A run")
    above, below = figure.axes
    assert above.get_title() == "A run"
    assert [tick.get_text() for tick in above.get_yticklabels()] == ["main[0]", "work[1] to [4]"]
    assert above.yaxis_inverted()
    assert bars(figure) == [
        ("compute", "", [(0.0, 4.0, -0.35, 0.35), (9.5, 10.0, -0.35, 0.35)]),
        ("wait", "//", [(4.0, 9.5, -0.35, 0.35)]),
        ("send", "\\\\", []),
        ("compute", "", [(1.0, 6.0, 0.65, 1.35)]),
        ("wait", "//", [(0.0, 1.0, 0.65, 1.35)]),
        ("send", "\\\\", []),
    ]
    legend = above.get_legend()
    assert legend is not None
    assert sorted(text.get_text() for text in legend.get_texts()) == ["compute", "send", "wait"]
    assert [*lines(below).values()] == [[(0.0, 100.0), (4.0, 300.0), (10.0, 50.0)]]
    assert below.lines[0].get_drawstyle() == "steps-post"
    assert (words(below), below.get_ylim()[0]) == (("time (s)", "power (W)"), 0.0)


def test_of_many_groups_the_first_thirty_by_label_and_rank_are_drawn() -> None:
    groups = [Group(f"g{k % 2}", range(k, k + 1), {}, drawn=[("compute", 0.0, 1.0)]) for k in range(40)]
    above = gantt_and_power(outcome(groups[::-1]), "").axes[0]
    named = [f"g{k % 2}[{k}]" for k in sorted(range(40), key=lambda k: (k % 2, k))]
    assert [tick.get_text() for tick in above.get_yticklabels()] == named[:30]
