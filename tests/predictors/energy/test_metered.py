"""Times at any clock, and energy: learned from runs at two clocks, kept in documents, judged beside peers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal
from metered_runs import CLOCKS, made, watts

from metasched.predictors.abilities import energy_predictor, most_watts, planner, under
from metasched.predictors.adaptive import adaptive
from metasched.predictors.adaptive import learned as with_run
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.judging.energy_peers import MeanPower
from metasched.predictors.porting.platforms import borrower
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request, Run, Settings
from metasched.store import documents
from metasched.store.files.runs import write_runs


def errors(predictor: MeteredPredictor, runs: list[Run]) -> tuple[float, float]:
    """Mean errors of time and energy."""
    energy = energy_predictor(predictor)
    assert energy is not None
    times = [predictor.predict(run.request).execution_time / run.execution_time - 1.0 for run in runs]
    joules = [energy.predict(run.request).execution_time / (run.energy or math.nan) - 1.0 for run in runs]
    return float(np.abs(times).mean()), float(np.abs(joules).mean())


@pytest.fixture(scope="module")
def learned() -> MeteredPredictor:
    return MeteredPredictor("a", "c").fit(made(40, seed=1))


def test_two_clocks_suffice_to_predict_others(learned: MeteredPredictor) -> None:
    time, energy = errors(learned, made(40, seed=2, clocks=(1400.0, 1700.0)))
    assert time < 0.02
    assert energy < 0.035


@pytest.mark.parametrize(("covers", "told"), [(("node", "node"), False), (("node", "package"), True)])
def test_energies_of_different_parts_are_told_of(covers: tuple[str, str], told: bool) -> None:
    runs = made(12, seed=1)
    metered = [replace(run, extra={**run.extra, "energy_covers": covers[i % 2]}) for i, run in enumerate(runs)]
    notes = MeteredPredictor("a", "c").fit(metered).learned().notes
    assert any("different parts (node, package)" in note for note in notes) is told


@pytest.mark.parametrize("jump", [1e4, 1e-4, 1e200])
def test_a_meter_that_jumped_spoils_neither_the_energy_of_other_runs_nor_its_intervals(jump: float) -> None:
    def misread(run: Run) -> Run:
        return replace(run, extra={**run.extra, "energy": repr((run.energy or math.nan) * jump)})

    known, later = made(40, seed=1), made(6, seed=5)
    predictor = MeteredPredictor("a", "c").fit([misread(known[0]), *known[1:]])
    assert predictor.learned().parts[0].facts["energy left out"].startswith("1 of 40 runs")
    energy = energy_predictor(predictor)
    assert energy is not None
    before = energy.predict(later[1].request).interval
    predictor.learn(misread(later[0]))
    assert errors(predictor, later[1:])[1] < 0.035
    energy = energy_predictor(predictor)
    assert energy is not None
    after = energy.predict(later[1].request).interval
    assert after.high / after.low < 1.2 * before.high / before.low


@pytest.mark.parametrize("energy", [5e-324, 1e308])
def test_where_no_energy_can_be_computed_with_only_times_are_learned(energy: float) -> None:
    runs = [replace(run, extra={**run.extra, "energy": repr(energy)}) for run in made(20, seed=1)]
    predictor = MeteredPredictor("a", "c").fit(runs)
    assert energy_predictor(predictor) is None
    assert predictor.predict(runs[0].request).execution_time == pytest.approx(runs[0].execution_time, rel=0.3)


def test_metered_runs_on_more_processors_than_machine_integers_count_are_learned() -> None:
    runs = made(20, seed=1)
    predictor = MeteredPredictor("a", "c").fit([*runs[1:], replace(runs[0], processors=10**20)])
    assert energy_predictor(predictor) is not None


@pytest.mark.parametrize(("fraction", "left_out"), [(1 / 25, False), (1 / 35, True)])
def test_a_run_on_more_processors_may_draw_a_little_more_than_a_thirtieth_of_the_power(
    fraction: float, left_out: bool
) -> None:
    runs = made(40, seed=1)
    power = np.median([(run.energy or math.nan) / run.execution_time for run in runs])
    at = max(range(len(runs)), key=lambda place: runs[place].processors)
    joules = repr(float(fraction * power * runs[at].execution_time))
    runs[at] = replace(runs[at], extra={**runs[at].extra, "energy": joules})
    assert ("energy left out" in MeteredPredictor("a", "c").fit(runs).learned().parts[0].facts) is left_out


def test_the_time_of_what_waits_for_memory_does_not_shrink_with_the_clock() -> None:
    bound = MeteredPredictor("a", "c").fit(made(40, seed=3, memory=1.0))
    slow, fast = (bound.predict(Request(800, 4, 0.9, 90.0, Settings(frequency=f))).execution_time for f in CLOCKS)
    assert slow / fast == pytest.approx(1.0, abs=0.05)


def test_runs_without_meter_and_clock_are_left_to_the_robust_method() -> None:
    plain = [Run(run.application, "c", run.problem_size, 2, 0.9, 90.0, 1.0) for run in made(3, seed=4)]
    assert isinstance(adaptive("a", "c", plain), RobustPredictor)
    clocked = MeteredPredictor("a", "c").fit(
        [Run("a", "c", 100.0 * n, 2, 0.9, 90.0, float(n), extra={"frequency": "2000"}) for n in range(1, 6)]
    )
    assert energy_predictor(clocked) is None
    assert energy_predictor(RobustPredictor()) is None


def test_the_first_metered_run_makes_nothing_forgotten() -> None:
    def bare(run: Run, factor: float) -> Run:
        return replace(run, execution_time=factor * run.execution_time, extra={})

    runs = made(50, seed=1, clocks=(2000.0,))
    known = RobustPredictor("a", "c").fit([bare(run, 1.0) for run in runs[:30]])
    for run in runs[30:45]:
        known.learn(bare(run, 1.6))
        known.settle()
    before, asked = known.state, runs[49].request
    expected = known.predict(asked).execution_time
    assert before.drift is not None
    metered = with_run(known, replace(runs[45], execution_time=1.6 * runs[45].execution_time))
    assert isinstance(metered, MeteredPredictor)
    assert metered.window.seen == 46
    assert metered.clocks == (2000.0, 2000.0)
    assert energy_predictor(metered) is not None
    state = metered.times.state
    assert state.drift is not None
    assert state.drift.since == before.drift.since
    assert state.calibration.scores[:-1] == before.calibration.scores[2:]
    assert metered.predict(asked).execution_time == pytest.approx(expected, rel=0.02)


def test_a_first_metered_run_keeps_what_was_borrowed() -> None:
    lent = [replace(run, cluster="d", extra={}) for run in made(30, seed=2)]
    known = RobustPredictor("a", "c").borrowing(lent).fit([replace(made(1, seed=3)[0], extra={})])
    metered = with_run(known, made(2, seed=3)[1], lent)
    assert isinstance(metered, MeteredPredictor)
    assert len(metered.times.lent) == 30
    back = documents.parse(documents.dump(metered))
    asked = made(1, seed=4)[0].request
    assert back.predict(asked).execution_time == pytest.approx(metered.predict(asked).execution_time, rel=1e-6)


def test_runs_with_energy_are_lent_to_platforms_never_used_at_the_reference_clock(learned: MeteredPredictor) -> None:
    found = borrower("a", "new", {"c": learned})
    assert found is not None
    assert found.fit(()).lent == learned.times.teaching
    assert borrower("a", "c", {"c": learned}) is None


def test_runs_to_make_next_are_planned_with_energy_too(learned: MeteredPredictor) -> None:
    able = planner(learned)
    assert able is not None
    asked, candidates = [Request(900, 4, 0.9, 90.0)], [Request(700, p, 0.9, 90.0) for p in (1, 2, 4)]
    found = able.plan(asked, candidates, 1e6)
    assert set(found.runs) <= set(candidates)
    assert (able.widths(found.after, 0.9) <= able.widths(found.before, 0.9)).all()


def test_power_of_a_method_without_intervals_is_what_it_expects() -> None:
    known = made(40, seed=1)
    peer, metered = MeanPower().fit(known), MeteredPredictor("a", "c").fit(known)
    assert most_watts(peer, 800, [2, 4], 0.9, 90.0) == pytest.approx(np.mean(peer.watts))
    ends, more = (most_watts(metered, 800, [2, 4], 0.9, 90.0, level) for level in (0.5, 0.9))
    assert ends is not None
    assert more is not None
    assert (ends < more).all()
    assert most_watts(RobustPredictor(), 800, 2, 0.9, 90.0) is None


def test_a_clock_never_learned_widens_the_interval_and_is_warned_of(learned: MeteredPredictor) -> None:
    inside, outside = (learned.predict(Request(800, 4, 0.9, 90.0, Settings(frequency=f))) for f in (1700.0, 4000.0))
    assert not any("MHz" in warning for warning in inside.warnings)
    assert "frequency 4000 MHz is outside the 1200 to 2000 MHz learned" in outside.warnings
    assert outside.interval.high / outside.interval.low > 1.2 * inside.interval.high / inside.interval.low
    one = MeteredPredictor("a", "c").fit(made(10, seed=5, clocks=(2000.0,)))
    guessed = one.predict(Request(800, 4, 0.9, 90.0, Settings(frequency=1500.0)))
    assert "all runs learned were at 2000 MHz: the effect of 1500 MHz is assumed" in guessed.warnings


def test_intervals_hold_the_doubt_about_the_clock_the_more_the_fewer_runs_told_of_it() -> None:
    few, many = (MeteredPredictor("a", "c").fit(made(count, seed=11)).state.clock for count in (8, 60))
    assert few is not None
    assert many is not None
    point = np.column_stack([np.log([[800.0, 4.0, 0.9, 90.0]]), [0.9]])
    assert many.spread(point, many.reference)[0] == 0.0
    assert 0.0 < many.spread(point, 1600.0)[0] < few.spread(point, 1600.0)[0]
    assert many.spread(point, 1600.0)[0] < 0.03


def test_what_past_predictions_of_times_missed_by_is_remembered_when_the_clock_is_found_anew() -> None:
    predictor = MeteredPredictor("a", "c").fit(made(20, seed=5))
    before = predictor.times.state.calibration.reach(0.9)
    for place, run in enumerate(made(25, seed=6)):
        # Twice as long or half as long as any formula tells.
        predictor.learn(replace(run, execution_time=run.execution_time * (2.0, 0.5)[place % 2]))
        predictor.settle()
    calibration = predictor.times.state.calibration
    assert len(calibration.scores) - calibration.rehearsed == 25
    assert calibration.reach(0.9) > 1.2 * before


def test_a_drift_is_followed_and_told_of_also_when_the_clock_is_found_anew() -> None:
    def slower(run: Run) -> Run:
        extra = {**run.extra, "energy": repr(1.6 * (run.energy or math.nan))}
        return replace(run, execution_time=1.6 * run.execution_time, extra=extra)

    predictor, later = MeteredPredictor("a", "c").fit(made(40, seed=1)), [slower(run) for run in made(45, seed=2)]
    for run in later[:25]:
        predictor.learn(run)
        predictor.settle()
    drift = predictor.times.state.drift
    assert drift is not None
    assert drift.since == 40
    assert drift.factor == pytest.approx(1.6, rel=0.03)
    assert any("since run 41" in notice for notice in predictor.notices)
    back = documents.parse(documents.dump(predictor))
    assert isinstance(back, MeteredPredictor)
    for each in (predictor, back):
        assert max(errors(each, later[25:])) < 0.05
        for run in later[25:40]:
            each.learn(run)
            each.settle()
        assert max(errors(each, later[40:])) < 0.05
        assert each.times.state.drift is not None


@pytest.mark.parametrize("numbers", [{"problem_size": 1e70}, {"execution_time": 1e-70}])
def test_a_run_with_numbers_that_no_model_can_be_fitted_to_does_not_end_the_learning(numbers: dict[str, float]) -> None:
    predictor, plain = (MeteredPredictor("a", "c").fit(made(12, seed=1)) for _ in range(2))
    later = made(12, seed=2)
    predictor.learn(replace(later[0], **numbers))
    for run in later:
        predictor.learn(run)
        plain.learn(run)
    assert predictor.predict(later[0].request) == plain.predict(later[0].request)


def test_a_document_with_a_run_that_no_times_were_learned_from_goes_on_learning() -> None:
    runs = made(14, seed=1)
    predictor = MeteredPredictor("a", "c").fit(runs[:12])
    document = json.loads(documents.dump(predictor))
    for name, cell in (("window", [1e70, *document["window"][0][1:]]), ("energies", None), ("users", "")):
        document[name] = [cell, *document[name]]
    document["settings"] = [document["settings"][0], *document["settings"]]
    back = documents.parse(json.dumps(document | {"seen": 13}))
    for each in (predictor, back):
        for run in runs[12:]:
            each.learn(run)
    assert back.predict(runs[0].request) == predictor.predict(runs[0].request)
    shorter = {name: document[name][2:] for name in ("window", "energies", "users", "settings")}
    with pytest.raises(InputError, match="window has 11 runs, expected the 12 of times"):
        documents.parse(json.dumps(document | shorter))


def test_what_meters_see_is_told_from_the_first_run_of_another_part_on_and_each_part_once() -> None:
    def covering(run: Run, part: str) -> Run:
        return replace(run, extra={"energy": run.extra["energy"], "energy_covers": part})

    runs = made(14, seed=1)
    predictor = MeteredPredictor("a", "c").fit([covering(run, "node") for run in runs[:12]])
    predictor.learn(covering(runs[12], "package"))
    assert any("different parts (node, package)" in note for note in predictor.learned().notes)
    back = documents.parse(documents.dump(predictor))
    back.learn(covering(runs[13], "node"))
    assert any("different parts (node, package)" in note for note in back.learned().notes)


def test_the_first_energies_are_predicted_as_surely_by_a_model_that_learned_times_before() -> None:
    runs, asked = made(16, seed=1), Request(900.0, 4, 0.8, 90.0)
    bare = [replace(run, extra={"frequency": run.extra["frequency"]}) for run in runs[:12]]
    predictor = MeteredPredictor("a", "c").fit(bare)
    for run in runs[12:14]:
        predictor.learn(run)
    widths = []
    for each in (predictor, MeteredPredictor("a", "c").fit([*bare, *runs[12:14]])):
        energy = energy_predictor(each)
        assert energy is not None
        interval = energy.predict(asked).interval
        widths.append(interval.high / interval.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.3)


def test_many_times_at_another_clock_have_intervals_where_they_are_defined(learned: MeteredPredictor) -> None:
    many = under(learned, Settings(frequency=1500.0)).predict_many([800.0, 1e250], 4, 0.9, 90.0)
    assert 0.0 < many.low[0] < many.execution_time[0] < many.high[0] < math.inf
    assert many.low[1] == many.execution_time[1] == many.high[1] == math.inf


def test_many_are_predicted_as_one_is(learned: MeteredPredictor) -> None:
    asked = Settings(frequency=1500.0)
    for predictor in (learned, energy_predictor(learned)):
        assert predictor is not None
        one = predictor.predict(Request(800, 4, 0.9, 90.0, asked))
        many = under(predictor, asked).predict_many(800, [4, 8], 0.9, 90.0)
        assert many.execution_time[0] == pytest.approx(one.execution_time, rel=1e-3)
        assert (many.low[0], many.high[0]) == pytest.approx((one.interval.low, one.interval.high), rel=5e-3)


def test_it_answers_after_a_document_as_before_and_goes_on_learning(learned: MeteredPredictor) -> None:
    text = documents.dump(learned)
    back = documents.parse(text)
    assert isinstance(back, MeteredPredictor)
    assert documents.dump(back) == text
    asked = Request(700, 2, 0.8, 90.0, Settings(frequency=1800.0))
    for run in made(3, seed=6):
        before, after = energy_predictor(learned), energy_predictor(back)
        assert before is not None
        assert after is not None
        assert after.predict(asked).execution_time == pytest.approx(before.predict(asked).execution_time, rel=1e-9)
        assert back.predict(asked) == learned.predict(asked)
        learned.learn(run)
        back.learn(run)


@pytest.mark.parametrize("metered", [True, False])
def test_the_first_run_with_a_parameter_or_a_layout_is_learned(metered: bool) -> None:
    predictor = MeteredPredictor("a", "c").fit(made(20, seed=1))
    stated = {"parameter:steps": "100", "parameter:solver": "cg", "processes_per_node": "2", "threads": "4"}
    for run, (name, value) in zip(made(4, seed=2), stated.items(), strict=True):
        extra = {key: cell for key, cell in run.extra.items() if metered or not key.startswith("energy")}
        predictor.learn(replace(run, extra=extra | {name: value}))
    assert len(predictor.window) == len(predictor.times.window) == 24


def test_a_document_whose_clock_depends_on_loads_learns_its_runs_anew(learned: MeteredPredictor) -> None:
    document = json.loads(documents.dump(learned))
    document["clock"] |= {"numbers": [1.5, 0.2, -0.1, 0.1, -0.2, 0.1, 0.3], "middle": [6.0, 1.0, -0.3, 4.5],
                          "unit": [0.7, 0.8, 0.3, 0.4], "doubt": [0.01] * 49}  # fmt: skip
    back = documents.parse(json.dumps(document))
    assert isinstance(back, MeteredPredictor)
    asked = Request(700, 2, 0.8, 90.0, Settings(frequency=1800.0))
    assert back.predict(asked).execution_time == pytest.approx(learned.predict(asked).execution_time, rel=0.02)
    assert (back.window.seen, len(back.window)) == (learned.window.seen, len(learned.window))
    assert back.state.calibration.scores == learned.state.calibration.scores


MADE = {"reference": 2000, "least": 1200, "most": 2000, "middle": [0.0] * 2, "unit": [1.0] * 2}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("energies", [None], "energies and users are not"),
        ("together", 2.0, "together"),
        ("clock", {"reference": -1}, "clock"),
        ("clock", MADE | {"numbers": [0.0] * 6, "doubt": [1.0]}, "doubt of clock has 1 numbers, expected 36"),
        ("clock", MADE | {"numbers": [0.0] * 7}, "clock has 7 numbers with 2 and 2 logarithms, expected 6 with 2"),
    ],
)
def test_a_spoiled_document_is_refused(learned: MeteredPredictor, field: str, value: object, expected: str) -> None:
    document = json.loads(documents.dump(learned)) | {field: value}
    with pytest.raises(InputError, match=expected):
        documents.parse(json.dumps(document))


def test_the_command_line_predicts_and_judges_energy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, model = str(tmp_path / "runs.csv"), str(tmp_path / "model.json")
    write_runs(file, made(16, seed=7) + made(4, seed=8, phase="predict"))
    assert call(capsys, "fit", file, "-o", model)[0] == 0
    asked = ("predict", model, "--problem-size", "900", "--processors", "4", "--cpu", "0.9", "--bandwidth", "90")
    document = json.loads(call(capsys, *asked, "--frequency", "1600", "--json")[1])
    assert document["energy"]["interval"]["low"] < document["energy"]["value"] < document["energy"]["interval"]["high"]
    assert document["power"] == pytest.approx(document["energy"]["value"] / document["execution_time"])
    assert document["power"] == pytest.approx(watts(4, 0.9, 1600.0), rel=0.05)
    assert "--frequency: frequency is 1.6, expected MHz" in refusal(call(capsys, *asked, "--frequency", "1.6"))
    document = json.loads(call(capsys, "evaluate", file, "--quantity", "energy", "--peers", "--json")[1])
    assert (document["quantity"], document["predictions"]) == ("energy", 4)
    assert document["ppe_mean"] < 6.0
    assert set(document["peers"]) == {"mean_power", "power_law", "ridge", "gaussian_process"}
    assert document["series"][0]["energy"] > 0


def test_the_hardware_answers_for_runs_that_told_no_energy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, model = str(tmp_path / "runs.csv"), str(tmp_path / "model.json")
    write_runs(file, [Run("a", "c", 100.0 * n, 2, 0.9, 90.0, float(n)) for n in range(1, 9)])
    assert call(capsys, "fit", file, "-o", model)[0] == 0
    asked = ("predict", model, "--problem-size", "400", "--processors", "24", "--cpu", "0.9", "--bandwidth", "90")
    document = json.loads(call(capsys, *asked, "--entry", "galera-plus", "--json")[1])
    assert document["power"] == pytest.approx(2 * 136.08)
    assert "by the power formula of galera-plus, not measured" in document["warnings"][-1]
    assert "energy" not in json.loads(call(capsys, *asked, "--json")[1])
    assert "kask gives no power, expected" in refusal(call(capsys, *asked, "--entry", "kask"))


def test_runs_without_energy_are_not_judged_by_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plain = [
        Run("a", "c", 100.0 * n, 2, 0.9, 90.0, float(n), phase="train" if n < 6 else "predict") for n in range(1, 9)
    ]
    write_runs(tmp_path / "runs.csv", plain)
    assert "has learned no energy, expected train rows with measured energy" in refusal(
        call(capsys, "evaluate", str(tmp_path / "runs.csv"), "--quantity", "energy")
    )
