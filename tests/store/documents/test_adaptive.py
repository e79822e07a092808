from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from changed_document import refusal

from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging.peers import RidgeQuadratic
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request
from metasched.store.documents import dump, parse
from tests.predictors.made import runs

REQUESTS = [Request(1000, 4, 0.5, 50.0), Request(300, 1, 1.0, 0.5), Request(9000, 32, 0.2, 900.0)]
MAKERS = pytest.mark.parametrize("make", [PublishedPredictor, RobustPredictor], ids=["published", "robust"])


@MAKERS
@pytest.mark.parametrize("count", [1, 4, 60])
def test_a_model_answers_the_same_after_it_was_saved_and_loaded(make: type, count: int) -> None:
    predictor = make("made", "c8").fit(runs(count))
    for run in runs(12, seed=3):
        predictor.learn(run)
        predictor.settle()
    again = parse(dump(predictor))
    assert type(again) is make
    assert (again.application, again.cluster) == ("made", "c8")
    for request in REQUESTS:
        assert again.predict(request) == predictor.predict(request)
    for run in runs(30, seed=4):
        for one in (predictor, again):
            one.learn(run)
            one.settle()
    assert again.predict(REQUESTS[0]).execution_time == pytest.approx(predictor.predict(REQUESTS[0]).execution_time)
    assert dump(parse(dump(again))) == dump(again)


@MAKERS
def test_a_document_cut_short_anywhere_is_refused(make: type) -> None:
    text = dump(make("made", "c8").fit(runs(60)))
    for end in range(0, len(text) - 1, max(1, len(text) // 40)):
        with pytest.raises(InputError, match=r"^m\.json: "):
            parse(text[:end], where="m.json")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("version", 0, "version 0 of the model format, expected 1"),
        ("version", 2, "version 2 of the model format, expected 1"),
        ("format", "something", "format is 'something'"),
        ("method", "magic", "method is 'magic'"),
        ("window.0.0", -5, "window[0][0]"),
        ("window.0.1", 1.5, "window[0][1]"),
        ("window", [], "window"),
        ("scores", [-1], "scores[0]"),
        ("parallel.combinations.0.0", "n^77", "no candidate function of N is named 'n^77'"),
        ("parallel.in_last", [0], "one for each combination"),
        ("parallel.factors.0.0", "a", "parallel.factors[0][0]"),
        ("parallel.factors", [], "parallel.factors"),
        ("unknown", 1, "unknown"),
    ],
)
def test_an_unsound_document_is_refused_with_its_place(path: str, value: Any, says: str) -> None:
    assert says in refusal(PublishedPredictor("made", "c8").fit(runs(60)), path, value)


def test_a_peer_cannot_be_saved() -> None:
    with pytest.raises(InputError, match="a ridge predictor cannot be saved"):
        dump(RidgeQuadratic().fit(runs(20)))


def test_a_robust_document_of_the_former_committee_is_fitted_again_to_the_runs_it_keeps() -> None:
    again = parse((Path(__file__).parent / "robust_committee.json").read_text(encoding="utf-8"))
    assert isinstance(again, RobustPredictor)
    assert len(again.window) == 12
    fresh = RobustPredictor("made", "c8").fit(again.window)
    for request in REQUESTS:
        assert again.predict(request) == fresh.predict(request)
    assert parse(dump(again)).predict(REQUESTS[0]) == again.predict(REQUESTS[0])


@pytest.mark.parametrize(("varied", "noise", "alone"), [(True, 0.036, 1.0 / 3.0), (False, 0.0334, 1.0)])
def test_a_robust_document_from_before_noise_on_one_processor_was_learned(
    varied: bool, noise: float, alone: float
) -> None:
    window = [run if varied else replace(run, min_avg_avail_cpu=0.8, min_avg_avail_bw=90.0) for run in runs(12)]
    document = json.loads(dump(RobustPredictor("made", "c8").fit(window)))
    document["scales"] = {**document["scales"], "noise": noise, "alone": alone}
    known = parse(json.dumps(document))
    document["scales"]["noise"] = 0.02
    del document["scales"]["alone"]
    earlier = parse(json.dumps(document))
    for request in REQUESTS:
        assert earlier.predict(request).execution_time == pytest.approx(known.predict(request).execution_time)
        assert earlier.predict(request).interval.high == pytest.approx(known.predict(request).interval.high)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("formula.size", -1.0, "formula.size"),
        ("formula.numbers", {"growth": 2.0}, "numbers are growth, expected amount"),
        ("scales.noise", 0.0, "scales.noise"),
        ("weights", [0.5], "1 weights, expected 12"),
        ("weights.0", 2.0, "weights[0]"),
        ("formula.numbers.spreading", 5e9, "must not contain infs or NaNs"),
        ("window.4.4", 1e308, "execution_time is 1e+308, expected at most 1e+36"),
    ],
)
def test_an_unsound_robust_document_is_refused_with_its_place(path: str, value: Any, says: str) -> None:
    assert says in refusal(RobustPredictor("made", "c8").fit(runs(12)), path, value)


def test_runs_whose_loads_were_not_measured_survive() -> None:
    whole = runs(12)
    unmeasured = replace(whole[3], min_avg_avail_cpu=math.nan, min_avg_avail_bw=math.nan)
    predictor = RobustPredictor("made", "c8").fit([*whole[:3], unmeasured, *whole[4:]])
    again = parse(dump(predictor))
    assert again.predict(REQUESTS[0]) == predictor.predict(REQUESTS[0])
    assert [math.isnan(run.min_avg_avail_cpu) for run in again.window].count(True) == 1
