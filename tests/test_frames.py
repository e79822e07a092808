"""Runs and predictions as frames of pandas: there and back, what is missing, and rows that are none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from known_model import Known

import metasched
from metasched.frames import frame_from_predictions, frame_from_runs, predictions_frame, runs_from_frame
from metasched.predictors.abilities import UsualLoad
from metasched.predictors.contract import Predictions
from metasched.records import InputError, Interval, Prediction, Run, Settings

pd = pytest.importorskip("pandas", reason="pandas is in the extra pandas")

RUNS = (
    Run("cg", "c8", 1400.0, 4, 0.8, 93.5, 12.25, phase="train", start_time=1e9, nodes=("n1", "n2"),
        extra={"threads": "2", "parameter:steps": "100", "note": "a, b"}),
    Run("lu", "c8", 200.0, 1, math.nan, 90.0, 3.0, extra={"energy": "500.0", "energy_covers": "node"}),
)  # fmt: skip


def same(one: Run, other: Run) -> bool:
    """Equal, but for minima that neither knows."""
    known = [replace(each, min_avg_avail_cpu=1.0) for each in (one, other)]
    return known[0] == known[1] and str(one.min_avg_avail_cpu) == str(other.min_avg_avail_cpu)


def test_runs_come_back_from_their_frame_as_they_were() -> None:
    frame = frame_from_runs(RUNS)
    assert [*frame.columns][:10] == [
        "phase", "application", "cluster", "start_time", "nodes", "problem_size", "processors", "min_avg_avail_cpu",
        "min_avg_avail_bw", "execution_time",
    ]  # fmt: skip
    assert frame["nodes"][0] == "n1 n2"
    assert {str(frame[name].dtype) for name in ("start_time", "problem_size", "execution_time")} == {"float64"}
    assert str(frame["processors"].dtype) == "int64"
    assert np.isnan(frame["start_time"][1])
    back = runs_from_frame(frame)
    assert [same(*pair) for pair in zip(back, RUNS, strict=True)] == [True, True]
    # The order of columns and the index make no difference.
    turned = frame[frame.columns[::-1]].set_index(pd.Index(["x", "y"]))
    assert [same(*pair) for pair in zip(runs_from_frame(turned), RUNS, strict=True)] == [True, True]
    assert frame_from_runs([]).empty


def test_a_frame_that_lacks_a_column_or_holds_a_row_that_is_no_run_is_refused() -> None:
    frame = frame_from_runs(RUNS)
    with pytest.raises(InputError, match=r"^the frame has no column processors, expected problem_size, processors, ex"):
        runs_from_frame(frame.drop(columns=["processors"]))
    frame.loc[1, "execution_time"] = -1.0
    with pytest.raises(InputError, match=r"^row 1: execution_time is -1"):
        runs_from_frame(frame)
    with pytest.raises(InputError, match=r"^row second: "):
        runs_from_frame(frame.set_index(pd.Index(["first", "second"])))


def asked(**more: object) -> Any:
    own = {
        "problem_size": [2.0, 4.0],
        "processors": [1, 2],
        "min_avg_avail_cpu": [0.5, 1.0],
        "min_avg_avail_bw": [100.0, 50.0],
    }
    return pd.DataFrame(own | more, index=["first", "second"])


def test_predictions_are_those_of_each_row_under_its_index() -> None:
    """100 N / (P cpu) + 1000 N log2(2 P) / bw, and a tenth to either side."""
    found = predictions_frame(Known(), asked(), 0.8)
    times = [2.0 * (100.0 / 0.5 + 1000.0 / 100.0), 4.0 * (100.0 / 2.0 + 2000.0 / 50.0)]
    assert [*found.index] == ["first", "second"]
    assert [*found.columns] == ["execution_time", "low", "high", "level"]
    assert found["execution_time"].tolist() == pytest.approx(times)
    assert found["low"].tolist() == pytest.approx([0.9 * each for each in times])
    assert found["high"].tolist() == pytest.approx([1.1 * each for each in times])
    assert found["level"].tolist() == [0.8, 0.8]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"problem_size": [2.0, 0.0]}, "row second: problem_size is 0"),
        ({"processors": [1.0, 1.5]}, "row second: processors is 1.5"),
        ({"processors": [0.0, 2.0]}, "row first: processors is 0"),
        ({"min_avg_avail_cpu": [1.0, 1.0 + 1e-9]}, "row second: "),
        ({"min_avg_avail_bw": [math.inf, 1.0]}, "row first: "),
        ({"problem_size": [math.nan, 1.0]}, "row first: "),
    ],
)
def test_the_first_row_that_asks_what_no_run_can_have_is_named(change: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        predictions_frame(Known(), asked(**change))
    with pytest.raises(InputError, match=r"^the frame has no column processors, expected problem_size, processors$"):
        predictions_frame(Known(), asked().drop(columns=["processors"]))


class Usual(Known):
    usual_loads = UsualLoad(0.5, 0.1), UsualLoad(50.0, 0.0)


def test_loads_that_are_not_known_are_the_usual_ones_and_doubted() -> None:
    usual = Usual()
    known = predictions_frame(usual, asked(min_avg_avail_cpu=0.5, min_avg_avail_bw=50.0))
    nothing = predictions_frame(usual, asked().drop(columns=["min_avg_avail_cpu", "min_avg_avail_bw"]))
    assert nothing["execution_time"].tolist() == pytest.approx(known["execution_time"].tolist())
    assert (nothing["high"] > known["high"]).all()
    assert (nothing["low"] < known["low"]).all()
    # Row by row: the second one lacks its bandwidth alone, which never varied.
    partly = predictions_frame(usual, asked(min_avg_avail_cpu=0.5, min_avg_avail_bw=[50.0, math.nan]))
    pd.testing.assert_frame_equal(partly, known)


def test_rows_without_loads_are_predicted_as_runs_without_them_were_learned() -> None:
    made = [Run("cg", "c8", 100.0 * (1 + k % 8), (1, 2, 4)[k // 8 % 3], math.nan, math.nan, 1.0 + k) for k in range(24)]
    frame = frame_from_runs(made)
    alone = frame[["problem_size", "processors"]]
    found = predictions_frame(metasched.fit(made), alone)
    pd.testing.assert_frame_equal(predictions_frame(metasched.fit(made), frame), found)
    model = metasched.ExecutionTimeRegressor().fit(alone, frame["execution_time"])
    assert model.predict(alone) == pytest.approx(found["execution_time"].to_numpy())
    assert model.predict_interval(alone) == pytest.approx(found[["low", "high"]].to_numpy())


class BySettings(Known):
    """As many times slower as a process has threads."""

    def under(self, settings: Settings) -> Known:
        return Known(work=100.0 * settings.threads, traffic=0.0)


def test_rows_are_predicted_under_their_own_settings() -> None:
    found = predictions_frame(BySettings(traffic=0.0), asked(threads=[4, 1], note=["a", "b"]))
    assert found["execution_time"].tolist() == pytest.approx([2.0 * 400.0 / 0.5, 4.0 * 50.0])
    same = predictions_frame(BySettings(traffic=0.0), asked(threads=[4.0, "4"]))
    assert same["execution_time"].tolist() == pytest.approx([1600.0, 800.0])
    missing = predictions_frame(BySettings(traffic=0.0), asked(threads=[None, 2]))
    assert missing["execution_time"].tolist() == pytest.approx([400.0, 400.0])
    with pytest.raises(InputError, match=r"^row second: threads"):
        predictions_frame(BySettings(traffic=0.0), asked(threads=[1, 0]))


def test_single_predictions_make_the_same_frame_as_many() -> None:
    each = [Prediction(t, Interval(0.5 * t, 2.0 * t, 0.9), "m") for t in (1.0, 3.0)]
    times = np.array([1.0, 3.0])
    together = frame_from_predictions(Predictions(times, 0.5 * times, 2.0 * times, 0.9))
    pd.testing.assert_frame_equal(frame_from_predictions(each), together)
    assert together.to_dict("records")[1] == {"execution_time": 3.0, "low": 1.5, "high": 6.0, "level": 0.9}
