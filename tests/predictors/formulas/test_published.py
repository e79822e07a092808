"""What the published method is made of, put together: scores, lists, revisits, and the branches of few runs."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import numpy as np
import pytest

from candidate_functions.staged import StagedResult, staged_search
from candidate_functions.terms import Observations, TermTable, evaluate, names, positions
from metasched.predictors.formulas import published as module
from metasched.predictors.formulas.few_runs import simplest_model, supports_search
from metasched.predictors.formulas.published import SPREAD, PublishedPredictor
from metasched.predictors.formulas.sorted_list import LAST_SHARE, PATIENCE, SortedList
from metasched.predictors.memory.calibration import score
from metasched.predictors.memory.window import observations
from metasched.records import InputError, Request, Run
from tests.predictors.made import runs


def left_out(models: SortedList, training: list[Run]) -> list[float]:
    """Score of each run, predicted by the best combination fitted to the others by numpy's least squares."""
    seen = observations(training)
    design = TermTable.at(seen).columns(models.combinations[:1])[0].T
    design = design[:, design.any(axis=0)]
    scores = []
    for position in range(len(training)):
        others = np.arange(len(training)) != position
        coefficients, *_ = np.linalg.lstsq(design[others], seen.time[others], rcond=None)
        scores.append(score(float(seen.time[position]), float(design[position] @ coefficients), SPREAD))
    return scores


def test_intervals_start_from_the_scores_of_training_runs_each_predicted_without_itself() -> None:
    training = runs(60, noise=0.1)
    state = PublishedPredictor().fit(training).state
    assert state.alone is not None
    expected = [
        *left_out(state.alone, [run for run in training if run.processors == 1]),
        *left_out(state.parallel, [run for run in training if run.processors > 1]),
    ]
    assert len(expected) == state.calibration.rehearsed == 60
    assert state.calibration.scores == pytest.approx(expected, rel=1e-6)


def test_the_intervals_of_a_fresh_model_are_as_wide_as_its_training_runs_were_noisy() -> None:
    request, widths = Request(1000, 4, 0.5, 50.0), []
    for noise in (0.02, 0.2):
        interval = PublishedPredictor().fit(runs(60, noise=noise)).predict(request).interval
        widths.append(np.log(interval.high / interval.low))
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.parametrize(("alone", "parallel", "searched"), [(40, 3, False), (40, 4, True), (6, 3, False)])
def test_a_search_needs_four_runs_on_several_processors(alone: int, parallel: int, searched: bool) -> None:
    training = [*runs(alone, counts=(1,)), *runs(parallel, seed=1, counts=(2,))]
    state = PublishedPredictor().fit(training).state
    assert bool(state.tried) is searched
    assert bool(state.notes) is not searched


def test_requests_on_one_processor_are_answered_by_the_functions_of_the_first_stage() -> None:
    training = runs(60)
    state = PublishedPredictor().fit(training).state
    assert state.alone is not None
    assert state.list_for(1) is state.alone
    assert state.list_for(2) is state.parallel
    assert sorted(state.alone.combinations[:, 0]) == sorted(staged_search(observations(training)).computation)
    assert (state.alone.coefficients[:, 1] == 0.0).all()


def test_a_run_is_learned_by_the_list_that_predicted_it() -> None:
    predictor = PublishedPredictor().fit(runs(60))
    before = predictor.state
    assert before.alone is not None
    for run in runs(7, seed=3, counts=(1, 2, 4, 8, 1, 1, 2)):
        predictor.learn(run)
    after = predictor.state
    assert after.alone is not None
    assert (after.alone.samples, after.parallel.samples) == (before.alone.samples + 3, before.parallel.samples + 4)


def test_the_prediction_of_a_run_whose_loads_were_not_measured_is_scored_as_well() -> None:
    predictor = PublishedPredictor().fit(runs(60))
    unmeasured = replace(runs(1, seed=3, counts=(4,))[0], min_avg_avail_cpu=math.nan, min_avg_avail_bw=math.nan)
    asked = unmeasured.request
    where = asked.problem_size, asked.processors, asked.available_cpu, asked.available_bandwidth
    expected = score(unmeasured.execution_time, float(predictor.expect_many(*where)[0]), SPREAD)
    predictor.learn(unmeasured)
    assert predictor.state.calibration.scores[-1] == pytest.approx(expected)


def test_a_revisit_keeps_what_was_still_in_use_and_every_run() -> None:
    predictor = PublishedPredictor().fit(runs(60, noise=0.1))
    for run in runs(49, seed=3, noise=0.1):
        predictor.learn(run)
    in_use = {tuple(each) for each in predictor.state.parallel.combinations}
    predictor.learn(runs(1, seed=4, counts=(2,))[0])
    predictor.settle()
    lists = predictor.state
    assert lists.alone is not None
    assert lists.since_search == 0
    assert lists.alone.samples + lists.parallel.samples == 110
    # What the fiftieth run itself pushed out is all that may be missing.
    found = {tuple(each) for each in lists.parallel.combinations}
    assert len(in_use - found) <= LAST_SHARE * len(in_use)
    assert len(found) <= module.LONGEST


