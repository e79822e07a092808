"""The figures of an evaluation and its report by hand, of times and of energies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metasched.predictors.judging.evaluation import Evaluation, Outcome, evaluate, follow_under
from metasched.predictors.judging.groups import Group
from metasched.predictors.judging.report import Report
from metasched.records import InputError, Interval, Prediction, Run


def run(measured: float, cluster: str = "a", energy: float | None = None, user: str = "") -> Run:
    extra = ({"energy": repr(energy), "energy_covers": "node"} if energy else {}) | ({"user": user} if user else {})
    return Run("cg", cluster, 100.0, 2, 0.5, 90.0, measured, extra=extra)


def outcome(measured: float, predicted: float, low: float, high: float, cluster: str = "a") -> Outcome:
    return Outcome(run(measured, cluster), Prediction(predicted, Interval(low, high, 0.9), "m"))


#: Errors of 10, 30, 50 and 29 %; the first and the last lie on an end of their interval.
OUTCOMES = (
    outcome(10.0, 11.0, 10.0, 20.0), outcome(10.0, 13.0, 10.5, 42.0), outcome(10.0, 5.0, 2.0, 6.0, "b"),
    outcome(100.0, 71.0, 50.0, 100.0, "b"),
)  # fmt: skip


def test_the_summary_is_of_all_outcomes() -> None:
    assert Evaluation(OUTCOMES, 1.5).summary() == {
        "ppe_mean": pytest.approx(29.75),
        "ppe_std": pytest.approx(math.sqrt((19.75**2 + 0.25**2 + 20.25**2 + 0.75**2) / 4)),
        "ppe_median": pytest.approx(29.5),
        "ppe_under_30": pytest.approx(0.5),
        "interval_coverage": 0.5,
        "interval_width_median": pytest.approx(2.5),  # 2, 4, 3 and 2
        "fit_seconds": 1.5,
    }
    nothing = Evaluation((outcome(1.0, 1.0, 0.0, 2.0),)).summary()
    assert nothing["interval_width_median"] == math.inf


def test_the_report_names_what_was_judged_and_what_was_not() -> None:
    groups = [Group("cg", "a", (run(1.0),) * 3, (run(1.0),) * 2), Group("cg", "b", (), (run(1.0, "b"),) * 2)]
    left = [Group("lu", "c", (), (run(1.0),) * 7)]
    found = Report("robust", Evaluation(OUTCOMES, 1.5), groups, left, {"amdahl": Evaluation(OUTCOMES[:1])}, "why")
    document = found.document(loads="observed", level=0.9)
    whole = Evaluation(OUTCOMES, 1.5).summary()
    assert [*document][:6] == ["application", "cluster", "method", "loads", "level", "predictions"]
    assert {name: document[name] for name in whole} == whole
    names = ("application", "cluster", "method", "loads", "predictions", "reason")
    assert {name: document[name] for name in names} == {
        "application": "cg", "cluster": "a, b", "method": "robust", "loads": "observed", "predictions": 4,
        "reason": "why",
    }  # fmt: skip
    assert document["peers"] == {"amdahl": Evaluation(OUTCOMES[:1]).summary()}
    assert document["not_evaluated"] == [{"application": "lu", "cluster": "c", "predictions": 7}]
    first, second = document["evaluated"]
    for part, cluster, training, own in ((first, "a", 3, OUTCOMES[:2]), (second, "b", 0, OUTCOMES[2:])):
        summary = Evaluation(own).summary()
        del summary["fit_seconds"]
        assert part == {
            "application": "cg", "cluster": cluster, "training": training, "predictions": 2, **summary,
        }  # fmt: skip
    assert document["series"][1] == {
        "application": "cg", "cluster": "a", "problem_size": 100.0, "processors": 2, "execution_time": 10.0,
        "predicted": 13.0, "low": 10.5, "high": 42.0, "ppe": pytest.approx(30.0),
    }  # fmt: skip
    assert "reason" not in Report("robust", Evaluation(OUTCOMES), groups).document()


def test_an_outcome_of_energy_is_judged_by_the_joules_of_its_run() -> None:
    found = Outcome(run(10.0, energy=500.0), Prediction(450.0, Interval(400.0, 500.0, 0.9), "m"), "energy")
    assert (found.measured, found.ppe, found.held) == (500.0, pytest.approx(10.0), True)
    document = Report("robust", Evaluation((found,)), [Group("cg", "a", (), (found.run,))]).document()
    assert (document["series"][0]["energy"], document["series"][0]["execution_time"]) == (500.0, 10.0)
    none = Outcome(run(10.0), found.prediction, "energy")
    assert math.isnan(none.measured)


class Noting:
    """A predictor that notes what it learns, and predicts as many seconds as it has learned runs."""

    name = "noting"

    def __init__(self) -> None:
        self.learned: list[float] = []
        self.settled = 0

    def fit(self, runs) -> None:
        self.learned = [each.execution_time for each in runs]

    def learn(self, one: Run) -> None:
        self.learned.append(one.execution_time)

    def settle(self) -> None:
        self.settled += 1


@pytest.mark.parametrize("learning", [True, False])
def test_each_run_is_predicted_before_it_is_learned_under_every_condition(
    learning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from metasched.predictors.judging import evaluation

    asked: list[object] = []

    def predict(predictor: Noting, expected: object, level: float) -> Prediction:
        asked.append((len(predictor.learned), expected, level))
        return Prediction(1.0, Interval(1.0, 1.0, level), "m")

    monkeypatch.setattr(evaluation, "predict_expected", predict)
    conditions = [lambda one, _, level: ("first", one.execution_time), lambda one, _, level: ("second", level)]
    predictor = Noting()
    predictor.fit([run(7.0)])
    found = [*follow_under(predictor, [run(1.0), run(2.0)], conditions, 0.8, learning=learning)]  # type: ignore[arg-type]
    assert [[each.run.execution_time for each in several] for several in found] == [[1.0, 1.0], [2.0, 2.0]]
    first, second = (1, 2) if learning else (1, 1)
    assert asked == [
        (first, ("first", 1.0), 0.8), (first, ("second", 0.8), 0.8), (second, ("first", 2.0), 0.8),
        (second, ("second", 0.8), 0.8),
    ]  # fmt: skip
    assert (predictor.learned, predictor.settled) == (([7.0, 1.0, 2.0], 2) if learning else ([7.0], 0))


def test_groups_are_fitted_each_anew_and_their_outcomes_stand_one_behind_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from metasched.predictors.judging import evaluation

    moments = iter([1.0, 3.0, 10.0, 10.5])
    monkeypatch.setattr(evaluation, "time", type("Clock", (), {"perf_counter": lambda: next(moments)}))
    monkeypatch.setattr(evaluation, "predict_expected", lambda *_: Prediction(1.0, Interval(1.0, 1.0, 0.9), "m"))
    made, shown = [], []

    def make(group: Group) -> Noting:
        made.append((group.name, Noting()))
        return made[-1][1]

    groups = [Group("cg", "a", (run(7.0),), (run(1.0), run(2.0))), Group("cg", "b", (run(8.0),) * 2, (run(3.0),))]
    found = evaluate(
        make, groups, lambda *_: None, progress=lambda outcomes, count: (shown.append(count), outcomes)[1]  # type: ignore[arg-type, return-value]
    )  # fmt: skip
    assert [each.run.execution_time for each in found.outcomes] == [1.0, 2.0, 3.0]
    assert (found.fit_seconds, shown) == (2.5, [2, 1])
    assert [(name, each.learned) for name, each in made] == [("cg on a", [7.0, 1.0, 2.0]), ("cg on b", [8.0, 8.0, 3.0])]


def test_energy_is_judged_only_where_it_was_learned_and_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from metasched.predictors.judging import evaluation

    monkeypatch.setattr(evaluation, "predict_expected", lambda *_: Prediction(1.0, Interval(1.0, 1.0, 0.9), "m"))
    predictor = Noting()
    with pytest.raises(InputError, match=r"^the noting method has learned no energy, expected train rows with"):
        next(follow_under(predictor, [run(1.0)], [], quantity="energy"))  # type: ignore[arg-type]
    predictor.energy_predictor = lambda: predictor  # type: ignore[attr-defined]
    runs = [run(1.0), run(2.0, energy=9.0)]
    found = [*follow_under(predictor, runs, [lambda *_: None], quantity="energy")]  # type: ignore[arg-type, list-item, return-value]
    assert [each.measured for (each,) in found] == [9.0]
    assert predictor.learned == [1.0, 2.0]
    assert np.isfinite(found[0][0].ppe)
