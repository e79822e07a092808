"""How well loads are forecast, on real traces: the battery, every primary alone, and the forecast of a mean over a run.

    python -m benchmarks.forecast --data DIR [--series 1000] [--design] [--peers | --shuffled]

DIR holds ``host-load/`` and ``network/`` (see ``benchmarks/traces.py``). For horizons of 1, 6 and 30 steps the mean of
the next so many values is forecast from the values before; errors are mean absolute errors over the last value's.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import traces
from benchmarks.forecasters.battery import Battery
from benchmarks.forecasters.blend import Blend
from monitors.forecasters.sets import LEVEL, forecast_sets

Floats = NDArray[np.float64]

HORIZONS = (1, 6, 30)
#: Steps before anything is judged: every window is at least half full, and every method has seen the same.
WARM = 60
#: Origins per series on which forecasts over a run are judged.
ORIGINS = 24


def one_step(series: list[Floats]) -> tuple[Floats, Floats]:
    """Forecasts made after each value: the battery's choice and the blend (2, n, t), every primary (n, t, 18)."""
    length = max(len(one) for one in series)
    values = np.full((len(series), length), np.nan)
    for row, one in zip(values, series, strict=True):
        row[: len(one)] = one
    battery, blend = Battery(len(series)), Blend(len(series))
    chosen, primaries = np.empty((2, *values.shape)), np.empty((*values.shape, len(battery.names)), dtype=np.float32)
    for step in range(length):
        battery.update(values[:, step])
        blend.update(values[:, step])
        chosen[:, :, step] = battery.forecast(), blend.forecast()
        primaries[:, step] = battery.forecasts()
    return chosen, primaries


def origins(length: int, horizon: int) -> NDArray[np.intp]:
    """Where forecasts over a run are made: spread over the series, each with a whole outcome after it."""
    last = length - horizon - 1
    return np.unique(np.linspace(WARM, last, min(ORIGINS, last - WARM + 1)).astype(np.intp))


def judge(series: list[Floats], peers: bool) -> dict[str, object]:
    """All figures of one set of traces."""
    chosen, primaries = one_step(series)
    ratio = []
    for row, one in enumerate(series):
        outcome = one[WARM + 1 :]
        battery = np.abs(chosen[:, row, WARM : len(one) - 1] - outcome).mean(axis=1)
        singles = np.abs(primaries[row, WARM : len(one) - 1] - outcome[:, None]).mean(axis=0)
        ratio.append(battery / max(float(singles.min()), 1e-6))
    return {"ratio": np.array(ratio), "horizons": {h: over_runs(series, chosen, primaries, h) for h in HORIZONS}} | (
        {"peers": against_ets(series)} if peers else {}
    )


def left_to_luck(series: list[Floats], seed: int = 0) -> None:
    """Print how often forecasts are within 2 % where nothing can be learned but the level: values in random order.

    The best of many forecasters in hindsight is partly luck. Who knows that the values are in no order expects the
    median of those so far, and who knew their distribution its median: nobody can do better than the last.
    """
    noise = np.random.default_rng(seed)
    shuffled = [noise.permutation(one) for one in series]
    chosen, primaries = one_step(shuffled)
    within = []
    for row, one in enumerate(shuffled):
        outcome = one[WARM + 1 :]
        best = np.abs(primaries[row, WARM : len(one) - 1] - outcome[:, None]).mean(axis=0).min()
        so_far = np.array([np.median(one[: end + 1]) for end in range(WARM, len(one) - 1)])
        forecasts = (chosen[1, row, WARM : len(one) - 1], so_far, np.median(one))
        within.append([np.abs(forecast - outcome).mean() <= 1.02 * best for forecast in forecasts])
    shares = np.mean(within, axis=0)
    print(
        f"{len(series)} PlanetLab series in random order: within 2 % of the best primary in hindsight are the blend on "
        f"{shares[0]:.1%}, the median so far on {shares[1]:.1%}, the true median on {shares[2]:.1%}"
    )


def over_run(time: Floats, past: Floats, horizon: float) -> tuple[float, float, float]:
    """The forecast that places jobs, of one series over a run that starts now: what is expected, and its ends."""
    one = past[:, None]
    found = forecast_sets(time, one, one, time[-1], horizon, chosen=(0,))
    expected = float(found.cpu[0] * found.cpu_sets.part[0])
    low, high = expected * found.cpu_sets.ends[:, 0]
    return expected, float(low), float(high)


