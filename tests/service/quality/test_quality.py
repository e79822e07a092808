"""How good the advice is said to be, beside what is known to be true, and the verdict on it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.records import Interval, Placement, Prediction, ResourceSet
from metasched.service.quality.advice_quality import Settled, quality, report, settled
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
        cluster=st.sampled_from(["east", "west"]),
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
    assert (told.application, told.cluster, told.followed, told.same_partition, told.held) == (
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
        failed=True, application="cg", cluster="c8"
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
