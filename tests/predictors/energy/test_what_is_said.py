"""What a metered predictor says of clocks and energies, and what it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from metered_runs import made

from metasched.arrays import Floats
from metasched.predictors.abilities import usual_clock
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.records import InputError, Request, Run, Settings

ASKED = Request(900.0, 4, 0.8, 90.0)


def without(runs: Sequence[Run], *names: str) -> list[Run]:
    """Runs without some of their columns."""
    return [replace(run, extra={name: cell for name, cell in run.extra.items() if name not in names}) for run in runs]


def point_of(predictor: MeteredPredictor) -> Floats:
    """What is asked, as the clock wants to know it."""
    asked = ASKED.problem_size, ASKED.processors, ASKED.available_cpu, ASKED.available_bandwidth
    return np.column_stack([np.log([asked]), predictor.times.computing_share(*asked)])


def at(frequency: float) -> Request:
    return replace(ASKED, settings=Settings(frequency=frequency))


@pytest.fixture(scope="module")
def of_two_clocks() -> MeteredPredictor:
    return MeteredPredictor("a", "c").fit(made(30, seed=1))


@pytest.fixture(scope="module")
def of_one_clock() -> MeteredPredictor:
    return MeteredPredictor("a", "c").fit(made(20, seed=1, clocks=(2000.0,)))


@pytest.fixture(scope="module")
def of_no_clock() -> MeteredPredictor:
    return MeteredPredictor("a", "c").fit(without(made(20, seed=1, clocks=(2000.0,)), "frequency"))


@pytest.fixture(scope="module")
def unmetered() -> MeteredPredictor:
    return MeteredPredictor("a", "c").fit(without(made(20, seed=1), "energy", "energy_covers"))


@pytest.mark.parametrize(
    ("name", "frequency", "warnings"),
    [
        ("of_two_clocks", 1200.0, ()),
        ("of_two_clocks", 1600.0, ()),
        ("of_two_clocks", 5000.0, ("frequency 5000 MHz is outside the 1200 to 2000 MHz learned",)),
        ("of_two_clocks", 300.0, ("frequency 300 MHz is outside the 1200 to 2000 MHz learned",)),
        ("of_one_clock", 2000.0, ()),
        ("of_one_clock", 1200.0, ("all runs learned were at 2000 MHz: the effect of 1200 MHz is assumed",)),
        ("of_no_clock", 2000.0, ("no run learned has a recorded frequency: its effect is unknown",)),
    ],
)
def test_a_clock_is_warned_of_where_its_effect_is_not_known(
    name: str, frequency: float, warnings: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    predictor: MeteredPredictor = request.getfixturevalue(name)
    assert predictor.doubts == ()
    assert predictor.predict(at(frequency)).warnings[-len(warnings) or 99 :] == warnings
    energy = predictor.energy_predictor()
    assert energy is not None
    assert energy.predict(at(frequency)).warnings == warnings


def test_a_clock_is_usual_where_several_were_learned(
    of_two_clocks: MeteredPredictor, of_one_clock: MeteredPredictor, of_no_clock: MeteredPredictor
) -> None:
    assert [usual_clock(each) for each in (of_one_clock, of_no_clock)] == [None, None]
    usual = usual_clock(of_two_clocks)
    assert usual in (1200.0, 2000.0)
    assert of_two_clocks.predict(ASKED) == of_two_clocks.predict(at(usual))


def test_clocks_and_facts_are_those_of_the_runs(
    of_two_clocks: MeteredPredictor, of_one_clock: MeteredPredictor, of_no_clock: MeteredPredictor,
    unmetered: MeteredPredictor,
) -> None:  # fmt: skip
    assert (of_two_clocks.clocks, of_one_clock.clocks, of_no_clock.clocks) == ((1200.0, 2000.0), (2000.0, 2000.0), None)
    facts = [dict(each.learned().parts[0].facts) for each in (of_two_clocks, of_one_clock, of_no_clock, unmetered)]
    assert [each.get("clock") for each in facts] == ["1200 to 2000 MHz", "2000 to 2000 MHz", None, "1200 to 2000 MHz"]
    assert [each.get("power", "").partition(" W on average")[2] for each in facts] == [", of node"] * 3 + [""]
    assert not any("energy left out" in each for each in facts)
    of_nothing = MeteredPredictor("a", "c").fit(without(made(20, seed=1), "energy_covers"))
    assert str(of_nothing.learned().parts[0].facts["power"]).endswith(" W on average")


def test_without_metered_runs_there_is_no_energy(unmetered: MeteredPredictor) -> None:
    assert unmetered.energy_predictor() is None
    columns = [np.array([value]) for value in (900.0, 4.0, 0.8, 90.0)]
    for ask in (unmetered.log_energy, unmetered.power, unmetered.expect_watts):
        with pytest.raises(InputError, match=r"^no run learned has a recorded energy$"):
            ask(*columns)


def test_an_answer_for_a_clock_is_the_time_at_the_reference_by_its_factor(of_two_clocks: MeteredPredictor) -> None:
    clock = of_two_clocks.state.clock
    assert clock is not None
    point = point_of(of_two_clocks)
    usual = of_two_clocks.times.predict(ASKED)
    for frequency in (1200.0, 1600.0, 2000.0):
        factor = float(clock.factor(point, np.array([frequency]))[0])
        found = of_two_clocks.predict(at(frequency))
        assert found.execution_time == pytest.approx(usual.execution_time * factor)
        computation, communication = of_two_clocks.breakdown(at(frequency))
        assert computation.seconds + communication.seconds == pytest.approx(found.execution_time, rel=1e-6)
        usual_terms = of_two_clocks.breakdown(ASKED)
        assert (computation.seconds, communication.seconds) == pytest.approx(
            tuple(
                term.seconds * float(by[0])
                for term, by in zip(usual_terms, clock.factors(point, np.array([frequency])), strict=True)
            )
        )
        assert found.interval.high / found.interval.low >= usual.interval.high / usual.interval.low * (1 - 1e-9)
        view = of_two_clocks.under(Settings(frequency=frequency))
        assert view.expect_many(900.0, 4, 0.8, 90.0) == pytest.approx(
            of_two_clocks.times.expect_many(900.0, 4, 0.8, 90.0) * factor
        )
        terms = view.power_terms(900.0, [4])
        times = [float(each.factor[0]) * 0.8**each.cpu * 90.0**each.bandwidth for each in terms]
        assert sum(times) == pytest.approx(found.execution_time)
        assert times == pytest.approx([computation.seconds, communication.seconds])
    assert of_two_clocks.predict(ASKED).execution_time == pytest.approx(usual.execution_time)


def test_energy_is_time_times_power_and_its_upper_power_is_a_quantile(of_two_clocks: MeteredPredictor) -> None:
    energy = of_two_clocks.energy_predictor()
    assert energy is not None
    columns = [np.array([value]) for value in (900.0, 4.0, 0.8, 90.0)]
    log_watts, doubt = of_two_clocks.power(*columns)
    watts = energy.expect_watts(900.0, 4, 0.8, 90.0)
    assert watts == pytest.approx(np.exp(log_watts))
    for level, deviations in ((0.9, 1.6448536), (0.5, 0.6744898)):
        assert energy.most_watts(900.0, 4, 0.8, 90.0, level) == pytest.approx(
            watts * np.exp(deviations * doubt), rel=1e-6
        )
    joules, spread = of_two_clocks.log_energy(*columns)
    clock = of_two_clocks.state.clock
    assert clock is not None
    log_time, spread_of_time = of_two_clocks.times.state.predict(*columns)
    point, reference = point_of(of_two_clocks), np.array([clock.reference])
    assert joules == pytest.approx(log_time + np.log(clock.factor(point, reference)) + log_watts)
    together, own = of_two_clocks.state.together, np.hypot(spread_of_time, clock.spread(point, clock.reference))
    assert spread == pytest.approx(np.sqrt(own**2 + doubt**2 + 2 * together * own * doubt))
    assert energy.predict(ASKED).execution_time == pytest.approx(float(np.exp(joules[0])))


def test_what_a_first_clock_or_a_first_energy_tells_is_learned_at_once() -> None:
    runs = made(24, seed=3, clocks=(2000.0,))
    clockless = MeteredPredictor("a", "c").fit(without(runs[:12], "frequency"))
    clockless.learn(runs[12])
    assert clockless.clocks == (2000.0, 2000.0)
    unmetered = MeteredPredictor("a", "c").fit(without(runs[:12], "energy"))
    unmetered.learn(without(runs[12:13], "energy")[0])
    assert unmetered.energy_predictor() is None
    unmetered.learn(runs[13])
    assert unmetered.energy_predictor() is not None
