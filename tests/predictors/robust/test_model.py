"""Laws of the robust method: monotone, the same one by one and in batches, sensible from the first run on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candidate_functions.terms import Observations
from metasched.predictors.gaussian_process import COVERING, NEWEST
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.robust.structure import LEAST, Structure
from metasched.predictors.robust.tabulated import FEWEST, Tabulated
from metasched.records import Request, Run
from tests.predictors.made import runs, true_time

Where = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def asked(count: int, seed: int, *, sizes: int = 0) -> Where:
    """Requests far inside and far outside of what was learned; of few sizes where a number of them is given."""
    rng = np.random.default_rng(seed)
    n = np.exp(rng.uniform(3, 12, count))
    if sizes:
        n = rng.choice(n[:sizes], count)
    return n, rng.integers(1, 200, count).astype(float), rng.uniform(0.05, 1, count), np.exp(rng.uniform(0, 8, count))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 60), st.floats(1.01, 5.0))
def test_time_never_grows_with_available_cpu_or_bandwidth(seed: int, count: int, more: float) -> None:
    model = Model.fit(measured(runs(count, seed=seed, noise=0.3)))
    n, p, cpu, bw = asked(50, seed)
    time = model.predict(n, p, cpu, bw)[0]
    assert (model.predict(n, p, np.minimum(more * cpu, 1.0), bw)[0] <= time * (1 + 1e-12)).all()
    assert (model.predict(n, p, cpu, more * bw)[0] <= time * (1 + 1e-12)).all()


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.integers(3, 60), st.sampled_from([0, 1, 3]))
def test_a_batch_is_answered_as_its_requests_are_one_by_one(seed: int, count: int, sizes: int) -> None:
    model = Model.fit(measured(runs(count, seed=seed)))
    where = asked(FEWEST + 100, seed, sizes=sizes)
    tabulated = Tabulated(model)
    time, spread = tabulated.predict(*where)
    plain, plain_spread = model.predict(*where)
    assert time == pytest.approx(plain, rel=1e-3)
    assert spread == pytest.approx(plain_spread, rel=0.02)
    assert tabulated.expect(*where) == pytest.approx(time, rel=1e-12)
    one = np.array([model.predict_one(*row) for row in zip(*(column[:20].tolist() for column in where), strict=True)])
    assert one[:, 0] == pytest.approx(plain[:20], rel=1e-9)
    assert one[:, 1] == pytest.approx(plain_spread[:20], rel=1e-9)


def test_a_batch_of_fractional_processors_or_of_none_is_answered() -> None:
    predictor = RobustPredictor().fit(runs(20))
    many = predictor.predict_many(1000.0, np.linspace(1.0, 4.0, 2 * FEWEST), 0.5, 50.0)
    assert np.isfinite(many.execution_time).all()
    assert len(predictor.expect_many([], [], [], [])) == 0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 12))
def test_computation_never_grows_with_processors(seed: int, count: int) -> None:
    formula = Model.fit(measured(runs(count, seed=seed, noise=0.3))).formula
    p = np.arange(1.0, 129.0)
    computation = formula.terms(np.full(128, 1000.0), p, np.full(128, 0.5), np.full(128, 50.0)).computation
    assert (np.diff(computation) <= 0).all()
    assert (np.array(formula.numbers) >= LEAST).all()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 10, 15])
def test_intervals_are_believable_from_the_first_run_on(count: int) -> None:
    interval = RobustPredictor().fit(runs(count)).predict(Request(1000, 4, 0.6, 60.0)).interval
    assert 1.0 < interval.high / interval.low < 100.0 / math.sqrt(count)


def test_an_error_does_not_jump_between_nine_and_ten_runs() -> None:
    def error(count: int) -> float:
        off = []
        for seed in range(6):
            predictor = RobustPredictor().fit(runs(count, seed=seed))
            where = (np.array([700.0, 1500.0]), np.array([4.0, 8.0]), np.array([0.6, 0.6]), np.array([60.0, 60.0]))
            truth = np.array([true_time(*row) for row in zip(*where, strict=True)])
            off.append(np.abs(predictor.expect_many(*where) / truth - 1.0).mean())
        return float(np.mean(off))

    assert error(9) < 1.5 * error(10)


def test_a_serial_part_shows_as_a_plateau() -> None:
    plateau = [
        Run("a", "c", n, p, 1.0, 100.0, 1e-3 * n * (0.9 / p + 0.1))
        for n in (1e3, 2e3, 4e3, 8e3) for p in (1, 2, 4, 8, 16)
    ]  # fmt: skip
    predictor = RobustPredictor().fit(plateau)
    at_16, at_64 = predictor.expect_many(4e3, [16, 64], 1.0, 100.0)
    assert at_64 == pytest.approx(4.0 * (0.9 / 64 + 0.1), rel=0.2)
    assert at_16 / at_64 < 2.0


def test_a_perfect_speedup_is_expected_to_go_on() -> None:
    perfect = [Run("a", "c", 1e3, p, 1.0, 100.0, 1e3 / p) for p in (1, 2, 4, 8, 16)]
    at_32, at_64 = RobustPredictor().fit(perfect).expect_many(1e3, [32, 64], 1.0, 100.0) * np.array([32, 64]) / 1e3
    assert 1.0 <= at_32 < 1.05
    assert at_32 <= at_64 < 1.15


def test_one_wild_run_does_not_bend_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = runs(40, noise=0.02)
    wild = [*usual[:7], replace(usual[7], execution_time=3.0 * usual[7].execution_time), *usual[8:]]
    n, p, cpu, bw = asked(40, 1)
    within = (np.clip(n, 300, 3000), np.clip(p, 1, 8), cpu, np.clip(bw, 20, 95))

    def moved() -> float:
        with_it, without = (RobustPredictor().fit(kept).expect_many(*within) for kept in (wild, usual))
        return float(np.median(np.abs(with_it / without - 1.0)))

    resistant = moved()
    monkeypatch.setattr("metasched.predictors.robust.model.FEWEST_WEIGHED", 1000)
    monkeypatch.setattr("metasched.predictors.robust.far_off.SET_ASIDE", 1000)
    assert resistant < 0.5 * moved()


def unmeasured(run: Run) -> Run:
    return Run(run.application, run.cluster, run.problem_size, run.processors, math.nan, math.nan, run.execution_time)


def test_a_run_without_measured_loads_weighs_less_and_is_noted() -> None:
    known = runs(12, seed=1)
    slow = Run("made", "c8", 1000.0, 4, 0.6, 60.0, 3.0 * true_time(1000, 4, 0.6, 60.0))
    asking = Request(1000, 4, 0.6, 60.0)
    without, with_measured, with_unmeasured = (
        RobustPredictor().fit(kept).predict(asking)
        for kept in (known, [*known, *4 * [slow]], [*known, *4 * [unmeasured(slow)]])
    )
    moved = with_measured.execution_time / without.execution_time
    assert 1.0 < with_unmeasured.execution_time / without.execution_time < moved
    assert any("not measured during 4 of 16 runs" in warning for warning in with_unmeasured.warnings)


def test_runs_of_which_no_load_was_measured_are_learned() -> None:
    predictor = RobustPredictor().fit(map(unmeasured, runs(20)))
    predictor.learn(unmeasured(runs(1, seed=9)[0]))
    found = predictor.predict(Request(1000, 4, 0.8, 90.0))
    assert 0 < found.interval.low < found.execution_time < found.interval.high < math.inf


@pytest.mark.parametrize("more", [0, 1, 200])
def test_runs_beyond_those_that_the_process_uses_are_fitted(more: int) -> None:
    learned = runs(NEWEST + COVERING + more)
    predictor = RobustPredictor().fit(learned)
    assert len(predictor.window) == len(learned)
    errors = [predictor.predict(run.request).execution_time / run.execution_time - 1.0 for run in learned[::20]]
    assert float(np.median(np.abs(errors))) < 0.2
    assert bool(predictor.state.surprises) == (more == 0)


@pytest.mark.parametrize("known", [True, False])
def test_noise_of_few_runs_grows_with_processors_only_where_loads_varied(known: bool) -> None:
    model = Model.fit(measured([run if known else unmeasured(run) for run in runs(2)]))
    where = np.full(3, 1000.0), np.array([1.0, 4.0, 16.0]), np.full(3, 0.8), np.full(3, 90.0)
    _, noise = model.covariance(*where)
    assert (noise[0] < 0.6 * noise[1] < noise[2]) if known else np.allclose(noise, noise[0], rtol=0.25)
    one_by_one = [model.predict_one(n, int(p), cpu, bw) for n, p, cpu, bw in zip(*where, strict=True)]
    np.testing.assert_allclose(np.array(one_by_one).T, model.predict(*where))


@pytest.mark.parametrize("alone", [1.0, 0.25])
def test_noise_on_one_processor_is_learned(alone: float) -> None:
    random = np.random.default_rng(3)
    exact = runs(720, noise=0.0)
    noisy = [
        replace(run, execution_time=run.execution_time * math.exp(random.normal(0.0, 0.1 * (1.0 - (1.0 - alone) / p))))
        for run, p in ((run, run.processors) for run in exact)
    ]
    predictor = RobustPredictor().fit(noisy[:120])
    assert predictor.state.model.process.scales.alone == pytest.approx(alone, rel=0.4)
    inside: dict[int, list[bool]] = {1: [], 2: [], 4: [], 8: []}
    for run in noisy[120:]:
        interval = predictor.predict(run.request).interval
        inside[run.processors].append(interval.low < run.execution_time < interval.high)
    assert {p: len(held) for p, held in inside.items()} == dict.fromkeys(inside, 150)
    assert all(0.83 < np.mean(held) < 0.98 for held in inside.values())


def test_the_breakdown_adds_up_to_the_prediction() -> None:
    predictor = RobustPredictor().fit(runs(60))
    request = Request(1000, 4, 0.5, 50.0)
    computation, communication = predictor.breakdown(request)
    time = predictor.predict(request).execution_time
    assert computation.seconds + communication.seconds == pytest.approx(time)
    assert computation.seconds > 0 < communication.seconds


def test_the_formula_written_out_gives_the_times() -> None:
    model = Model.fit(measured(runs(60)))
    formula, text = model.formula, model.text
    for written, python in (("^", "**"), (" N", "*N"), (" (", "*("), (" P", "*P")):
        text = text.replace(written, python)
    n, p, cpu, bw = 1500.0, 4.0, 0.5, 60.0
    value = eval(text, {"N": n, "P": p, "cpu": cpu, "bw": bw})
    exact = math.exp(formula.log_time(*(np.array([number]) for number in (n, p, cpu, bw)))[0])
    assert value == pytest.approx(exact, rel=0.1)  # exponents are rounded to two digits


def test_a_formula_of_one_run_is_as_expected_beforehand() -> None:
    one = Structure.around(measured(runs(1)))
    assert one.numbers.growth == 2.0
    assert Model.fit(measured(runs(1))).formula.numbers.growth == pytest.approx(2.0)


def test_a_platform_unlike_the_others_counts_little_and_few_runs_of_the_own_count_whole() -> None:
    def wild(run: Run) -> Run:
        return replace(run, execution_time=run.execution_time * factors.lognormal(0.0, 1.5))

    factors = np.random.default_rng(4)
    own, elsewhere = runs(20, seed=1), [wild(run) for run in runs(20, seed=3)]
    weights = Model.fit(measured(own + elsewhere), platforms=[0] * 20 + [1] * 20).weights
    assert weights[:20].mean() > 0.9
    assert weights[20:].mean() < 0.05
    few = [own[0], replace(own[1], execution_time=2.0 * own[1].execution_time), own[2]]
    weights = Model.fit(measured(few + runs(20, seed=2)), platforms=[0] * 3 + [1] * 20).weights
    assert weights[:3].tolist() == [1.0, 1.0, 1.0]


def test_a_wild_run_among_its_like_counts_little() -> None:
    made = runs(20, seed=1)
    made[-1] = replace(made[-1], execution_time=9.0 * made[-1].execution_time)
    weights = Model.fit(measured(made)).weights
    assert weights[-1] < 0.2
    assert weights[:-1].min() > 0.5


@pytest.mark.parametrize("sent", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("fewest", [32.0, 256.0])
def test_communication_of_runs_that_all_used_many_processors_is_not_taken_for_computation(
    sent: float, fewest: float
) -> None:
    """Eight runs on 1, 2 and 4 times the fewest processors, of which a share ``sent`` is communication there."""

    def took(n: np.ndarray, p: np.ndarray) -> np.ndarray:
        return 50.0 * (n / 1000.0) ** 2 * ((1.0 - sent) * fewest / p + sent * (p / fewest) ** -0.3)

    off = []
    where = np.full(2, 1000.0), fewest * np.array([0.125, 16.0]), np.ones(2), np.full(2, 1000.0)
    for seed in range(6):
        generator = np.random.default_rng(seed)
        n, p = generator.uniform(500.0, 1500.0, 8), fewest * generator.choice([1.0, 2.0, 4.0], 8)
        time = took(n, p) * np.exp(generator.normal(0.0, 0.02, 8))
        model = Model.fit(Observations.of(n, p, np.ones(8), np.full(8, 1000.0), time))
        off.append(np.abs(np.log(model.predict(*where)[0] / took(*where[:2]))))
    assert np.mean(off) < 0.11
