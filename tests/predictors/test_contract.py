from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from metasched.fitting import METHODS
from metasched.predictors.abilities import computing_share
from metasched.predictors.contract import Predictor
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.formulas import published as published_module
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging.peers import GaussianProcess, RidgeQuadratic
from metasched.predictors.robust import model as robust_module
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request, Run
from tests.predictors.made import runs, true_time

Adaptive = PublishedPredictor | RobustPredictor
LEARNERS = [PublishedPredictor, RobustPredictor, RidgeQuadratic, METHODS["spmd"], MeteredPredictor]
BOTH = pytest.mark.parametrize("make", [PublishedPredictor, RobustPredictor], ids=["published", "robust"])


def request_of(run: Run) -> Request:
    return Request(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw)


@pytest.mark.parametrize("make", [PublishedPredictor, RobustPredictor, RidgeQuadratic, GaussianProcess])
def test_every_predictor_keeps_the_contract(make: Callable[[], Predictor]) -> None:
    predictor = make()
    assert isinstance(predictor, Predictor)
    predictor.fit(runs(60))  # type: ignore[attr-defined]
    one = predictor.predict(Request(1000, 4, 0.5, 50.0), level=0.8)
    many = predictor.predict_many([1000, 2000], 4, 0.5, 50.0, level=0.8)
    assert one.execution_time == pytest.approx(many.execution_time[0])
    assert (one.interval.low, one.interval.high) == pytest.approx((many.low[0], many.high[0]))
    assert (many.low < many.execution_time).all()
    assert (many.execution_time < many.high).all()
    assert one.model
    predictor.learn(runs(1, seed=9)[0])


@pytest.mark.parametrize("make", [PublishedPredictor, RobustPredictor, RidgeQuadratic, GaussianProcess])
def test_no_requests_get_no_predictions(make: Callable[[], Predictor]) -> None:
    predictor = make()
    predictor.fit(runs(60))  # type: ignore[attr-defined]
    assert predictor.predict_many([], [], [], []).execution_time.shape == (0,)


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"problem_size": 1e80}, "most 1e+36"),
        ({"execution_time": 1e-80}, "least 1e-36"),
        ({"execution_time": 1e300}, "most 1e+36"),
        ({"processors": 10**300}, "most 1e+36"),
        ({"min_avg_avail_cpu": 5e-324}, "least 1e-36"),
        ({"min_avg_avail_bw": 1e308}, "most 1e+36"),
        ({"threads": 10**40}, "most 1e+36"),
        ({"parameter:tolerance": 5e-324}, "least 1e-36"),
        ({"parameter:tolerance": -5e-324}, "most -1e-36"),
        ({"parameter:tolerance": -1e308}, "least -1e+36"),
    ],
)
def test_runs_that_cannot_be_computed_with_are_refused_and_not_learned(
    make: Callable[..., RobustPredictor], changed: dict[str, float], expected: str
) -> None:
    *known, last = runs(30)
    ((name, value),) = changed.items()
    given = replace(last, **changed) if hasattr(last, name) else replace(last, extra={name: repr(value)})
    with pytest.raises(InputError, match=re.escape(f"{name} is {value:g}, expected at {expected}: no model")):
        make("made", "c8").fit([*known, given])
    predictor = make("made", "c8").fit(known)
    predictor.learn(given)
    assert predictor.window.seen == len(known)


@BOTH
@pytest.mark.parametrize("p", [1, 3, 8, 16])
def test_predictions_are_close_inside_and_outside_the_training_range(make: type[Adaptive], p: int) -> None:
    predictor = make().fit(runs(80))
    for n in (300, 1000, 6000):
        predicted = predictor.predict(Request(n, p, 0.6, 60.0)).execution_time
        assert predicted == pytest.approx(true_time(n, p, 0.6, 60.0), rel=0.2)


@BOTH
def test_intervals_hold_what_they_promise(make: type[Adaptive]) -> None:
    held = []
    for seed in range(2):
        predictor = make().fit(runs(60, seed=seed, noise=0.08))
        for run in runs(100, seed=100 + seed, noise=0.08):
            interval = predictor.predict(request_of(run)).interval
            held.append(interval.low <= run.execution_time <= interval.high)
            predictor.learn(run)
            predictor.settle()
    assert 0.85 <= np.mean(held) <= 0.95


@BOTH
def test_a_higher_level_gives_a_wider_interval(make: type[Adaptive]) -> None:
    predictor = make().fit(runs(60))
    widths = [
        predictor.predict(Request(1000, 4, 0.5, 50.0), level).interval.high for level in (0.5, 0.8, 0.9, 0.95, 0.99)
    ]
    assert widths == sorted(widths)
    assert len(set(widths)) == len(widths)