def test_no_run_is_lost_that_is_learned_while_a_search_runs_or_just_as_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = PublishedPredictor().fit(runs(60))
    release = threading.Event()
    really = staged_search

    def slow(seen: Observations) -> StagedResult:
        assert release.wait(30)
        return really(seen)

    monkeypatch.setattr("metasched.predictors.formulas.published.staged_search", slow)
    learned = runs(61, seed=3)
    for run in learned[:60]:
        predictor.learn(run)
    assert predictor._search.running
    release.set()
    predictor._search.wait()
    predictor.learn(learned[60])
    state = predictor.state
    assert not predictor._search.running
    assert state.alone is not None
    assert state.since_search == 11
    assert state.alone.samples + state.parallel.samples == 121


def test_where_the_best_combination_is_not_defined_the_next_one_answers() -> None:
    predictor = PublishedPredictor().fit(runs(60))
    parallel = predictor.state.parallel
    # f_bw = log(bw) is not above 0 at 1 Mbit/s, the square root is: their models as first and second of the list.
    first, second = parallel.combinations[:1].copy(), parallel.combinations[:1].copy()
    first[0, 2], second[0, 2] = 6, 0
    seen = observations([run for run in runs(60) if run.processors > 1])
    both = SortedList.of(np.concatenate([first, second]), seen)
    order = np.argsort(both.combinations[:, 2] == 0)
    predictor._state = replace(predictor.state, parallel=both.keep(order))
    found = predictor.predict(Request(1000, 4, 0.5, 1.0))
    assert "sqrt(bw)" in found.model
    assert found.execution_time == predictor.expect_many(1000, 4, 0.5, [1.0, 50.0])[0]
    predictor._state = replace(predictor.state, parallel=both.keep(order[:1]))
    assert predictor.expect_many(1000, 4, 0.5, [1.0, 50.0])[0] == np.inf
    with pytest.raises(InputError, match="no model in the sorted list is defined"):
        predictor.predict(Request(1000, 4, 0.5, 1.0))


def test_a_combination_leaves_the_list_after_five_runs_in_its_last_tenth_and_not_before() -> None:
    models = PublishedPredictor().fit(runs(60, noise=0.2)).state.parallel
    last = int(LAST_SHARE * len(models))
    assert last > 0
    for number in range(1, PATIENCE + 1):
        before, models = models, models.learned(observations(runs(1, seed=number, counts=(4,), noise=0.0)))
        gone = len(before) - len(models)
        assert gone <= last
        assert not gone or number == PATIENCE
    assert models.in_last.max() < PATIENCE


def by_first_defined(models: SortedList, n: float, p: float, cpu: float, bw: float) -> float:
    """The time that the first combination gives which is defined, found one by one."""
    where = [np.array([each]) for each in (n, p, cpu, bw)]
    times = (
        float(evaluate(each, own, *where)[0])
        for each, own in zip(models.combinations, models.coefficients, strict=True)
    )
    return next((time for time in times if 0.0 < time < math.inf), math.inf)


def test_each_of_many_requests_is_answered_by_the_first_combination_that_is_defined_for_it() -> None:
    predictor, source = PublishedPredictor().fit(runs(60, noise=0.2)), np.random.default_rng(5)
    state = predictor.state
    assert state.alone is not None
    # Coefficients of both signs, so that many combinations give no time above 0.
    lists = [
        replace(each, coefficients=source.choice([-1.0, 1.0], each.coefficients.shape))
        for each in (state.parallel.keep(np.arange(6)), state.alone)
    ]
    lists[0].coefficients[0] = -1.0
    predictor._state = replace(state, parallel=lists[0], alone=lists[1])
    n, p = source.choice([1.0, 2.0, 50.0, 900.0], 200), source.choice([1.0, 2.0, 7.0], 200)
    cpu, bw = source.choice([0.1, 1.0], 200), source.choice([0.5, 1.0, 80.0], 200)
    found = predictor.expect_many(n, p, cpu, bw)
    requests = zip(n, p, cpu, bw, strict=True)
    expected = [by_first_defined(lists[int(each[1] == 1.0)], *map(float, each)) for each in requests]
    assert found.tolist() == pytest.approx(expected)
    assert {math.isinf(each) for each in expected} == {True, False}
    for number in range(0, 200, 20):
        request = Request(float(n[number]), int(p[number]), float(cpu[number]), float(bw[number]))
        if math.isfinite(expected[number]):
            prediction = predictor.predict(request)
            assert prediction.execution_time == pytest.approx(expected[number])
            assert sum(term.seconds for term in predictor.breakdown(request)) == pytest.approx(expected[number])
            assert [term.name for term in predictor.breakdown(request)] == ["computation", "communication"]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_an_interval_is_a_factor_around_the_time_and_says_its_level(level: float) -> None:
    predictor = PublishedPredictor().fit(runs(60, noise=0.1))
    request = Request(1000, 4, 0.5, 50.0)
    found = predictor.predict(request, level)
    factor = math.exp(predictor.state.calibration.reach(level) * SPREAD)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (found.execution_time / factor, found.execution_time * factor)
    )
    assert found.interval.level == level
    assert predictor.predict(request).interval == predictor.predict(request, 0.9).interval
    outside = Request(1e6, 4, 0.5, 50.0)
    assert predictor.predict(outside).warnings == predictor.state.domain.warnings(outside) != ()


