"""How good the advice is said to be, beside what is known to be true, and the verdict on it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.records import Interval, Placement, Prediction, ResourceSet, Run
from metasched.service.configuration import EnergyChoice
from metasched.service.dashboard.advice_quality import figures
from metasched.service.dashboard.placements import shown
from metasched.service.quality.advice_quality import Settled, quality, report, settled
from metasched.service.quality.recent_predictions import MOST_RUNS, JudgedRun, RecentPredictions
from metasched.service.quality.verdict import ENOUGH, Verdict, next_step, verdict

SECONDS = st.floats(0.1, 1e5)
JOBS = st.lists(
    st.builds(
        Settled,
        failed=st.booleans(),
        followed=st.booleans(),
        actual=SECONDS,
        advised=SECONDS,
        inside=st.booleans(),
        there=st.none() | SECONDS,
        held=st.booleans(),
        limit=st.none() | SECONDS,
        same_partition=st.booleans(),
        application=st.sampled_from(["cg", "lu"]),
        platform=st.sampled_from(["east", "west"]),
    ),
    max_size=60,
)


def elsewhere(count: int, gain: float, *, error: float = 0.05, held: float = 0.95, seed: int = 0) -> list[Settled]:
    """Jobs that ran elsewhere and would truly have taken ``gain`` less where advised, by a model with some error."""
    draw = random.Random(seed)
    jobs = []
    for number in range(count):
        actual = draw.uniform(5.0, 50.0)
        there, advised = (actual * share * draw.uniform(1 - error, 1 + error) for share in (1.0, 1.0 - gain))
        held_here = number < held * count
        jobs.append(Settled(False, actual=actual, advised=advised, there=there, held=held_here, application="cg"))
    return jobs


@given(JOBS)
def test_the_parts_make_up_the_whole_and_every_figure_is_sound(jobs: list[Settled]) -> None:
    told = report(jobs)
    for name in ("jobs", "failed", "followed", "judged", "elsewhere", "faster", "same_partition", "killed_by_limit"):
        assert sum(getattr(part, name) for part in told.parts.values()) == getattr(told.overall, name)
    assert sum(part.time_taken for part in told.parts.values()) == pytest.approx(told.overall.time_taken)
    for part in (told.overall, *told.parts.values()):
        assert part.followed <= part.jobs
        assert part.judged <= part.jobs
        assert part.faster <= part.elsewhere <= part.judged
        assert part.held is None or 0.0 <= part.held <= 1.0
        if part.saved_low is not None and part.saved_high is not None:
            assert part.saved is not None
            assert part.saved_low <= part.saved + 1e-9
            assert part.saved <= part.saved_high + 1e-9
        assert verdict(part).why.count("\n") == 0
        assert next_step("act", verdict(part)).line


@given(JOBS, st.floats(0.5, 2.0))
def test_an_error_that_both_places_share_does_not_count_as_time_saved(jobs: list[Settled], error: float) -> None:
    wrong = [
        replace(job, advised=job.advised * error, there=None if job.there is None else job.there * error)
        for job in jobs
    ]
    assert quality(wrong).time_as_advised == pytest.approx(quality(jobs).time_as_advised)


def test_the_bounds_hold_the_true_saving_as_often_as_they_say() -> None:
    held = 0
    for seed in range(300):
        told = quality(elsewhere(25, 0.2, error=0.1, seed=seed))
        assert told.saved_low is not None
        assert told.saved_high is not None
        held += told.saved_low <= 0.2 <= told.saved_high
    assert 0.83 <= held / 300 <= 0.97  # 90 % are meant


@pytest.mark.parametrize(
    ("jobs", "mode", "word"),
    [
        (elsewhere(ENOUGH - 1, 0.3), None, f"{ENOUGH - 1} finished jobs judged"),
        (elsewhere(40, 0.3), "act", "would have saved 3"),
        (elsewhere(40, 0.3, held=0.5), "shadow", "the coverage is too low"),
        (elsewhere(40, 0.3, held=0.7), "act", "would have saved 3"),
        (elsewhere(400, 0.3, held=0.7), "shadow", "the coverage is too low"),
        (elsewhere(40, -0.3), "shadow", "would have cost"),
        (elsewhere(40, 0.0, error=0.3), "advise", "may be chance"),
        ([replace(job, there=2.0 * job.actual) for job in elsewhere(40, 0.3)], "shadow", "is too large"),
        ([replace(job, limit=0.5 * job.actual) for job in elsewhere(40, 0.3)], "advise", "40 of 40 would exceed"),
        ([replace(job, followed=True) for job in elsewhere(40, 0.3)], "act", "40 of 40 ran where advised"),
    ],
)
def test_the_verdict_follows_from_what_came(jobs: list[Settled], mode: str | None, word: str) -> None:
    told = verdict(quality(jobs))
    assert (told.mode, word in told.why) == (mode, True), told


@pytest.mark.parametrize(
    ("mode", "good_for", "command", "word"),
    [
        ("shadow", None, "", "too early"),
        ("shadow", "act", "metasched mode act", "ready for act"),
        ("advise", "act", "metasched mode act", "ready for act"),
        ("act", "act", "", "stay in act"),
        ("act", "shadow", "metasched mode shadow", "go back to shadow"),
        ("act", "advise", "metasched mode advise", "go back to advise"),
    ],
)
def test_the_next_step_leads_to_what_the_advice_is_good_for(
    mode: str, good_for: str | None, command: str, word: str
) -> None:
    step = next_step(mode, Verdict(good_for, ""))  # type: ignore[arg-type]
    assert (step.command, word in step.line) == (command, True)


def test_a_placement_and_its_outcome_say_where_the_job_ran_beside_the_advice() -> None:
    sets = ResourceSet("c8:new", ("b1",), 2, 1.0, 100.0)
    placement = Placement(sets, Prediction(10.0, Interval(8.0, 12.0, 0.9), "m"))
    answer = Answer(
        id="0a", mode="shadow", steer="nodes", placed=True, message="", scheduler="c8", partition="new",
        placement=placement, time_limit=60.0,
    )  # fmt: skip
    predicted = Prediction(19.0, Interval(18.0, 21.0, 0.9), "m")
    outcome = Outcome("c8", "old", ("a1",), 2, 20.0, 0, predicted, scheduler="c8")
    advice = AdvisedPlacement(1.0, Ask(application="cg", problem_size=5.0), answer, outcome)
    told = settled(advice)
    assert told is not None
    assert (told.application, told.platform, told.followed, told.same_partition, told.held) == (
        "cg", "c8", False, False, True,
    )  # fmt: skip
    assert told.as_advised == pytest.approx(20.0 * 10.0 / 19.0)
    beside = settled(replace(advice, outcome=replace(outcome, partition="new")))
    assert beside is not None
    assert (beside.followed, beside.same_partition) == (False, True)
    several = answer.model_copy(update={"partitions": ["new", "old"]})
    among = settled(replace(advice, answer=several))
    assert among is not None
    assert (among.followed, among.same_partition) == (False, True)
    there = settled(replace(advice, outcome=replace(outcome, partition="new", nodes=("b1",), execution_time=9.0)))
    assert there is not None
    assert (there.followed, there.inside, there.as_advised) == (True, True, 9.0)
    assert settled(replace(advice, outcome=replace(outcome, exit_status=1))) == Settled(
        failed=True, application="cg", platform="c8"
    )
    assert settled(replace(advice, outcome=None)) is None
    # A described cluster is one itself.
    west = replace(placement, resource_set=replace(sets, cluster="west"))
    described = answer.model_copy(update={"scheduler": "", "partition": "", "placement": west})
    for platform, same in (("west", True), ("east", False)):
        ran = replace(outcome, scheduler=platform, platform=platform, partition="")
        found = settled(replace(advice, answer=described, outcome=ran))
        assert found is not None
        assert found.same_partition is same


def test_energy_that_the_advice_would_have_saved_is_counted_where_it_is_known() -> None:
    sets = ResourceSet("c8", ("b1",), 2, 1.0, 100.0)
    placement = Placement(sets, Prediction(10.0, Interval(8.0, 12.0, 0.9), "m"), energy=600.0)
    answer = Answer(id="0a", mode="shadow", steer="nodes", placed=True, message="", placement=placement)
    predicted = Prediction(19.0, Interval(18.0, 21.0, 0.9), "m")
    outcome = Outcome("c8", "", ("a1",), 2, 20.0, 0, predicted, energy=1000.0, predicted_energy=800.0)
    advice = AdvisedPlacement(1.0, Ask(application="cg", problem_size=5.0), answer, outcome)
    jobs = [settled(each) for each in (advice, replace(advice, outcome=replace(outcome, predicted_energy=None)))]
    found = quality([job for job in jobs if job is not None])
    assert (found.elsewhere, found.metered, found.energy_taken, found.energy_as_advised) == (2, 1, 1000.0, 750.0)
    assert quality([]).metered == 0


@pytest.mark.parametrize(
    ("measured", "taken"), [(None, 800.0), (26.0, 800.0), (27.0, 27.0), (24_000.0, 24_000.0), (24_001.0, 800.0)]
)
def test_a_meter_that_is_missing_or_cannot_be_believed_leaves_what_was_predicted(
    measured: float | None, taken: float
) -> None:
    found = quality(filter(None, [settled(ran(energy=measured, predicted_energy=800.0))]))
    assert (found.metered, found.energy_taken) == (1, taken)
    assert (found.energy_as_advised, found.energy_saved) == (pytest.approx(taken * 0.75), pytest.approx(0.25))


def ran(*, clock: float | None = None, given: float | None = None, **outcome: Any) -> AdvisedPlacement:
    """A job that ran on the nodes advised to it at a clock (MHz), or else elsewhere, with what became of it."""
    sets = ResourceSet("c8", ("b1",), 2, 1.0, 100.0, frequency=clock)
    placement = Placement(sets, Prediction(10.0, Interval(8.0, 12.0, 0.9), "m"), energy=600.0)
    answer = Answer(
        id="0a", mode="act", steer="nodes", placed=True, message="", placement=placement, frequency=given
    )  # fmt: skip
    there = Prediction(8.0, Interval(7.0, 9.0, 0.9), "m")
    nodes = ("b1",) if clock else ("a1",)
    outcome = {"energy": 1000.0, "predicted_energy": 800.0} | outcome
    return AdvisedPlacement(
        1.0, Ask(application="cg", problem_size=5.0), answer, Outcome("c8", "", nodes, 2, 8.0, 0, there, **outcome)
    )


@pytest.mark.parametrize(
    ("given", "had", "followed"),
    [(1200.0, 1200.0, True), (1200.0, None, True), (1200.0, 2000.0, False), (None, None, False), (None, 1200.0, True)],
)
def test_a_job_at_another_clock_than_advised_did_not_follow_the_advice(
    given: float | None, had: float | None, followed: bool
) -> None:
    told = ran(clock=1200.0, given=given, frequency=had)
    found = quality(filter(None, [settled(told)]))
    assert (found.followed, found.elsewhere) == (followed, not followed)
    assert found.energy_as_advised == (0.0 if followed else 750.0)
    assert shown(told).came == ("8.0 s, inside the interval; predicted +25 %" if followed else "8.0 s at another clock")


LESS_ENERGY = [
    replace(job, energy=10.0 * job.actual, energy_as_advised=9.0 * job.actual) for job in elsewhere(40, -0.05)
]


@pytest.mark.parametrize(
    ("jobs", "policy", "mode", "word"),
    [
        (LESS_ENERGY, {}, "shadow", "would have cost 5 % of the time"),
        (LESS_ENERGY, {"policy": "min-energy"}, "act", "would have saved 10 % of the energy (10 % to 10 %)"),
        (LESS_ENERGY, {"policy": "min-energy", "max_slowdown": 0.1}, "act", "of the energy"),
        (LESS_ENERGY, {"policy": "min-energy", "max_slowdown": 0.0}, "shadow",
         "of the time (4 % to 6 %), more than the 0 % that max_slowdown allows"),
        ([replace(job, energy_as_advised=11.0 * job.actual) for job in LESS_ENERGY], {"policy": "min-energy"},
         "shadow", "would have cost 10 % of the energy"),
        ([replace(job, energy_as_advised=10.0 * job.actual) for job in LESS_ENERGY], {"policy": "min-energy"},
         "advise", "0 % of the energy (0 % to 0 %): this may be chance"),
        (elsewhere(40, 0.3), {"policy": "min-energy"}, "act", "of the time"),
    ],
)  # fmt: skip
def test_advice_for_least_energy_is_judged_by_the_energy(
    jobs: list[Settled], policy: dict[str, Any], mode: str, word: str
) -> None:
    told = verdict(quality(jobs), EnergyChoice.model_validate(policy))
    assert (told.mode, word in told.why) == (mode, True), told


NUMBERS = st.floats(min_value=5e-324, max_value=1.7e308)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.booleans()), max_size=9))
def test_every_figure_is_finite_whatever_was_predicted_and_took_place(jobs: list[tuple[Any, ...]]) -> None:
    told = []
    for took, advised, there, energy, advised_energy, there_energy, elsewhere in jobs:
        said = [Prediction(time, Interval(time, time, 0.9), "m") for time in (advised, there)]
        place = Placement(ResourceSet("c", ("n1",), 1, 1.0, 9.0), said[0], reason="", energy=advised_energy)
        answer = Answer(id="0a", mode="act", steer="nodes", placed=True, message="", placement=place)
        outcome = Outcome(
            "c", "p", ("n2" if elsewhere else "n1",), 1, took, 0, said[1], energy=energy, predicted_energy=there_energy
        )
        told.append(settled(AdvisedPlacement(1.0, Ask(application="cg", problem_size=5.0), answer, outcome)))
    found = quality(filter(None, told))
    assert found.jobs == len(jobs)
    json.dumps(found.as_dict(), allow_nan=False)
    assert all(value for _, value, _ in figures(found))
    assert verdict(found).why


def test_each_figure_of_the_quality_is_what_it_says() -> None:
    jobs = [
        Settled(failed=True),
        Settled(False, True, 10.0, 11.0, True, 12.0, True, 0.9, 10.5, True),
        Settled(False, True, 20.0, 14.0, False, None, False, 0.8, 19.0, False),
        Settled(False, True, 8.0, 8.0, True, 8.0, False, 0.9, 8.0, True),
        Settled(False, False, 30.0, 20.0, False, 40.0, True, 0.5, 14.0, True, energy=9.0, energy_as_advised=6.0),
        Settled(False, False, 50.0, 60.0, True, 60.0, False, 0.9, None, False, energy=0.0, energy_as_advised=1.0),
        Settled(False, False, 7.0, 5.0, True, None, False, 0.9, 6.9, False, energy=70.0, energy_as_advised=50.0),
    ]
    found = quality(jobs).as_dict()
    bounds = [found.pop(name) for name in ("saved_low", "saved_high", "energy_saved_low", "energy_saved_high")]
    assert found == pytest.approx(
        {
            "jobs": 6, "failed": 1, "followed": 3, "same_partition": 3, "ppe_mean": 40.0 / 3, "ppe_median": 10.0,
            "interval_coverage": 2 / 3, "judged": 4, "ppe_mean_there": (20.0 + 0.0 + 100.0 / 3 + 20.0) / 4,
            "held": 0.5, "level": 0.8, "elsewhere": 2, "faster": 1, "time_taken": 80.0, "time_as_advised": 65.0,
            "saved": 15.0 / 80.0, "killed_by_limit": 3, "metered": 2, "energy_taken": 9.0, "energy_as_advised": 7.0,
            "energy_saved": 2.0 / 9.0,
        }
    )  # fmt: skip
    # The residuals of the ratio 65/80 are -9.375 and 9.375; Student's t of one degree of freedom at 95 % is 6.3138.
    reach = 6.313751514675 * (2 * 2 * 9.375**2) ** 0.5 / 80.0
    # Those of the energies, whose ratio is 7/9, are -1 and 1.
    of_energy = 6.313751514675 * (2 * 2 * 1.0) ** 0.5 / 9.0
    saved = 2.0 / 9.0
    assert bounds == pytest.approx([0.1875 - reach, 0.1875 + reach, saved - of_energy, saved + of_energy])
    alone = quality(jobs[4:5])
    assert (alone.saved, alone.saved_low, alone.saved_high, alone.elsewhere) == (0.5, None, None, 1)
    none = quality([Settled(failed=True)])
    assert (none.jobs, none.failed, none.ppe_mean, none.held, none.saved, none.time_taken) == (
        0,
        1,
        None,
        None,
        None,
        0.0,
    )


SOUND = quality(elsewhere(40, 0.3))
GOOD = "predictions are off by 20.0 % on average, 90 % of them within their 90 % intervals"
PLAIN = replace(
    SOUND, jobs=40, judged=40, ppe_mean_there=20.0, held=0.9, level=0.9, saved=0.25, saved_low=0.2, saved_high=0.3,
    killed_by_limit=0, followed=0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "mode", "why"),
    [
        ({}, "act", f"{GOOD}; following the advice would have saved 25 % of the time (20 % to 30 %)"),
        ({"judged": 20, "ppe_mean_there": None}, None, "20 finished jobs judged, 20 are needed"),
        ({"judged": 19}, None, "19 finished jobs judged, 20 are needed"),
        ({"judged": 20}, "act", f"{GOOD}; following the advice would have saved 25 % of the time (20 % to 30 %)"),
        ({"ppe_mean_there": 30.0, "saved": None, "saved_low": None, "saved_high": None}, "advise",
         f"{GOOD.replace('20.0', '30.0')}; no job ran elsewhere than advised: this may be chance"),
        ({"ppe_mean_there": 30.1}, "shadow", f"{GOOD.replace('20.0', '30.1')}: an error above 30 % is too large"),
        # 80 % less 1.64 times the square root of 0.8 * 0.2 / 40 is 69.6 %.
        ({"held": 0.695}, "shadow", f"{GOOD.replace('90 % of', '70 % of')}: the coverage is too low"),
        ({"held": 0.697, "saved_low": None}, "advise", f"{GOOD.replace('90 % of', '70 % of')}; following the advice "
         "would have saved 25 % of the time: this may be chance"),
        ({"held": None, "level": None}, "act", f"{GOOD.replace('90 %', '0 %')}; following the advice would have saved "
         "25 % of the time (20 % to 30 %)"),
        ({"saved": -0.25, "saved_low": -0.3, "saved_high": -0.01}, "shadow",
         f"{GOOD}; following the advice would have cost 25 % of the time (1 % to 30 %)"),
        ({"saved": -0.25, "saved_low": -0.5, "saved_high": 0.0}, "advise",
         f"{GOOD}; following the advice would have cost 25 % of the time (0 % to 50 %): this may be chance"),
        ({"saved": 0.0, "saved_low": 0.0, "saved_high": 0.0}, "advise",
         f"{GOOD}; following the advice would have saved 0 % of the time (0 % to 0 %): this may be chance"),
        ({"killed_by_limit": 2}, "act", f"{GOOD}; following the advice would have saved 25 % of the time "
         "(20 % to 30 %)"),
        ({"killed_by_limit": 3}, "advise", f"{GOOD}; 3 of 40 would exceed the suggested time limit"),
        ({"followed": 36, "saved_low": -0.1}, "act", f"{GOOD}; 36 of 40 ran where advised"),
        ({"followed": 35, "saved_low": -0.1}, "advise", f"{GOOD}; following the advice would have saved 25 % of the "
         "time (-10 % to 30 %): this may be chance"),
    ],
)  # fmt: skip
def test_the_verdict_turns_at_its_bounds_and_says_its_figures(
    changed: dict[str, Any], mode: str | None, why: str
) -> None:
    found = verdict(replace(PLAIN, **changed))
    assert (found.mode, found.why) == (mode, why)


def test_the_last_runs_are_kept_with_those_of_before_a_restart_first() -> None:
    def advised(start: float, exit_status: int = 0, predicted: bool = True) -> AdvisedPlacement:
        said = Prediction(start + 1.0, Interval(start, start + 2.0, 0.9), "m") if predicted else None
        ended = Outcome("c8", "p", ("n1",), 2, start, exit_status, said, start=start)
        answer = Answer(id="0a", mode="act", steer="nodes", placed=False, message="", placement=None)
        return AdvisedPlacement(0.0, Ask(application="cg", problem_size=5.0), answer, ended)

    track = RecentPredictions()
    run = Run("cg", "c8", 7.0, 4, 0.8, 93.5, 50.0, 60.0)
    track.note(run, Prediction(40.0, Interval(41.0, 49.0, 0.9), "m"))
    never = replace(advised(5.0), outcome=None)
    track.restore([advised(30.0), advised(20.0, exit_status=1), advised(10.0, predicted=False), never, advised(3.0)])
    kept = track.of("cg", "c8")
    assert kept == (
        JudgedRun(3.0, 5.0, 2, 4.0, 3.0, 5.0, 3.0), JudgedRun(30.0, 5.0, 2, 31.0, 30.0, 32.0, 30.0),
        JudgedRun(60.0, 7.0, 4, 40.0, 41.0, 49.0, 50.0),
    )  # fmt: skip
    assert [each.inside for each in kept] == [True, True, False]
    assert [each.error for each in kept] == pytest.approx([100.0 / 3.0, 100.0 / 30.0, 20.0])
    assert track.of("lu", "c8") == ()
    track.restore(advised(float(start)) for start in range(MOST_RUNS, 0, -1))
    full = track.of("cg", "c8")
    assert (len(full), full[0].actual, full[-1].actual) == (MOST_RUNS, 4.0, 50.0)