@BOTH
def test_learning_follows_a_machine_that_became_slower(make: type[Adaptive]) -> None:
    predictor = make().fit(runs(60))
    for run in runs(80, seed=5):
        predictor.learn(replace(run, execution_time=1.5 * run.execution_time))
        predictor.settle()
    predicted = predictor.predict(Request(1000, 4, 0.5, 50.0)).execution_time
    assert predicted > 1.25 * true_time(1000, 4, 0.5, 50.0)


@BOTH
@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_too_few_runs_give_a_simple_model_that_says_so(make: type[Adaptive], count: int) -> None:
    predictor = make().fit(runs(count))
    found = predictor.predict(Request(1000, 2, 0.5, 50.0))
    assert 0 < found.interval.low < found.execution_time < found.interval.high < np.inf
    said = {"published": "too few to choose how", "robust": "typical of parallel applications"}[predictor.name]
    assert any(said in warning for warning in found.warnings)


@BOTH
def test_runs_of_one_size_or_one_processor_count_are_fitted_as_far_as_they_go(make: type[Adaptive]) -> None:
    one_size = [replace(run, problem_size=1000.0, execution_time=10.0 / run.processors) for run in runs(20)]
    found = make().fit(one_size).predict(Request(1000, 4, 0.65, 50.0))
    assert any("problem size" in warning for warning in found.warnings)
    one_count = runs(20, counts=(4,))
    found = make().fit(one_count).predict(Request(1000, 4, 0.65, 50.0))
    assert found.execution_time == pytest.approx(true_time(1000, 4, 0.65, 50.0), rel=0.4)
    assert any("processor count" in warning for warning in found.warnings)


def test_a_constant_cost_under_a_growing_one_is_told_apart_on_one_processor_count() -> None:
    one_count = [Run("lj", "gpus", n, 16, 1.0, 1000.0, 2.0 + 1e-5 * n) for n in np.geomspace(1e3, 5e5, 12)]
    found = RobustPredictor().fit(one_count).predict(Request(16e6, 16, 1.0, 1000.0))
    assert found.execution_time == pytest.approx(162.0, rel=0.1)
    assert any("processor count" in warning for warning in found.warnings)


@BOTH
def test_a_simple_model_grows_into_a_searched_one(make: type[Adaptive]) -> None:
    predictor = make().fit(runs(3))
    for run in runs(60, seed=3):
        predictor.learn(run)
        predictor.settle()
    found = predictor.predict(Request(1000, 8, 0.5, 50.0))
    assert not found.warnings
    assert found.execution_time == pytest.approx(true_time(1000, 8, 0.5, 50.0), rel=0.1)


@BOTH
def test_nothing_to_learn_from_is_refused(make: type[Adaptive]) -> None:
    with pytest.raises(InputError, match="no runs"):
        make().fit([])
    with pytest.raises(InputError, match="learned nothing yet"):
        make().predict(Request(1000, 4, 0.5, 50.0))


@BOTH
def test_a_size_far_outside_what_was_learned_is_warned_of(make: type[Adaptive]) -> None:
    found = make().fit(runs(60)).predict(Request(1e6, 64, 0.5, 50.0))
    assert any("times the largest learned" in warning for warning in found.warnings)
    assert any("more than twice the most learned" in warning for warning in found.warnings)


@BOTH
def test_a_load_that_hardly_varied_in_training_does_not_run_away_when_it_does(make: type[Adaptive]) -> None:
    narrow = [replace(run, min_avg_avail_bw=9838.0 + number) for number, run in enumerate(runs(20, noise=0.2))]
    predictor = make().fit(narrow)
    usual = predictor.predict(Request(1000, 2, 0.5, 9850.0)).execution_time
    for bandwidth in (1000.0, 9000.0, 20_000.0):
        found = predictor.predict(Request(1000, 2, 0.5, bandwidth)).execution_time
        assert usual / 5 < found < usual * 5


@BOTH
def test_an_application_that_needs_four_processors_is_modelled(make: type[Adaptive]) -> None:
    predictor = make().fit(runs(60, counts=(4, 8, 16)))
    predicted = predictor.predict(Request(1000, 12, 0.6, 60.0))
    assert predicted.execution_time == pytest.approx(true_time(1000, 12, 0.6, 60.0), rel=0.15)
    fewer = predictor.predict(Request(1000, 2, 0.6, 60.0))
    assert any("fewer than the fewest learned" in warning for warning in fewer.warnings)


@pytest.mark.parametrize(
    ("make", "module", "search"),
    [
        (PublishedPredictor, published_module, "staged_search"),
        (RobustPredictor, robust_module, "most_probable"),
    ],
    ids=["published", "robust"],
)
def test_a_search_never_blocks_a_prediction(
    monkeypatch: pytest.MonkeyPatch, make: type[Adaptive], module: object, search: str
) -> None:
    predictor = make().fit(runs(60))
    release, started = threading.Event(), threading.Event()
    really = getattr(module, search)

    def slow(*args: object, **kwargs: object) -> object:
        started.set()
        assert release.wait(30)
        return really(*args, **kwargs)

    monkeypatch.setattr(module, search, slow)
    for run in runs(60, seed=2):
        predictor.learn(run)
    assert started.wait(10)
    before = predictor.predict(Request(1000, 4, 0.5, 50.0))
    assert before.execution_time == pytest.approx(true_time(1000, 4, 0.5, 50.0), rel=0.1)
    release.set()
    predictor.settle()
    assert predictor.predict(Request(1000, 4, 0.5, 50.0)).execution_time > 0


