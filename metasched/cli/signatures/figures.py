"""Pictures of how an application scales by its signature: speedup with the knee, efficiency phase by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from metasched.cli.figures import COLOURS, over_powers_of_two, style, with_grid
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.signature.times.prediction import Prediction

#: Phases that are drawn: those that take most time.
MOST_PHASES = 6


def speedup_and_efficiency(
    predicted: Sequence[Prediction], measured: Mapping[int, float], scaling: Scaling, title: str
) -> Figure:
    """Draw speedup (measured, predicted with its interval, ideal, the knee) and the efficiency of each phase."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    left, right = figure.subplots(1, 2)
    counts = scaling.processes
    low, high = (scaling.single / np.array([each.interval[end] for each in predicted]) for end in (1, 0))
    left.plot(counts, counts, "--", color="0.5", linewidth=1, label="ideal")
    left.plot(counts, scaling.speedup, **style(0), markersize=4, label="predicted")
    left.fill_between(counts, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
    if measured:
        left.plot(
            [*measured], [scaling.single / time for time in measured.values()], "x", color="black", label="measured"
        )
    left.axvline(
        scaling.pays_until, color="0.6", linewidth=1, zorder=0, label=f"worthwhile up to n = {scaling.pays_until}"
    )
    left.set(xlabel="processes n", ylabel="speedup")
    right.plot(counts, scaling.efficiency, **style(0), markersize=4, label="all")
    for place, (phase, efficiency) in enumerate(phase_efficiencies(predicted).items(), 1):
        right.plot(counts, efficiency, **style(place), markersize=3, linewidth=1, label=f"phase {phase}")
    right.set(xlabel="processes n", ylabel="efficiency")
    for axes in (left, right):
        over_powers_of_two(axes, np.array([*measured, *counts.tolist()], dtype=float)[[0, -1]])
        with_grid(axes)
        axes.legend(fontsize="small")
    return figure


def phase_efficiencies(predicted: Sequence[Prediction]) -> dict[int, list[float]]:
    """The efficiency of the phases that take most time, relative to the first of some predictions.

    It is the product of time and processes at the first count over that at each: 1 where a phase scales ideally.
    """
    spent = [
        {each.phase: each.weight * each.time * prediction.processes for each in prediction.phases}
        for prediction in predicted
    ]
    if len({tuple(each) for each in spent}) > 1:
        return {}
    most = sorted(spent[0], key=lambda phase: -max(each[phase] for each in spent))[:MOST_PHASES]
    return {
        phase: [spent[0][phase] / each[phase] for each in spent]
        for phase in sorted(most)
        if all(each[phase] > 0.0 for each in spent)
    }
