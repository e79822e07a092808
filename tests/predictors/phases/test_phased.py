from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from metasched.predictors.contract import Predictor
from metasched.predictors.judging.conditions import observed
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.phases.predictor import PhasedPredictor, _from_processes, _summed, loads_of
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request
from metasched.store.documents import dump, parse
from tests.predictors.phases.two_phases import campaign, marked_run

TRAINING = campaign(40, 1000, 3000)
LARGER = campaign(40, 4000, 8000, seed=7, counts=(4, 6, 8))


@pytest.fixture(scope="module")
def text() -> str:
    return dump(PhasedPredictor("two", "c8").fit(TRAINING))


@pytest.fixture
def phased(text: str) -> PhasedPredictor:
    return parse(text)


def errors(phased: PhasedPredictor, runs) -> np.ndarray:
    found = [phased.predict_processes(run.problem_size, *loads_of(run, ("a", "b"))) for run in runs]
    return np.array([abs(one.execution_time / run.execution_time - 1) for one, run in zip(found, runs, strict=True)])


def test_it_keeps_the_contract(phased) -> None:
    assert isinstance(phased, Predictor)
    many = phased.predict_many([1000, 2000], [4, 8], 0.9, 80.0)
    one = phased.predict(Request(2000, 8, 0.9, 80.0))
    assert many.execution_time[1] == pytest.approx(one.execution_time)
    assert one.interval.low < one.execution_time < one.interval.high
    assert "phase a" in one.model


def test_processes_and_phases_halve_the_error_of_a_single_model_outside_the_training_range(phased) -> None:
    single = RobustPredictor("two", "c8").fit(TRAINING)
    of_single = [
        abs(single.predict(observed(run, single, 0.9).request).execution_time / run.execution_time - 1)
        for run in LARGER
    ]
    assert errors(phased, LARGER).mean() < 0.5 * np.mean(of_single)


def test_a_run_takes_as_long_as_its_slowest_process_in_each_phase(phased) -> None:
    cpu = np.ones(8)
    slow_first, slow_last = cpu.copy(), cpu.copy()
    slow_first[0] = slow_last[7] = 0.5
    free, first, last = (
        phased.predict_processes(2000, [cpu, each], np.full(8, 90.0)).execution_time
        for each in (cpu, slow_first, slow_last)
    )
    assert first == pytest.approx(free)  # the first process has so little to do that it may be slow
    assert last > 1.3 * free


def test_it_learns(phased) -> None:
    state = phased.state
    for run in LARGER[:6]:
        phased.learn(run)
    phased.settle()
    assert phased.state.domain.largest_size > state.domain.largest_size
    assert phased.window.seen == len(TRAINING) + 6
    assert errors(phased, LARGER[6:]).mean() < 0.05


def test_a_run_without_marks_only_teaches_the_intervals(phased) -> None:
    before = phased.predict(Request(2000, 8, 0.9, 80.0)).execution_time
    calibration = phased.state.calibration
    unmeasured = replace(LARGER[0], marks=(), min_avg_avail_cpu=math.nan, min_avg_avail_bw=math.nan)
    for run in (replace(LARGER[0], marks=()), unmeasured):
        phased.learn(run)
        assert phased.predict(Request(2000, 8, 0.9, 80.0)).execution_time == before
        assert phased.state.calibration.scores[-1] != calibration.scores[-1]
        calibration = phased.state.calibration


def test_it_answers_the_same_after_it_was_saved_and_loaded(phased) -> None:
    again = parse(dump(phased))
    assert isinstance(again, PhasedPredictor)
    assert again.predict(Request(2500, 6, 0.7, 60.0)) == phased.predict(Request(2500, 6, 0.7, 60.0))
    cpu, bw = np.linspace(0.4, 1.0, 6), np.full(6, 70.0)
    assert again.predict_processes(2500, cpu, bw) == phased.predict_processes(2500, cpu, bw)
    assert dump(again) == dump(phased)


@pytest.mark.parametrize("marks", [(), TRAINING[3].marks[:-1], (*TRAINING[3].marks, TRAINING[3].marks[0])])
def test_incomplete_marks_are_refused(marks) -> None:
    with pytest.raises(InputError, match=r"has \d+ phase marks, expected one for each of its processes in"):
        PhasedPredictor("two", "c8").fit([*TRAINING[:3], replace(TRAINING[3], marks=marks)])


