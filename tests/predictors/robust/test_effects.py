"""What layouts and parameters do to time is learned where runs show it, and never invented where they do not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.predictors.abilities import power_terms, under
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.judging.peers import GaussianProcess, PowerLaw, RidgeQuadratic
from metasched.predictors.memory.setting_columns import SettingColumns
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.effects import Effects
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.robust.structure import Structure
from metasched.records import InputError, Request, Run, Settings
from metasched.store import documents
from tests.predictors.laid_out import laid_out, true_time, without_settings


def error(predictor: RobustPredictor, runs: list[Run]) -> float:
    return float(np.mean([abs(predictor.predict(run.request).execution_time / run.execution_time - 1) for run in runs]))


def test_layouts_and_parameters_that_vary_are_learned_and_kept_in_files() -> None:
    predictor = RobustPredictor("cg", "c8").fit(laid_out(40))
    rest = laid_out(40, seed=1)
    assert error(predictor, rest) < 0.08
    assert error(RobustPredictor().fit(without_settings(laid_out(40))), without_settings(rest)) > 0.3
    text = predictor.state.model.text
    assert all(word in text for word in ("k^", "threads^", "(steps /", "if solver is"))
    kept = documents.parse(documents.dump(predictor), where="a file")
    assert [kept.predict(run.request).execution_time for run in rest] == pytest.approx(
        [predictor.predict(run.request).execution_time for run in rest], rel=1e-9
    )


@pytest.mark.parametrize("processors", [1, 2])
def test_on_fewer_processors_than_ever_no_more_share_a_node_than_there_are(processors: int) -> None:
    runs = [run for run in laid_out(90, parameters=False) if run.settings.processes_per_node != 1]
    predictor, layout = RobustPredictor("cg", "c8").fit(runs), Settings(processors)
    stated = Request(700, processors, 0.9, 90.0, layout)
    found = predictor.predict(replace(stated, settings=replace(layout, processes_per_node=None)))
    assert found.execution_time == pytest.approx(predictor.predict(stated).execution_time)


def test_a_slower_clock_is_not_expected_to_be_faster() -> None:
    # All larger sizes were run at the higher clock, so that nothing tells the effects of both apart.
    made = [(n, 1000.0 * n / 500.0) for n in (500.0, 1000.0, 1500.0)]
    runs = [Run("cg", "c8", n, 4, 1.0, 90.0, n**1.5 / f, extra={"frequency": str(f)}) for n, f in made]
    asked = Request(1000.0, 4, 1.0, 90.0)
    slow, fast = (
        RobustPredictor("cg", "c8").fit(runs).predict(replace(asked, settings=Settings(frequency=f))).execution_time
        for f in (1000.0, 3000.0)
    )
    assert slow > 1.5 * fast


def test_the_interval_of_a_prediction_without_a_parameter_holds_the_times_of_the_values_learned() -> None:
    runs = laid_out(40)
    predictor, (first, *_) = RobustPredictor("cg", "c8").fit(runs), runs
    asked = replace(first.request, settings=replace(first.settings, parameters=()))
    without = predictor.predict(asked)
    meant = [replace(first.settings, parameters=run.settings.parameters) for run in runs]
    stated = [predictor.predict(replace(asked, settings=each)).execution_time for each in meant]
    assert max(stated) / min(stated) > 2.0
    assert np.mean([without.interval.holds(time) for time in stated]) >= 0.85
    columns = [np.array([value]) for value in (asked.processors, asked.available_cpu, asked.available_bandwidth)]
    many = under(predictor, asked.settings).predict_many(asked.problem_size, *columns)
    assert (many.low[0], many.high[0]) == pytest.approx((without.interval.low, without.interval.high), rel=1e-6)


@pytest.mark.parametrize("kind", [RobustPredictor, MeteredPredictor])
def test_no_request_has_no_times(kind) -> None:
    predictor, none = under(kind("cg", "c8").fit(laid_out(30)), Settings.of(2, 2)), np.empty(0)
    assert [term.factor.size for term in power_terms(predictor, 500.0, none)] == [0, 0]
    assert predictor.expect_many(500.0, none, none, none).shape == (0,)
    assert predictor.predict_many(500.0, none, none, none).low.shape == (0,)


@pytest.mark.parametrize("kind", [RobustPredictor, MeteredPredictor])
@pytest.mark.parametrize("counts", [[1, 2, 3, 8, 64, 5000], [2.5, 8.0]])
def test_times_are_the_sums_of_their_power_terms(kind, counts) -> None:
    predictor = under(kind("cg", "c8").fit(laid_out(30)), Settings.of(2, 2))
    random, p = np.random.default_rng(0), np.repeat(counts, 50)
    cpu, bw = random.uniform(0.05, 2.0, p.size), random.uniform(1.0, 1e4, p.size)
    for size in (10.0, 500.0, 1e5):
        terms = power_terms(predictor, size, p)
        assert sum(term.factor * cpu**term.cpu * bw**term.bandwidth for term in terms) == pytest.approx(
            predictor.expect_many(size, p, cpu, bw), rel=1e-9
        )


def test_at_a_clock_that_is_asked_for_power_terms_add_up_to_its_times() -> None:
    runs = [
        replace(run, extra=run.extra | {"frequency": str(1800 + 600 * (k % 2))}) for k, run in enumerate(laid_out(30))
    ]
    predictor = MeteredPredictor("cg", "c8").fit(runs)
    for asked in (predictor, under(predictor, Settings.of(frequency=1800.0))):
        terms = power_terms(asked, 500.0, [1, 2])
        assert terms is not None
        found = sum(each.factor * 0.8**each.cpu * 60.0**each.bandwidth for each in terms)
        assert found == pytest.approx(asked.expect_many(500.0, [1, 2], 0.8, 60.0))


def test_what_never_varies_has_no_slope_and_its_change_is_said() -> None:
    runs = laid_out(20, layouts=False, parameters=False)
    predictor, plain = RobustPredictor().fit(runs), RobustPredictor().fit(without_settings(runs))
    assert predictor.state.model.formula.powers == ()
    usual = Request(500, 8, 0.9, 90.0, Settings.of(4, parameters={"steps": 900, "solver": "cg"}))
    found = predictor.predict(usual)
    assert found.execution_time == plain.predict(Request(500, 8, 0.9, 90.0)).execution_time
    assert [line.split(", so")[0] for line in found.warnings if "never learned" in line] == [
        "processes_per_node 4 was never learned (it was always 2)",
        "solver cg was never learned (it was always amg)",
        "steps 900 was never learned (it was always 100)",
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_several_threads_that_all_runs_had_are_a_layout(threads: int) -> None:
    layout = {"processes_per_node": "2", "threads": str(threads)}
    runs = [replace(run, extra=layout) for run in laid_out(12, layouts=False, parameters=False)]
    assert RobustPredictor().fit(runs).layouts == ({(2, 2)} if threads == 2 else frozenset())


@pytest.mark.parametrize(
    "changed",
    [
        {"processes_per_node": 1},
        {"threads": 4},
        {"parameters": {"steps": 10.0, "solver": "amg"}},
        {"parameters": {"steps": 0.0, "solver": "amg"}},
        {"parameters": {"steps": 100.0, "solver": "jacobi"}},
    ],
)
def test_another_value_of_what_never_varied_widens_the_interval_and_keeps_the_middle(changed: dict[str, Any]) -> None:
    predictor = RobustPredictor().fit(laid_out(20, layouts=False, parameters=False))
    learned = {"processes_per_node": 2, "threads": 1, "parameters": {"steps": 100.0, "solver": "amg"}}
    same, other = (Request(500, 8, 0.9, 90.0, Settings.of(**each)) for each in (learned, learned | changed))
    usual, doubted = predictor.predict(same), predictor.predict(other)
    assert doubted.execution_time == usual.execution_time
    stated, named = other.settings, dict(other.settings.parameters)
    steps = float(named["steps"]) or 50.0
    true = true_time(500, 8, stated.processes_per_node or 2, steps, str(named["solver"]), stated.threads)
    assert not usual.interval.holds(true)
    assert doubted.interval.holds(true)
    columns = [np.array([value]) for value in (8, 0.9, 90.0)]
    many = under(predictor, other.settings).predict_many(500.0, *columns)
    assert (many.low[0], many.high[0]) == pytest.approx((doubted.interval.low, doubted.interval.high), rel=1e-6)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"step": 7}, "parameter 'step' is unknown, expected one of solver, steps"),
        ({"steps": "many"}, "parameter steps is 'many', expected a number, as in the runs learned"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_in_one_line(asked: dict[str, float | str], message: str) -> None:
    predictor = RobustPredictor().fit(laid_out(10))
    with pytest.raises(InputError) as caught:
        predictor.predict(Request(500, 8, 0.9, 90.0, Settings.of(parameters=asked)))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("parameter", "never", "learned"),
    [("solver", "ssor", ["amg", "cg"]), ("steps", 0.0, [100.0, 1000.0]), ("steps", -5.0, [100.0, 1000.0])],
)
def test_what_was_never_learned_widens_the_interval_and_is_said(
    parameter: str, never: str | float, learned: list[str | float]
) -> None:
    predictor = RobustPredictor().fit(laid_out(40))

    def found(value: str | float) -> tuple[float, tuple[str, ...]]:
        asked = Settings.of(2, parameters={"steps": 200.0, "solver": "cg"} | {parameter: value})
        prediction = predictor.predict(Request(500, 8, 0.9, 90.0, asked))
        return prediction.interval.high / prediction.interval.low, prediction.warnings

    strange, said = found(never)
    assert strange > 2.0 * max(found(value)[0] for value in learned)
    words = str(never) if isinstance(never, str) else f"{never:g}"
    assert [line.split(",")[0] for line in said] == [
        f"{parameter} {words} was never learned" + ("" if isinstance(never, str) else " (all were above 0)")
    ]


def test_a_run_with_a_new_parameter_is_learned() -> None:
    predictor = RobustPredictor().fit(without_settings(laid_out(10)))
    predictor.learn(laid_out(1)[0])
    assert predictor.window.seen == 11
    assert np.isfinite(predictor.predict(Request(500, 8, 0.9, 90.0)).execution_time)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 100), st.integers(3, 40))
def test_a_view_answers_batches_as_requests_with_its_settings(seed: int, count: int) -> None:
    runs = laid_out(count, seed)
    predictor, answer = RobustPredictor().fit(runs), runs[0].settings
    counts = np.array([4, 8, 16, 32])
    many = under(predictor, answer).predict_many(700.0, counts, 0.8, 50.0)
    ones = [predictor.predict(Request(700.0, int(p), 0.8, 50.0, answer)) for p in counts]
    assert many.execution_time == pytest.approx([one.execution_time for one in ones], rel=1e-9)
    assert many.high == pytest.approx([one.interval.high for one in ones], rel=1e-9)


def test_the_slopes_of_all_numbers_are_their_derivatives() -> None:
    runs = laid_out(12)
    observed, answer = measured(runs), [run.settings for run in runs]
    columns = SettingColumns.of(answer, np.log(observed.processors))
    rows = columns.rows(answer)
    formula = Structure.around(observed, Effects(columns), rows)
    step = 1e-6

    def log_time(place: int, change: float) -> np.ndarray:
        numbers = formula.vector
        numbers[place] += change
        return np.asarray(np.log(formula.with_numbers(numbers).of_runs(observed, rows).time))

    slopes = [(log_time(k, step) - log_time(k, -step)) / (2 * step) for k in range(len(formula.vector))]
    assert formula.of_runs(observed, rows).slopes == pytest.approx(np.array(slopes), abs=1e-6)


def test_an_untold_layout_stands_at_what_runs_on_as_many_processors_had() -> None:
    stated = [Settings.of(k) for k in (4, 4, 8)]
    columns = SettingColumns.of(stated, np.log([4.0, 8.0, 16.0]))
    untold = columns.rows([Settings()])
    assert np.exp(columns.filled(untold, np.log([2.0, 8.0, 16.0])))[:, 0] == pytest.approx([2.0, 4.0, 8.0])


def test_time_never_falls_as_processes_share_a_memory() -> None:
    model = Model.fit(measured(laid_out(30)), settings=[run.settings for run in laid_out(30)])
    effects = model.formula.effects.names
    assert model.formula.powers[effects.index("sharing")] >= 0.0
    assert model.formula.powers[effects.index("threading")] >= 0.0


@pytest.mark.parametrize("peer", [PowerLaw, RidgeQuadratic, GaussianProcess])
def test_peers_know_layouts_and_parameters_too(peer: type) -> None:
    runs = laid_out(40)
    predictor = peer().fit(runs)
    slow, fast = (
        Request(500, 8, 0.9, 90.0, Settings.of(2, 1, {"steps": steps, "solver": "amg"})) for steps in (300, 30)
    )
    times = [under(predictor, asked.settings).predict(asked).execution_time for asked in (slow, fast)]
    assert times[0] > 2.0 * times[1]
    predictor.learn(runs[0])
    assert predictor.window.seen == 41


def test_the_types_of_gpus_that_runs_name_have_times_of_their_own() -> None:
    part = {"none": 1.0, "a100": 0.1, "v100": 0.25}
    draw = np.random.default_rng(1)
    runs = [
        Run(
            "lu", "c", size, count, 1.0, 1000.0, part[gpu] * 1e-3 * size**1.5 / count * draw.uniform(0.97, 1.03),
            extra={"parameter:gpu": gpu},
        )
        for size in (200, 400, 800) for count in (1, 2, 4) for gpu in part for _ in range(2)
    ]  # fmt: skip
    predictor = RobustPredictor("lu", "c").fit(runs)
    asked = [Request(600, 2, 1.0, 1000.0, Settings.of(parameters={"gpu": gpu})) for gpu in part]
    found = [predictor.predict(each).execution_time for each in asked]
    assert found == pytest.approx([share * 1e-3 * 600**1.5 / 2 for share in part.values()], rel=0.05)


def test_the_formula_shows_each_setting_with_its_effect() -> None:
    text = RobustPredictor("cg", "c8").fit(laid_out(40)).state.model.text
    computation, _, communication = text.partition(" / cpu")
    assert computation
    number = r"-?[\d.e+-]+"
    assert re.search(rf" k\^{number} \({number} \+ {number} \(P - k\) / \(P - 1\)\)", communication)
    assert re.search(rf" threads\^{number}", text)
    assert len(re.findall(rf" \({number} if solver is \w+\)", text)) == 2 * len(
        set(re.findall(r"if solver is (\w+)", text))
    )