def over_runs(series: list[Floats], chosen: Floats, primaries: Floats, horizon: int) -> dict[str, object]:
    """Mean absolute errors (n, methods) of forecasts of the mean over the next ``horizon`` values, and coverage."""
    misses, inside = [], []
    for row, one in enumerate(series):
        time = np.arange(len(one), dtype=float)
        for origin in origins(len(one), horizon):
            outcome = one[origin + 1 : origin + 1 + horizon].mean()
            past = slice(max(origin - 700, 0), origin + 1)
            expected, low, high = over_run(time[past], one[past], horizon)
            forecasts = [expected, *chosen[:, row, origin], *primaries[row, origin]]
            misses.append((row, *np.abs(np.array(forecasts) - outcome)))
            inside.append(low - 1e-9 <= outcome <= high + 1e-9)
    table = np.array(misses)
    by_series = np.array([table[table[:, 0] == row, 1:].mean(axis=0) for row in range(len(series))])
    return {"errors": by_series, "coverage": float(np.mean(inside)), "forecasts": len(inside)}


def against_ets(series: list[Floats], count: int = 20, each: int = 5) -> dict[int, Floats]:
    """Errors of the run forecast and of AutoETS over the last value's, on the same few origins of a few series."""
    from statsforecast.models import AutoETS

    picked = [series[index] for index in np.unique(np.linspace(0, len(series) - 1, count).astype(int))]
    results = {}
    for horizon in HORIZONS:
        relative = []
        for one in picked:
            misses = []
            for origin in origins(len(one), horizon)[:: -max(ORIGINS // each, 1)]:
                past = one[max(origin - 500, 0) : origin + 1]
                outcome = one[origin + 1 : origin + 1 + horizon].mean()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ets = AutoETS(season_length=1).forecast(y=past, h=horizon)["mean"].mean()
                time = np.arange(len(past), dtype=float)
                own, _, _ = over_run(time, past, horizon)
                misses.append(np.abs(np.array([own, ets, past[-1]]) - outcome))
            own, ets, last = np.mean(misses, axis=0)
            if last > 1e-6:
                relative.append([own / last, ets / last])
        results[horizon] = np.median(relative, axis=0)
    return results


def report(name: str, figures: dict[str, object], names: tuple[str, ...]) -> tuple[int, int, int]:
    """Print one set of traces; on how many series the choice and the blend are within 2 %, and of how many."""
    ratio = np.asarray(figures["ratio"])
    print(f"\n{name}: {len(ratio)} series")
    good = (ratio <= 1.02).sum(axis=0)
    for kind, count, column in zip(("battery's choice", "blend"), good, ratio.T, strict=True):
        print(
            f"  {kind} within 2 % of the best primary in hindsight on {count / len(ratio):.0%} of series;"
            f" error over the best's: median {np.median(column):.3f}, nine in ten below {np.quantile(column, 0.9):.3f}"
        )
    columns = ("over a run", "battery's choice", "blend", *names)
    last = columns.index("last value")
    print(
        f"  {'mean absolute error over that of the last value':<50}" + "".join(f"{f'{h} steps':>10}" for h in HORIZONS)
    )
    relative = [summed(figures["horizons"][h]["errors"], last) for h in HORIZONS]  # type: ignore[index]
    for index, column in enumerate(columns):
        print(f"  {column:<50}" + "".join(f"{errors[index]:>10.3f}" for errors in relative))
    coverage = "".join(f"{figures['horizons'][h]['coverage']:>10.1%}" for h in HORIZONS)  # type: ignore[index]
    print(f"  {f'outcomes inside the {LEVEL:.0%} interval':<50}{coverage}")
    if "peers" in figures:
        ets = figures["peers"]
        own = "".join(f"{ets[h][0]:>10.3f}" for h in HORIZONS)  # type: ignore[index]
        other = "".join(f"{ets[h][1]:>10.3f}" for h in HORIZONS)  # type: ignore[index]
        print(
            f"  {'median series of a sample: over a run':<50}{own}\n  {'median series of a sample: AutoETS':<50}{other}"
        )
    return int(good[0]), int(good[1]), len(ratio)


def summed(errors: Floats, last: int) -> Floats:
    """Sums over series, each series in units of its own last-value error so that none drowns the others."""
    unit = np.maximum(errors[:, last], 1e-6)
    moving = errors[:, last] > 1e-6  # a series that stands still tells nothing
    return (errors / unit[:, None])[moving].mean(axis=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with host-load/ and network/")
    parser.add_argument("--series", type=int, default=1000, help="how many PlanetLab series")
    parser.add_argument("--design", action="store_true", help="those of the design instead")
    parser.add_argument(
        "--shuffled", action="store_true", help="only PlanetLab with values in random order: what luck is"
    )
    parser.add_argument("--peers", action="store_true", help="also fit statsforecast's AutoETS on a sample")
    arguments = parser.parse_args()
    which = (traces.DESIGN if arguments.design else traces.JUDGED)[: arguments.series]
    if arguments.shuffled:
        left_to_luck(traces.planetlab(arguments.data, which))
        return 0
    names = Battery(1).names
    totals = np.zeros(3, dtype=int)
    for name, series in traces.everything(arguments.data, which).items():
        totals += report(name, judge(series, arguments.peers), names)
    shares = totals[:2] / totals[2]
    print(f"\nall {totals[2]} series: within 2 % choice {shares[0]:.1%}, blend {shares[1]:.1%} (aim 90 %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