def test_phases_err_independently(phased) -> None:
    """The variance of the run's time is the sum of those of its phases."""
    time, spread = np.array([[30.0], [40.0]]), np.array([[0.1], [0.2]])
    total, joint = _summed(time, spread, phased.state)
    assert total == pytest.approx([phased.state.overhead * 70.0])
    assert joint == pytest.approx([np.hypot(3.0, 8.0) / 70.0])


def test_a_run_takes_the_phases_together_and_the_overhead_for_each_request_of_many(phased) -> None:
    where = [1000.0, 2000.0, 3000.0], [4, 8, 2], [0.9, 0.5, 0.7], [80.0, 60.0, 90.0]
    phases = [phase.slowest.expect_many(*where) for phase in phased.state.phases]
    by_hand = [phased.state.overhead * (one + other) for one, other in zip(*phases, strict=True)]
    assert phased.expect_many(*where) == pytest.approx(by_hand, rel=1e-12)
    assert phased.predict_many(*where).execution_time == pytest.approx(by_hand, rel=1e-12)
    assert len(set(by_hand)) == 3


def test_the_overhead_is_the_median_of_times_over_the_sums_of_slowest_processes() -> None:
    factors = [1.0, 1.2, 1.3, 1.1] * 10
    training = [
        replace(
            run, execution_time=factor * sum(max(m.execution_time for m in run.marks if m.phase == w) for w in "ab")
        )
        for run, factor in zip(TRAINING, factors, strict=True)
    ]
    assert PhasedPredictor("two", "c8").fit(training).state.overhead == pytest.approx(1.15)


def test_the_parts_of_a_prediction_are_those_of_its_phases_times_the_overhead(phased) -> None:
    phased._state = replace(phased.state, overhead=1.5)
    request = Request(2000, 8, 0.9, 80.0)
    expected = [
        (f"{term.name}, phase {phase.name}", term.how, pytest.approx(1.5 * term.seconds))
        for phase in phased.state.phases
        for term in phase.slowest.breakdown(request)
    ]
    assert [(term.name, term.how, term.seconds) for term in phased.breakdown(request)] == expected
    assert {name.rpartition(", ")[2] for name, _, _ in expected} == {"phase a", "phase b"}
    total = sum(term.seconds for term in phased.breakdown(request))
    assert total == pytest.approx(phased.predict(request).execution_time, rel=1e-6)


def test_what_was_learned_is_told_of_each_phase(phased) -> None:
    learned = phased.learned()
    assert [part.name for part in learned.parts] == ["a", "b"]
    for part, phase in zip(learned.parts, phased.state.phases, strict=True):
        own = phase.slowest.learned().parts[0]
        assert part.models.combinations.tolist() == own.models.combinations.tolist()
        assert part.facts == {
            "processes": phase.processes is not None, "work": phase.profile.density, **own.facts,
        }  # fmt: skip
    assert [part.facts["processes"] for part in learned.parts] == [False, True]
    assert len(set(learned.notes)) == len(learned.notes)


def test_a_prediction_names_the_model_of_each_phase_its_level_and_what_it_was_not_learned_from(phased) -> None:
    (one, other), level = phased.state.phases, 0.5
    texts = one.slowest.state.model.text, other.slowest.state.model.text
    outside = Request(1e6, 8, 0.9, 80.0)
    found = phased.predict(outside, level)
    assert found.model == f"[phase a: {texts[0]}] + [phase b: {texts[1]}]"
    assert found.interval.level == level
    assert found.warnings == phased.state.domain.warnings(outside) != ()
    of_processes = phased.predict_processes(1e6, np.full(8, 0.9), np.full(8, 80.0), level)
    slowest = other.processes.state.model.text
    assert of_processes.model == f"[phase a: {texts[0]}] + [phase b: slowest process of {slowest}]"
    assert of_processes.interval.level == level
    assert of_processes.warnings == phased.state.domain.warnings(outside)


