"""Runs and predictions as data frames of pandas, which the extra ``metasched[pandas]`` installs.

A frame of runs has the columns of ``runs.csv``, under the same names and in the same units; what is missing is NaN.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Floats
from metasched.predictors.abilities import under
from metasched.predictors.contract import Predictions, Predictor
from metasched.predictors.load_doubt import loads_to_expect, predict_many
from metasched.records import (
    DEFAULT_SETTINGS,
    PARAMETER,
    SETTING_COLUMNS,
    InputError,
    Prediction,
    Request,
    Run,
    Settings,
)
from metasched.store.files.runs import (
    REQUEST_COLUMNS,
    RUN_COLUMNS,
    RUN_LEAST,
    RUN_REQUIRED,
    assumed_cells,
    run_from_cells,
    run_to_cells,
)
from metasched.validation import Located

if TYPE_CHECKING:
    import pandas as pd


def runs_from_frame(frame: pd.DataFrame) -> tuple[Run, ...]:
    """The runs in the rows of a frame; further columns are kept in ``Run.extra``.

    Parameters
    ----------
    frame : with the columns of ``runs.csv``, of which only problem_size, processors and execution_time are required.

    Raises
    ------
    InputError : for a column that is missing, and for the first row that is no run, with its index.

    Examples
    --------
    >>> runs_from_frame(frame_from_runs([Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25)]))[0].execution_time
    12.25
    """
    missing = [name for name in RUN_LEAST if name not in frame.columns]
    if missing:
        raise InputError(f"the frame has no column {missing[0]}, expected {', '.join(RUN_LEAST)}")
    assumed = assumed_cells(frame.columns)
    known = frame.notna()
    runs = []
    for (index, row), present in zip(frame.iterrows(), known.to_numpy(), strict=True):
        cells = {
            str(name): str(cell) if there else "" for (name, cell), there in zip(row.items(), present, strict=True)
        }
        with Located(f"row {index}"):
            runs.append(run_from_cells(assumed | cells))
    return tuple(runs)


def frame_from_runs(runs: Iterable[Run]) -> pd.DataFrame:
    """A frame with one row for each run, which :func:`runs_from_frame` turns back into the same runs.

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
    frame : with the columns problem_size and processors, and those of ``runs.csv`` of loads, layout, clock and
        parameters, where the model distinguishes them. Loads that are not known are the usual ones, and doubted.
    level : probability that an interval holds its outcome.

    Returns
    -------
    A frame with the columns execution_time, low and high, seconds, and level.

    Raises
    ------
    InputError : for a column that is missing, and for the first row that asks what no run can have, with its index.
    """
    for name in REQUEST_COLUMNS[:2]:
        if name not in frame.columns:
            raise InputError(f"the frame has no column {name}, expected {', '.join(REQUEST_COLUMNS[:2])}")
    asked = frame.reindex(columns=REQUEST_COLUMNS).to_numpy(dtype=np.float64)
    whole = np.where(np.isnan(asked) & [False, False, True, True], 1.0, asked)  # only loads may be unknown
    sound = np.isfinite(whole).all(axis=1) & (whole > 0.0).all(axis=1)
    sound &= (whole[:, 1] % 1.0 == 0.0) & (whole[:, 2] <= 1.0)
    for row in np.flatnonzero(~sound)[:1]:
        with Located(f"row {frame.index[row]}"):
            Request(*whole[row])
    times, low, high = predicted(predictor, asked, rows_by_settings(frame), level).T
    return frame_from_predictions(Predictions(times, low, high, level)).set_index(frame.index)


def predicted(
    predictor: Predictor, asked: Floats, by_settings: Mapping[Settings, NDArray[np.intp]], level: float
) -> Floats:
    """Execution time and both ends of its interval (s) of each row, shape (n, 3).

    Parameters
    ----------
    predictor : what answers.
    asked : problem size, processors, available CPU and bandwidth (Mbit/s), shape (n, 4); loads are NaN where they are
        not known.
    by_settings : the places of the rows by their settings.
    level : probability that an interval holds the outcome.
    """
    found, unknown = np.empty((len(asked), 3)), np.isnan(asked[:, 2:])
    for settings, rows in by_settings.items():
        model = under(predictor, settings)
        for kind in np.unique(unknown[rows], axis=0):
            here = rows[(unknown[rows] == kind).all(axis=1)]
            given = np.where(kind, np.nan, 1.0).tolist()
            *usual, doubt = loads_to_expect(model, given[0], given[1], level)
            cpu, bandwidth = np.where(kind, usual, asked[here, 2:]).T
            many = predict_many(model, asked[here, 0], asked[here, 1], cpu, bandwidth, level, doubt)
            found[here] = np.column_stack([many.execution_time, many.low, many.high])
    return found


def rows_by_settings(frame: pd.DataFrame) -> dict[Settings, NDArray[np.intp]]:
    """The places of a frame's rows by their settings: all rows by one where no column tells of any.

    Parameters
    ----------
    frame : whose columns of layout, clock and parameters are named as in ``runs.csv``; of the others only processors
        matters, since no more processes than these share a node.

    Raises
    ------
    InputError : for the first row of settings that there cannot be, with its index.

    Examples
    --------
    >>> import pandas as pd
    >>> found = rows_by_settings(pd.DataFrame({"threads": [1, 2, 1], "parameter:solver": ["amg", "cg", "amg"]}))
    >>> {settings.text: rows.tolist() for settings, rows in found.items()}
    {'solver amg': [0, 2], 'threads 2, solver cg': [1]}
    """
    named = [name for name in frame.columns if name in SETTING_COLUMNS or str(name).startswith(PARAMETER)]
    if not named:
        return {DEFAULT_SETTINGS: np.arange(len(frame))}
    texts = frame[named].astype(object).where(frame[named].notna(), "")
    there = frame["processors"] if "processors" in frame.columns else [sys.maxsize] * len(frame)
    found: dict[Settings, NDArray[np.intp]] = {}
    for cells, rows in texts.assign(processors=there).groupby([*named, "processors"], sort=False).indices.items():
        *row, processors = cells
        with Located(f"row {frame.index[rows[0]]}"):
            settings = Settings.of_cells({name: str(cell) for name, cell in zip(named, row, strict=True)})
        settings = settings.within(int(processors))
        found[settings] = np.concatenate([found.get(settings, rows[:0]), rows])  # 4 and 4.0 are the same
    return found


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
