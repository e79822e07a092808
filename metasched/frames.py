"""Runs and predictions as data frames of pandas, which the extra ``metasched[pandas]`` installs.

A frame of runs has the columns of ``runs.csv``, under the same names and in the same units; what is missing is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from metasched.predictors.contract import Predictions, Predictor
from metasched.records import InputError, Prediction, Run
from metasched.store.files.campaigns import REQUEST_COLUMNS, RUN_COLUMNS, RUN_REQUIRED, run_from_cells, run_to_cells
from metasched.validation import Located

if TYPE_CHECKING:
    import pandas as pd


def runs_from_frame(frame: pd.DataFrame) -> tuple[Run, ...]:
    """The runs in the rows of a frame; further columns are kept in ``Run.extra``.

    Parameters
    ----------
    frame : with the columns of ``runs.csv``, of which phase, start_time and nodes (separated by spaces) may be missing.

    Raises
    ------
    InputError
        For a column that is missing, and for the first row that is no run, with its index.

    Examples
    --------
    >>> runs_from_frame(frame_from_runs([Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25)]))[0].execution_time
    12.25
    """
    missing = [name for name in RUN_REQUIRED if name not in frame.columns]
    if missing:
        raise InputError(f"the frame has no column {missing[0]}, expected {', '.join(RUN_REQUIRED)}")
    known = frame.notna()
    runs = []
    for (index, row), present in zip(frame.iterrows(), known.to_numpy(), strict=True):
        cells = {
            str(name): str(cell) if there else "" for (name, cell), there in zip(row.items(), present, strict=True)
        }
        with Located(f"row {index}"):
            runs.append(run_from_cells(cells))
    return tuple(runs)


def frame_from_runs(runs: Iterable[Run]) -> pd.DataFrame:
    """A frame with one row for each run, which :func:`runs_from_frame` turns back into the same runs.

    Examples
    --------
    >>> frame_from_runs([Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25)])[["problem_size", "execution_time"]]
       problem_size  execution_time
    0        1400.0           12.25
    """
    import pandas as pd

    rows = [run_to_cells(run) for run in runs]
    frame = pd.DataFrame(rows, columns=list(dict.fromkeys([*RUN_COLUMNS, *(name for row in rows for name in row)])))
    numbers = {name: "float64" for name in ("start_time", *RUN_REQUIRED[2:]) if name != "processors"}
    return frame.replace({"": None}).astype(numbers | {"processors": "int64"})


def predictions_frame(predictor: Predictor, frame: pd.DataFrame, level: float = 0.9) -> pd.DataFrame:
    """The predictions for the rows of a frame, with the frame's index.

    Parameters
    ----------
    predictor : what answers.
    frame : with the columns problem_size, processors, min_avg_avail_cpu and min_avg_avail_bw (Mbit/s).
    level : probability that an interval holds its outcome.

    Returns
    -------
    A frame with the columns execution_time, low and high, seconds, and level.

    Raises
    ------
    InputError
        For a column that is missing.
    """
    missing = [name for name in REQUEST_COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"the frame has no column {missing[0]}, expected {', '.join(REQUEST_COLUMNS)}")
    size, processors, cpu, bandwidth = (frame[name].to_numpy(dtype=float) for name in REQUEST_COLUMNS)
    found = predictor.predict_many(size, processors, cpu, bandwidth, level)
    return frame_from_predictions(found).set_index(frame.index)


def frame_from_predictions(predictions: Predictions | Iterable[Prediction]) -> pd.DataFrame:
    """Predictions as a frame with the columns execution_time, low and high, seconds, and level."""
    import pandas as pd

    if isinstance(predictions, Predictions):
        made = {name: getattr(predictions, name) for name in ("execution_time", "low", "high", "level")}
        return pd.DataFrame(made, index=range(len(predictions.execution_time)))
    return pd.DataFrame(
        [(each.execution_time, each.interval.low, each.interval.high, each.interval.level) for each in predictions],
        columns=["execution_time", "low", "high", "level"],
    )
