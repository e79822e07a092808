"""Pictures of how an application scales over servers: time, speedup and efficiency against processes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from metasched.cli.figures import over_powers_of_two, style, with_grid
from metasched.predictors.analytic.cloud.scaling import Scaling


def scaling_over_servers(scalings: Mapping[str, Scaling], title: str) -> Figure:
    """Draw one curve for each model; the first one's knee is marked."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    panels = figure.subplots(1, 3)
    first = next(iter(scalings.values()))
    for axes, what in zip(panels, ("execution_time", "speedup", "efficiency"), strict=True):
        for position, (name, scaling) in enumerate(scalings.items()):
            axes.plot(scaling.processes, getattr(scaling, what), **style(position), markersize=4, label=name)
        axes.axvline(
            first.pays_until, color="0.6", linewidth=1, zorder=0, label=f"worthwhile up to n = {first.pays_until}"
        )
        axes.set(xlabel="processes n", ylabel="execution time (s)" if what == "execution_time" else what)
        over_powers_of_two(axes, np.array([1.0, first.processes[-1]]))
        with_grid(axes)
    panels[0].legend(fontsize="small")
    return figure
