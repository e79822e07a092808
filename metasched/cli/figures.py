"""Pictures: predicted against measured, error over time, time and efficiency against the number of processors.

Each function takes what was computed and returns a matplotlib figure; none computes a prediction or touches a file
except :func:`save`. Colours are those of Okabe and Ito, distinct without colour vision, and never carry a meaning
that a marker or a line style does not carry too.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from metasched.arrays import Floats
from metasched.predictors.contract import Predictions
from metasched.predictors.judging.evaluation import Evaluation, Outcome
from metasched.store.files.whole_files import write_bytes_atomically

#: Okabe & Ito's palette without its yellow, and a marker for each.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Counts of processors that span less than this have a tick each.
_EVERY_TICK = 8
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", ":", "-.")
#: Runs that a running median is over.
WINDOW = 15


def predicted_against_measured(evaluation: Evaluation, title: str, learned: Sequence[Outcome] = ()) -> Figure:
    """One point a run with its interval, by number of processors; the diagonal is a perfect prediction.

    Runs that were learned from stand behind them as grey crosses: the model knew their times.
    """
    figure, axes = _new(title)
    if learned:
        known = np.array([(outcome.run.execution_time, outcome.prediction.execution_time) for outcome in learned])
        axes.plot(*known.T, "x", color="0.6", markersize=5, zorder=1, label="learned from")
    counts = sorted({outcome.run.processors for outcome in evaluation.outcomes})
    for position, count in enumerate(counts):
        chosen = [outcome for outcome in evaluation.outcomes if outcome.run.processors == count]
        measured = np.array([outcome.run.execution_time for outcome in chosen])
        time = np.array([outcome.prediction.execution_time for outcome in chosen])
        low = np.array([outcome.prediction.interval.low for outcome in chosen])
        high = np.array([outcome.prediction.interval.high for outcome in chosen])
        axes.errorbar(
            measured,
            time,
            yerr=[time - low, high - time],
            fmt=MARKERS[position % len(MARKERS)],
            color=COLOURS[position % len(COLOURS)],
            markersize=4,
            elinewidth=0.7,
            alpha=0.8,
            label=f"P = {count}",
        )
    times = [outcome.run.execution_time for outcome in (*learned, *evaluation.outcomes)]
    ends = [min(times), max(times)]
    axes.plot(ends, ends, color="0.4", linewidth=1, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="measured execution time (s)", ylabel="predicted execution time (s)")
    for axis, (least, most) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        # Ticks at 1, 2 and 5 are too few within a decade.
        axis.set_major_locator(MaxNLocator(6) if most < 4 * least else LogLocator(subs=(1, 2, 3, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.legend(fontsize="small")
    return figure


def error_over_time(evaluations: Mapping[str, Evaluation], title: str) -> Figure:
    """Percentage prediction error in the order of the runs, and its running median (the paper's Fig. 4)."""
    figure, axes = _new(title)
    for position, (name, evaluation) in enumerate(evaluations.items()):
        ppe = np.array([outcome.ppe for outcome in evaluation.outcomes])
        colour = COLOURS[position % len(COLOURS)]
        order = np.arange(1, len(ppe) + 1)
        axes.plot(order, ppe, MARKERS[position % len(MARKERS)], color=colour, markersize=3, alpha=0.35)
        axes.plot(order, _running_median(ppe), LINES[position % len(LINES)], color=colour, label=name)
    axes.set(xlabel="run, in order of time", ylabel="percentage prediction error (%)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small", title=f"points, and median of {WINDOW}", title_fontsize="small")
    return figure


def time_and_efficiency(processors: Sequence[int], predictions: Predictions, title: str) -> Figure:
    """Predicted time with its interval, and efficiency relative to the fewest processors, against P.

    The knee is where speedup times efficiency is largest, as in ``metasched scale``.
    """
    figure, axes = _new(title)
    p = np.asarray(processors, dtype=np.float64)
    time = predictions.execution_time
    band = f"{predictions.level:.0%} interval"
    axes.fill_between(p, predictions.low, predictions.high, color=COLOURS[0], alpha=0.2, linewidth=0, label=band)
    axes.plot(p, time, "o-", color=COLOURS[0], markersize=4, label="execution time")
    axes.set(xlabel="processors P", ylabel="predicted execution time (s)")
    over_powers_of_two(axes, p)
    other = axes.twinx()
    speedup = time[0] * p[0] / time
    best = int(np.argmax(speedup**2 / p))
    knee = f"knee: worthwhile up to P = {p[best]:.0f}"
    axes.plot(p[best], time[best], "o", color="0.2", fillstyle="none", markersize=12, label=knee)
    other.plot(p, speedup / p, "s--", color=COLOURS[1], markersize=4, label="efficiency")
    other.set(ylabel="efficiency")
    other.set_ylim(0, 1.1)
    handles = [item for one in (axes, other) for item in one.get_legend_handles_labels()[0]]
    labels = [str(handle.get_label()) for handle in handles]
    figure.legend(handles, labels, fontsize="small", loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def with_grid(axes: Axes) -> None:
    """A faint grid behind what is drawn."""
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def over_powers_of_two(axes: Axes, counts: Floats) -> None:
    """Scale the horizontal axis by powers of 2 within some ascending counts (k,); the vertical one begins at 0."""
    axes.set_xscale("log", base=2)
    few = counts[-1] - counts[0] < _EVERY_TICK
    powers = 2.0 ** np.arange(np.floor(np.log2(counts[0])), np.log2(counts[-1]) + 1e-9)
    axes.set_xticks(np.arange(counts[0], counts[-1] + 1) if few else powers)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(bottom=0)


def style(position: int) -> dict[str, Any]:
    """Colour, line and marker of the curve at a position."""
    return {
        "color": COLOURS[position % len(COLOURS)],
        "linestyle": LINES[position % len(LINES)],
        "marker": MARKERS[position % len(MARKERS)],
    }


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, whole or not at all; InputError where the path cannot be written."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_bytes_atomically(path, picture.getvalue())


def _new(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize="medium")
    with_grid(axes)
    return figure, axes


def _running_median(values: Floats) -> Floats:
    return np.array([np.median(values[max(0, end - WINDOW) : end]) for end in range(1, len(values) + 1)])
