"""Real measurements: small runs are learned, larger ones predicted, beside ridge, a Gaussian process and Extra-P.

Two sets, read from a folder that is not part of the project: the simulator of brain plasticity ReLeARN on 32 to 512
ranks (extra-p/extrap-gpr), and LAMMPS with 1,000 to 16 million atoms (hlocon1309/lammps_bench). Run as
``python -m benchmarks.real_runs --data DIR``.
"""

from __future__ import annotations

import csv
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from metasched.predictors.contract import Predictions
from metasched.predictors.judging.peers import GaussianProcess, RidgeQuadratic
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run

#: Available bandwidth was not recorded and the nodes were dedicated: one value for all.
BANDWIDTH = 1000.0
LARGEST_RANKS_LEARNED = 128
LARGEST_ATOMS_LEARNED = 512_000
FEWEST_SIZES = 8

Series = dict[str, tuple[list[Run], list[Run]]]


def relearn(folder: Path) -> Series:
    """ReLeARN: for each accuracy theta, runs on 32, 64 and 128 ranks, and those on 256 and 512."""
    found: Series = defaultdict(lambda: ([], []))
    with (folder / "relearn_runs.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            ranks = int(row["ranks"])
            name = f"ReLeARN, theta {row['theta']}"
            neurons = float(row["neurons_per_rank"]) * ranks
            run = Run(name, "cluster", neurons, ranks, 1.0, BANDWIDTH, float(row["main_max_s"]))
            found[name][ranks > LARGEST_RANKS_LEARNED].append(run)
    return dict(found)


def lammps(folder: Path) -> Series:
    """LAMMPS: for each problem and configuration of nodes that many sizes were run of, small and large systems."""
    found: Series = defaultdict(lambda: ([], []))
    with (folder / "lammps_charisma_runs.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            atoms, ranks = float(row["atoms"]), int(row["procs"])
            name = f"LAMMPS {row['problem']}, {row['config']}, {ranks} ranks, {row['gpus']} GPUs"
            run = Run(name, "cluster", atoms, ranks, 1.0, BANDWIDTH, float(row["loop_time_s"]))
            found[name][atoms > LARGEST_ATOMS_LEARNED].append(run)
    return {
        name: both
        for name, both in found.items()
        if len({run.problem_size for part in both for run in part}) >= FEWEST_SIZES
    }


def extra_p(learned: Sequence[Run], asked: Sequence[Run]) -> np.ndarray | None:
    """Times that Extra-P's models predict, shape (n,); None where it is not installed."""
    try:
        from extrap.entities.coordinate import Coordinate
        from extrap.entities.measurement import Measurement
        from extrap.modelers.multi_parameter.multi_parameter_modeler import MultiParameterModeler
        from extrap.modelers.single_parameter.basic import SingleParameterModeler
    except ImportError:
        return None
    several = len({run.processors for run in learned}) > 1
    repeated: dict[tuple[float, ...], list[float]] = defaultdict(list)
    for run in learned:
        repeated[_parameters(run, several)].append(run.execution_time)
    measurements = [Measurement(Coordinate(*at), None, None, times) for at, times in sorted(repeated.items())]
    modeler = MultiParameterModeler() if several else SingleParameterModeler()
    model = modeler.create_model(measurements)
    return np.array([float(model.hypothesis.function.evaluate(_asked(run, several))) for run in asked])


def _parameters(run: Run, several: bool) -> tuple[float, ...]:
    """What Extra-P models: ranks and problem size for each rank, which lie on a grid as it demands, or size alone."""
    return (float(run.processors), run.problem_size / run.processors) if several else (run.problem_size,)


def _asked(run: Run, several: bool) -> float | list[float]:
    at = _parameters(run, several)
    return list(at) if several else at[0]


def _times(make: Callable[[], RobustPredictor | RidgeQuadratic | GaussianProcess]):
    def predict(learned: Sequence[Run], asked: Sequence[Run]) -> Predictions:
        return (
            make()
            .fit(learned)
            .predict_many([run.problem_size for run in asked], [run.processors for run in asked], 1.0, BANDWIDTH)
        )

    return predict


METHODS = {
    "robust": _times(RobustPredictor),
    "ridge": _times(RidgeQuadratic),
    "gaussian_process": _times(GaussianProcess),
}


def ppe(times: np.ndarray, asked: Sequence[Run]) -> float:
    """Mean percentage prediction error."""
    truth = np.array([run.execution_time for run in asked])
    return float(100.0 * np.mean(np.abs(times / truth - 1.0)))


def main(
    data: Annotated[Path, typer.Option(help="Folder with relearn_runs.csv and lammps_charisma_runs.csv.")],
) -> None:
    """Print the mean PPE of every method on the larger runs."""
    warnings.simplefilter("ignore")
    table = Table(title="mean PPE (%) on larger runs than were learned")
    for heading in ("application", "learned", "predicted", *METHODS, "extra_p", "90 % coverage"):
        table.add_column(heading, justify="left" if heading == "application" else "right")
    for title, series in (("ReLeARN", relearn(data)), ("LAMMPS", lammps(data))):
        errors = []
        for name, (learned, asked) in sorted(series.items()):
            found = {method: predict(learned, asked) for method, predict in METHODS.items()}
            held = np.mean(
                [
                    low <= run.execution_time <= high
                    for run, low, high in zip(asked, found["robust"].low, found["robust"].high, strict=True)
                ]
            )
            other = extra_p(learned, asked)
            row = [ppe(one.execution_time, asked) for one in found.values()]
            row += [ppe(other, asked) if other is not None else np.nan, 100.0 * held]
            errors.append(row)
            table.add_row(name, str(len(learned)), str(len(asked)), *map(_percent, row))
        table.add_row(f"mean of {title}", "", "", *map(_percent, np.mean(errors, axis=0)), end_section=True)
    Console(width=140).print(table)


def _percent(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else "not installed"


if __name__ == "__main__":
    typer.run(main)
