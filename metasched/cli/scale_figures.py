"""Pictures of how an application scales over servers: time, speedup and efficiency against processes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metasched.cli.figures import COLOURS, LINES, MARKERS
from metasched.predictors.cloud.scaling import Scaling


def scaling_over_servers(scalings: Mapping[str, Scaling], title: str) -> Figure:
    """Draw one curve for each model; the first one's knee is marked."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    panels = figure.subplots(1, 3)
    first = next(iter(scalings.values()))
    for axes, what in zip(panels, ("execution_time", "speedup", "efficiency"), strict=True):
        for position, (name, scaling) in enumerate(scalings.items()):
            axes.plot(
                scaling.processes,
                getattr(scaling, what),
                LINES[position % len(LINES)],
                marker=MARKERS[position % len(MARKERS)],
                color=COLOURS[position % len(COLOURS)],
                markersize=4,
                label=name,
            )
        axes.axvline(first.pays_until, color="0.6", linewidth=1, zorder=0, label=f"pays until n = {first.pays_until}")
        _label(axes, first, what)
    panels[0].legend(fontsize="small")
    return figure


def _label(axes: Axes, scaling: Scaling, what: str) -> None:
    axes.set(xlabel="processes n", ylabel="execution time (s)" if what == "execution_time" else what)
    axes.set_xscale("log", base=2)
    axes.set_xticks(2.0 ** np.arange(np.floor(np.log2(scaling.processes[-1])) + 1))
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(bottom=0)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