@pytest.mark.parametrize("many", [3, 4, 5])
def test_few_runs_score_the_simplest_model_by_relative_errors_where_four_are_left(many: int) -> None:
    training = runs(many, counts=(2, 4, 8), noise=0.2)
    state = PublishedPredictor().fit(training).state
    assert state.alone is None
    seen = observations(training)
    columns = (TermTable.at(seen).columns(state.parallel.combinations[:1])[0] / seen.time).T
    design, expected = columns[:, state.parallel.coefficients[0] > 0.0], []
    for position in range(many if many >= 4 else 0):
        others = np.arange(many) != position
        coefficients, *_ = np.linalg.lstsq(design[others], np.ones(many - 1), rcond=None)
        share = float(design[position] @ coefficients)
        expected.append(score(1.0, share, SPREAD) if share > 0.0 else 3.0 / SPREAD)
    assert state.calibration.scores == pytest.approx(expected)
    assert state.notes
    assert PublishedPredictor().fit(training).predict(Request(500, 4, 0.5, 50.0)).warnings[: len(state.notes)] == (
        state.notes
    )


def test_a_list_allows_coefficients_below_0_unless_they_are_ruled_out() -> None:
    n, p = np.tile(np.linspace(100, 900, 9), 3), np.repeat([2, 4, 8], 9)
    time = 1e-3 * n**2 / p - 0.3 / np.sqrt(p)
    seen = Observations.of(n, p, np.ones(n.size), np.full(n.size, 90.0), time)
    combinations = positions(["n^2", "1", "bw", "p", "p^1/2"])[None, :]
    plain, ruled = (SortedList.of(combinations, seen, **more) for more in ({}, {"nonnegative": True}))
    assert plain.coefficients.min() < 0.0 <= ruled.coefficients.min()
    assert (plain.relative, plain.nonnegative, ruled.nonnegative) == (False, False, True)


@pytest.mark.parametrize("sizes", [1, 2, 3])
@pytest.mark.parametrize("counts", [1, 2, 3])
def test_what_few_runs_cannot_tell_is_assumed_and_said(sizes: int, counts: int) -> None:
    n, p = np.repeat([100.0, 200.0, 400.0][:sizes], counts), np.tile([2.0, 4.0, 8.0][:counts], sizes)
    seen = Observations.of(n, p, np.ones(n.size), np.full(n.size, 50.0), 1e-3 * n**1.5 / p + 2.0 / np.sqrt(p))
    found = simplest_model(seen)
    said = []
    if sizes < 3:
        said.append(f"only {sizes} problem size{'s were' if sizes > 1 else ' was'} run: ")
        said[-1] += "time is assumed to grow in proportion to N"
    if counts < 3:
        said.append(f"only {counts} processor count{'s were' if counts > 1 else ' was'} run: ")
        said[-1] += "time is assumed to fall in proportion to P"
    runs = f"{n.size} run{'s were' if n.size > 1 else ' was'}"
    said.append(f"{runs} too few to choose how communication grows: it is assumed not to, with N")
    assert list(found.assumptions) == said
    comp, comm, bandwidth, pcomp, pcomm = names(found.combination[0])
    assert (comm, bandwidth, pcomm) == ("1", "bw", "p^1/2")
    assert comp == "n^1" or sizes == 3
    assert pcomp == "p" or counts == 3
    # What is said of communication is so: its term is there, and does not change with N.
    predictor = PublishedPredictor().fit([
        Run("a", "c", *(float(each), int(many)), 1.0, 50.0, 1e-3 * each**1.5 / many + 2.0 / many**0.5)
        for each, many in zip(n, p, strict=True)
    ])  # fmt: skip
    terms = [predictor.breakdown(Request(size, 4, 1.0, 50.0))[1] for size in (100.0, 400.0)]
    assert terms[0].seconds == terms[1].seconds >= 0.0


@pytest.mark.parametrize(
    ("runs", "sizes", "counts", "enough"),
    [(10, 4, 2, True), (9, 4, 2, False), (10, 3, 2, False), (10, 4, 1, False), (40, 4, 2, True), (40, 10, 1, False)],
)
def test_a_search_needs_ten_runs_of_four_sizes_on_two_numbers_of_processors(
    runs: int, sizes: int, counts: int, enough: bool
) -> None:
    at = np.arange(runs)
    ones = np.ones(runs)
    assert supports_search(Observations.of(100.0 + at % sizes, 1 + at // sizes % counts, ones, ones, ones)) is enough