@pytest.mark.parametrize("how", ["minima", "processes"])
def test_intervals_are_as_wide_as_the_scores_of_their_own_way_of_asking_say(how: str, phased) -> None:
    state = phased.state
    wide, narrow = (Calibration.starting([each] * 40) for each in (8.0, 0.5))
    phased._state = replace(state, calibration=wide, of_processes=narrow)
    cpu, bw = np.full(4, 0.9), np.full(4, 80.0)
    minima, processes = phased.predict(Request(2000, 4, 0.9, 80.0)), phased.predict_processes(2000, cpu, bw)
    widths = {
        name: np.log(each.interval.high / each.interval.low)
        for name, each in (("minima", minima), ("processes", processes))
    }
    assert minima.interval.level == processes.interval.level == 0.9
    assert widths["minima"] > 4.0 * widths["processes"]
    given = (phased.predict, (Request(2000, 4, 0.9, 80.0),)) if how == "minima" else (
        phased.predict_processes, (2000, cpu, bw),
    )  # fmt: skip
    more, less = (given[0](*given[1], level).interval for level in (0.99, 0.5))
    assert more.low < less.low < less.high < more.high


def test_intervals_hold_their_share_where_the_processes_of_a_run_err_together() -> None:
    held = []
    for seed in range(31, 34):
        rng = np.random.default_rng(seed)
        runs = [
            marked_run(rng.uniform(1000, 3000), rng.uniform(0.3, 1.0, p), rng.uniform(40, 100, p), rng, noise=0.05)
            for p in rng.choice([1, 2, 4, 8], 42).tolist()
        ]
        learned = PhasedPredictor("two", "c8").fit(runs[:12])
        for run in runs[12:]:
            loads = loads_of(run, ("a", "b"))
            found = learned.predict(run.request), learned.predict_processes(run.problem_size, *loads)
            held.append([each.interval.holds(run.execution_time) for each in found])
    assert min(np.mean(held, axis=0)) > 0.82


def test_a_marked_run_teaches_both_intervals_by_what_would_have_been_predicted(phased) -> None:
    run, state = LARGER[0], phased.state
    phases = [phase.slowest for phase in state.phases]
    where = run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw
    found = [phase.state.predict(*(np.array([float(each)]) for each in where)) for phase in phases]
    times, spreads = (np.array([float(each[at][0]) for each in found]) for at in (0, 1))
    times = np.exp(times)
    spread = float(np.sqrt(np.sum((times * spreads) ** 2)) / times.sum())
    of_minima = score(run.execution_time, state.overhead * float(times.sum()), spread)
    of_processes = score(run.execution_time, *_from_processes(state, run.problem_size, *loads_of(run, ("a", "b"))))
    phased.learn(run)
    assert phased.state.calibration.scores[-1] == pytest.approx(of_minima)
    assert phased.state.of_processes.scores[-1] == pytest.approx(of_processes)
    assert of_processes != pytest.approx(of_minima)
    assert phased.state.domain == state.domain.learned(run)


@pytest.mark.parametrize(
    ("first", "marks", "names"),
    [(False, (), "phases a, b"), (False, TRAINING[3].marks[:-1], "phases a, b"), (True, (), "at least one phase")],
)
def test_what_marks_are_missing_is_told(first: bool, marks, names: str) -> None:
    wrong = replace(TRAINING[3], marks=marks)
    with pytest.raises(InputError) as refusal:
        PhasedPredictor("two", "c8").fit([wrong] if first else [*TRAINING[:3], wrong])
    assert str(refusal.value) == (
        f"run of problem size {wrong.problem_size:g} on 8 processors has {len(marks)} phase marks, expected one for "
        f"each of its processes in {names}"
    )


def test_a_request_for_which_a_phase_has_no_time_is_refused(phased) -> None:
    with pytest.raises(InputError, match="no model of one of the phases is defined for"):
        phased._prediction(Request(2000, 4, 0.9, 80.0), np.inf, 1.0, 2.0, 0.9, "")


def test_spreads_that_are_not_known_leave_the_widest_of_the_phases(phased) -> None:
    time, spread = np.array([[0.0, 3.0], [0.0, 4.0]]), np.array([[0.1, 0.2], [0.3, 0.4]])
    total, joint = _summed(time, spread, replace(phased.state, overhead=2.0))
    assert total.tolist() == [0.0, 14.0]
    assert joint == pytest.approx([0.3, np.hypot(0.6, 1.6) / 7.0])
