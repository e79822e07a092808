"""Jobs whose names tell their problem size: predicted by their history until a model knows enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from metasched.history.problem_sizes import SizeInName
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.service.configuration import Configuration
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Learned
from metasched.service.state.sized_jobs import SizedJobs

HISTORY = {"run_time": 60.0, "interval": {}, "reason": "the last job took 60 s", "requested_time": 3600.0}


@dataclass
class Known:
    """Models that know so many runs of one application."""

    runs: int
    predictor_of: RobustPredictor

    def learned_by(self, key: tuple[str, str]) -> Learned:
        assert key == ("solve", "xeon")
        return Learned(self.runs)

    def predictor(self, application: str, platform: str, user: str = "") -> RobustPredictor:
        assert (application, platform) == ("solve", "xeon")
        return self.predictor_of


def known(runs: int) -> SizedJobs:
    sizes = range(200, 2200, 200)
    taught = RobustPredictor("solve", "xeon").fit(
        [Run("solve", "xeon", size, 2, 1.0, 1000.0, 5.0 + 1e-4 * size**2) for size in sizes]
    )
    clusters = LiveClusters()
    clusters.put("c", [Partition(ClusterState.make("c/p", ["n1"]), "xeon", "c", "p")], 0.0)
    clusters.refresh(now=0.0)
    return SizedJobs([SizeInName("solve_#", 1, "solve")], Known(runs, taught), clusters)  # type: ignore[arg-type]


def asked(sized: SizedJobs, name: str) -> dict[str, Any]:
    return sized.predict(HISTORY, name, 2, cluster=None, partition="p", user="ada")


def test_a_model_that_knows_enough_predicts_within_the_limit() -> None:
    found = asked(known(10), "solve_1500")
    assert found["run_time"] == pytest.approx(230.0, rel=0.1)
    assert found["interval"]["low"] <= found["run_time"] <= found["interval"]["high"] <= 3600.0
    assert found["reason"] == "the model of solve for problem size 1500, by 10 runs"
    assert asked(known(10), "solve_900000")["run_time"] == 3600.0


def test_before_that_and_for_other_names_the_history_does() -> None:
    early = asked(known(3), "solve_1500")
    assert (early["run_time"], early["reason"]) == (60.0, f"{HISTORY['reason']} (the model of solve knows 3 runs)")
    assert asked(known(10), "other_1500") == HISTORY


def test_a_number_that_is_not_in_the_name_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a name with a # for each number"):
        Configuration.model_validate({"problem_size": [{"name": "solve_#", "number": 2, "application": "solve"}]})
