"""Figures of simulated runs: a Gantt chart, and the power over time."""

from __future__ import annotations

from matplotlib.figure import Figure

from metasched.cli.figures import COLOURS
from metasched.simulation.outcome import Outcome

#: Most groups that are drawn.
MOST = 30
HATCHES = ("", "//", "\\\\", "..", "xx", "++", "oo", "--")


def gantt_and_power(outcome: Outcome, title: str) -> Figure:
    """Stretches of computation, messages and waiting of each group's first process, and below the power."""
    groups = sorted(outcome.groups, key=lambda group: (group.label, group.ranks.start))[:MOST]
    figure = Figure(figsize=(8, 3.5 + 0.25 * len(groups)), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1 + 0.25 * len(groups), 1.5])
    kinds = [*dict.fromkeys(kind for group in groups for kind, _, _ in group.drawn)]
    for place, group in enumerate(groups):
        for number, kind in enumerate(kinds):
            bars = [(begin, end - begin) for each, begin, end in group.drawn if each == kind and end > begin]
            above.broken_barh(
                bars,
                (place - 0.35, 0.7),
                facecolors="0.85" if kind == "wait" else COLOURS[number % len(COLOURS)],
                hatch=HATCHES[number % len(HATCHES)],
                label=kind,
            )
    names = [
        f"{group.label}[{group.ranks[0]}]" + (f" to [{group.ranks[-1]}]" if len(group.ranks) > 1 else "")
        for group in groups
    ]
    above.set_yticks(range(len(groups)), names)
    above.invert_yaxis()
    above.set_title(title)
    handles = dict(zip(*reversed(above.get_legend_handles_labels()), strict=True))
    above.legend(handles.values(), handles.keys(), fontsize="small", loc="upper right")
    below.step(outcome.times, outcome.power, where="post", color=COLOURS[0])
    below.set(xlabel="time (s)", ylabel="power (W)")
    below.set_ylim(bottom=0)
    return figure