@BOTH
@pytest.mark.parametrize("numbers", [{"problem_size": 1e90}, {"problem_size": 1e-90}, {"execution_time": 1e-90}])
def test_a_run_with_numbers_that_no_run_has_teaches_nothing(make: type[Adaptive], numbers: dict[str, float]) -> None:
    predictor, asked = make().fit(runs(60)), Request(1000, 4, 0.5, 50.0)
    before = predictor.predict(asked)
    predictor.learn(replace(runs(1, seed=9)[0], **numbers))
    assert predictor.predict(asked) == before
    assert len(predictor.window) == 60


@BOTH
def test_what_is_still_searched_in_runs_of_before_is_forgotten_with_them(make: type[Adaptive]) -> None:
    def slower(count: int, seed: int) -> list[Run]:
        return [replace(run, execution_time=100.0 * run.execution_time) for run in runs(count, seed=seed)]

    predictor, asked = make().fit(runs(60)), Request(1000, 4, 0.5, 50.0)
    for run in runs(60, seed=2):
        predictor.learn(run)
        if predictor._search.running:
            break
    assert predictor._search.running
    predictor.fit(slower(60, seed=3))
    predictor.settle()
    assert predictor.predict(asked).execution_time == make().fit(slower(60, seed=3)).predict(asked).execution_time
    predictor.learn(slower(1, seed=4)[0])
    predictor.settle()
    assert predictor.predict(asked).execution_time == pytest.approx(100.0 * true_time(1000, 4, 0.5, 50.0), rel=0.3)


def test_a_search_that_fails_leaves_the_model_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = PublishedPredictor().fit(runs(60))

    def broken(*_: object, **__: object) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(published_module, "staged_search", broken)
    for run in runs(60, seed=2):
        predictor.learn(run)
        predictor.settle()
    assert predictor.predict(Request(1000, 4, 0.5, 50.0)).execution_time > 0


def test_a_single_model_stays_as_it_was_trained() -> None:
    predictor = PublishedPredictor(models="single").fit(runs(60))
    before = predictor.predict(Request(1000, 4, 0.5, 50.0))
    for run in runs(60, seed=4):
        predictor.learn(replace(run, execution_time=3 * run.execution_time))
    after = predictor.predict(Request(1000, 4, 0.5, 50.0))
    assert after.execution_time == before.execution_time
    assert after.model == before.model
    assert after.interval.high > before.interval.high


def test_every_fifty_predictions_the_search_is_repeated() -> None:
    predictor = PublishedPredictor().fit(runs(60))
    started = []
    for number, run in enumerate(runs(120, seed=6), start=1):
        predictor.learn(run)
        if predictor._search.running:
            started.append(number)
        predictor.settle()
    assert started == [50, 100]


@BOTH
def test_learning_many_runs_keeps_only_a_window_of_them(make: type[Adaptive]) -> None:
    predictor = make(capacity=64).fit(runs(60))
    for run in runs(30, seed=7):
        predictor.learn(run)
    predictor.settle()
    assert len(predictor.window) == 64
    assert predictor.window.seen == 90


def test_predictions_from_several_threads_while_learning_are_all_sound() -> None:
    predictor = PublishedPredictor().fit(runs(60))
    wrong: list[float] = []
    stop = time.monotonic() + 1.0

    def ask() -> None:
        while time.monotonic() < stop:
            found = predictor.predict(Request(1000, 4, 0.5, 50.0)).execution_time
            if found != pytest.approx(true_time(1000, 4, 0.5, 50.0), rel=0.3):
                wrong.append(found)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for run in runs(150, seed=8):
        predictor.learn(run)
    for asker in askers:
        asker.join()
    assert not wrong


def test_the_share_of_computation_is_that_of_the_terms_of_each_request() -> None:
    predictor = PublishedPredictor().fit(runs(60))
    asked = [(1000.0, 4), (3000.0, 1), (1000.0, 4), (500.0, 8)]
    found = computing_share(predictor, [n for n, _ in asked], [p for _, p in asked], 0.5, 50.0)
    terms = [predictor.breakdown(Request(n, p, 0.5, 50.0)) for n, p in asked]
    expected = [
        sum(each.seconds for each in some if each.name.startswith("computation")) / sum(each.seconds for each in some)
        for some in terms
    ]
    assert found.tolist() == pytest.approx(expected)
    assert len(set(expected)) == 3
