"""Pictures of speedup surfaces: one line for each number of disks, and what was observed as points."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from metasched.arrays import Floats
from metasched.cli.figures import COLOURS, style
from metasched.store.files.spmd import ObservedSurface


def speedup_surface(
    processors: Floats, disks: Floats, speedup: Floats, title: str, observed: ObservedSurface | None = None
) -> Figure:
    """Draw the surface twice: in space, and as lines that numbers can be read from.

    Parameters
    ----------
    processors, disks : axes of the surface, shapes (n,) and (m,).
    speedup : array of shape (n, m); NaN where not defined.
    observed : points to draw with it.
    """
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    space = figure.add_subplot(1, 2, 1, projection="3d")
    p, d = np.meshgrid(np.log2(processors), np.log2(disks), indexing="ij")
    space.plot_wireframe(p, d, speedup, color=COLOURS[0], linewidth=1.0)
    lines = figure.add_subplot(1, 2, 2)
    for position, count in enumerate(disks):
        defined, look = np.isfinite(speedup[:, position]), style(position)
        marker = look.pop("marker")
        lines.plot(processors[defined], speedup[defined, position], **look, linewidth=1.4, label=f"d = {count:g}")
        if observed is not None:
            here = observed.disks == count
            lines.plot(observed.processors[here], 1.0 / observed.time[here], marker, color=look["color"], markersize=4)
    if observed is not None:
        space.scatter(
            np.log2(observed.processors), np.log2(observed.disks), 1.0 / observed.time, color=COLOURS[1], s=12
        )
    space.set(xlabel="log2 p", ylabel="log2 d", zlabel="speedup")
    lines.set(xlabel="processors p", ylabel="speedup")
    lines.set_xscale("log", base=2)
    lines.xaxis.set_major_formatter("{x:.0f}")
    lines.set_ylim(bottom=0)
    lines.grid(color="0.9", linewidth=0.6)
    lines.legend(fontsize="small", title="lines: model; points: observed" if observed is not None else None)
    return figure
