"""A grid metascheduler plugin with adaptive performance models of parallel applications.

The names below are what programs may rely on. Each is loaded when it is first used, so that ``import metasched`` alone
costs nothing:

>>> import metasched
>>> runs = [metasched.Run("cg", "c8", n, p, 1.0, 100.0, 1e-3 * n / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
>>> predictor = metasched.fit(runs, method="published")
>>> round(predictor.predict(metasched.Request(1000, 4, 1.0, 100.0)).execution_time, 3)
0.25
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metasched.estimator import ExecutionTimeRegressor
    from metasched.fitting import fit
    from metasched.frames import frame_from_predictions, frame_from_runs, predictions_frame, runs_from_frame
    from metasched.placement.clusters.constraints import Constraints
    from metasched.placement.clusters.state import ClusterState
    from metasched.placement.ranking.objective import Objective
    from metasched.placement.ranking.query import InfeasibleError, Question
    from metasched.placement.ranking.ranker import rank
    from metasched.predictors.contract import Predictions, Predictor
    from metasched.predictors.formulas.published import PublishedPredictor
    from metasched.predictors.robust.predictor import RobustPredictor
    from metasched.records import InputError, Interval, Load, Placement, Prediction, Request, ResourceSet, Run, Settings
    from metasched.store.files.campaigns import Campaign, read_campaign
    from metasched.store.files.descriptions import read_description
    from metasched.store.files.loads import Loads, read_loads
    from metasched.store.files.models import read_model, write_model
    from metasched.store.files.runs import read_runs, write_runs

__version__ = "0.1.0"

#: The module in which each public name is.
_HOMES = {
    name: module
    for module, names in {
        "estimator": ("ExecutionTimeRegressor",),
        "fitting": ("fit",),
        "frames": ("frame_from_predictions", "frame_from_runs", "predictions_frame", "runs_from_frame"),
        "placement.clusters.constraints": ("Constraints",),
        "placement.clusters.state": ("ClusterState",),
        "placement.ranking.objective": ("Objective",),
        "placement.ranking.query": ("InfeasibleError", "Question"),
        "placement.ranking.ranker": ("rank",),
        "predictors.contract": ("Predictions", "Predictor"),
        "predictors.formulas.published": ("PublishedPredictor",),
        "predictors.robust.predictor": ("RobustPredictor",),
        "records": (
            "InputError",
            "Interval",
            "Load",
            "Placement",
            "Prediction",
            "Request",
            "ResourceSet",
            "Run",
            "Settings",
        ),
        "store.files.campaigns": ("Campaign", "read_campaign"),
        "store.files.descriptions": ("read_description",),
        "store.files.loads": ("Loads", "read_loads"),
        "store.files.models": ("read_model", "write_model"),
        "store.files.runs": ("read_runs", "write_runs"),
    }.items()
    for name in names
}

__all__ = [
    "Campaign",
    "ClusterState",
    "Constraints",
    "ExecutionTimeRegressor",
    "InfeasibleError",
    "InputError",
    "Interval",
    "Load",
    "Loads",
    "Objective",
    "Placement",
    "Prediction",
    "Predictions",
    "Predictor",
    "PublishedPredictor",
    "Question",
    "Request",
    "ResourceSet",
    "RobustPredictor",
    "Run",
    "Settings",
    "__version__",
    "fit",
    "frame_from_predictions",
    "frame_from_runs",
    "predictions_frame",
    "rank",
    "read_campaign",
    "read_description",
    "read_loads",
    "read_model",
    "read_runs",
    "runs_from_frame",
    "write_model",
    "write_runs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'metasched' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"metasched.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
