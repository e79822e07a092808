"""What training runs are drawn, how a campaign is divided, and that the protocol learns only what it may."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Outcome, evaluate
from metasched.predictors.judging.groups import Group, draw, groups
from metasched.predictors.judging.peers import PEERS, Amdahl, LogRegression, PowerLaw
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Interval, Prediction, Request, Run
from tests.predictors.made import runs

sizes_and_counts = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=4, max_size=30)


def made(pairs: list[tuple[int, int]], phase: str | None = None, cluster: str = "c8") -> list[Run]:
    return [Run("made", cluster, n, p, 1.0, 90.0, 1.0 + k, phase=phase) for k, (n, p) in enumerate(pairs)]


@given(pairs=sizes_and_counts, count=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_what_is_drawn_is_repeatable_and_varied_where_it_can_be(
    pairs: list[tuple[int, int]], count: int, seed: int
) -> None:
    every = made(pairs)
    chosen = draw(every, count, seed)
    assert chosen == draw(every, count, seed)
    places = [every.index(run) for run in chosen]
    assert places == sorted(set(places))
    assert len(places) == count
    if count >= 4:
        assert len({run.problem_size for run in chosen}) >= min(2, len({n for n, _ in pairs}))
        assert len({run.processors for run in chosen}) >= min(2, len({p for _, p in pairs}))


def test_other_seeds_draw_other_runs() -> None:
    every = made([(n, p) for n in range(1, 20) for p in (1, 2)])
    assert len({tuple(run.execution_time for run in draw(every, 5, seed)) for seed in range(20)}) == 20


def test_each_application_and_platform_is_a_group_with_its_own_draw() -> None:
    pairs = [(n, p) for n in range(1, 6) for p in (1, 2)]
    campaign = made(pairs, "train", "a") + made(pairs[:3], "train", "b") + made(pairs[:2], "predict", "c")
    found = groups(campaign, training=4, seed=1)
    assert [(group.name, len(group.training), len(group.rest)) for group in found] == [
        ("made on a", 4, 0),
        ("made on b", 3, 0),
        ("made on c", 0, 2),
    ]
    with pytest.raises(InputError, match="has 10 train rows to draw from, expected at least 11"):
        groups(campaign, training=11)


def test_without_phases_training_is_drawn_from_all_rows_and_the_others_are_predicted() -> None:
    every = made([(n, p) for n in range(1, 6) for p in (1, 2)])
    (group,) = groups(every, training=4, seed=1)
    assert len(group.training) == 4
    assert sorted((*group.training, *group.rest), key=lambda run: run.execution_time) == every
    (unasked,) = groups(every)
    assert (unasked.training, len(unasked.rest)) == ((), 10)


class Recorder:
    """Predicts with a peer and notes what it is given to learn."""

    name = "recorder"

    def __init__(self) -> None:
        self.peer: LogRegression = PowerLaw()
        self.learned: list[Run] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.peer, name)

    def learn(self, run: Run) -> None:
        self.learned.append(run)


@pytest.mark.parametrize("learning", [True, False])
def test_runs_are_learned_after_their_prediction_or_never(learning: bool) -> None:
    group, recorder = Group("made", "c8", tuple(runs(20)), tuple(runs(8, seed=2))), Recorder()
    found = evaluate(lambda _: recorder, [group], observed, learning=learning)  # type: ignore[arg-type,return-value]
    assert recorder.learned == (list(group.rest) if learning else [])
    assert len(found.outcomes) == 8
    assert found.summary()["fit_seconds"] > 0.0
    assert found.summary()["interval_width_median"] > 1.0


@pytest.mark.parametrize("learning", [True, False])
def test_a_parameter_that_no_training_run_had_is_passed_over_until_it_is_learned(learning: bool) -> None:
    training, rest = runs(12), [replace(run, extra={"parameter:steps": "7"}) for run in runs(6, seed=1)]
    group = Group("cg", "c8", tuple(training), tuple(rest))
    found = evaluate(lambda group: RobustPredictor(), [group], observed, learning=learning).outcomes
    plain = evaluate(lambda group: RobustPredictor(), [replace(group, rest=tuple(runs(6, seed=1)))], observed)
    assert found[0].prediction.execution_time == plain.outcomes[0].prediction.execution_time
    warned = [any("parameter 'steps' is unknown" in line for line in one.prediction.warnings) for one in found]
    assert warned == [True, *([not learning] * 5)]


def test_a_power_law_stays_one_on_runs_that_follow_none() -> None:
    runs = [Run("a", "c", n, p, 0.9, 90.0, 1.0 + 1e-6 * n**3 / p) for n in (50, 100, 200, 400, 800) for p in (1, 2, 4)]
    law = PowerLaw().fit(runs)
    one, two, four = (law.predict(Request(n, 2, 0.9, 90.0)).execution_time for n in (100, 200, 400))
    assert two / one == pytest.approx(four / two)


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_peer_answers_from_few_runs_some_of_them_unmeasured(kind: type[LogRegression], count: int) -> None:
    learned = [
        Run("made", "c8", run.problem_size, run.processors, math.nan, math.nan, run.execution_time)
        for run in runs(count)
    ]
    peer = kind().fit(learned)
    found = peer.predict(Request(1000, 4, 0.9, 90.0))
    assert 0.0 < found.interval.low < found.execution_time < found.interval.high < math.inf
    peer.learn(learned[0])
    assert len(peer.window) == count + 1


def test_amdahl_finds_the_serial_share_and_says_no_more_of_processors_than_it_allows() -> None:
    learned = [Run("a", "c", n, p, 1.0, 90.0, n * (0.05 + 0.95 / p)) for n in (100, 300) for p in (1, 2, 4, 8)]
    peer = Amdahl().fit(learned)
    times = peer.predict_many(200.0, [1, 16, 10**6], 1.0, 90.0).execution_time
    assert times == pytest.approx([200.0, 200 * (0.05 + 0.95 / 16), 10.0], rel=0.02)


def test_what_was_measured_is_the_time_or_the_energy_where_it_was_recorded() -> None:
    prediction = Prediction(90.0, Interval(50.0, 150.0, 0.9), "")
    run = Run("made", "c8", 1.0, 1, 1.0, 90.0, 100.0, extra={"energy": "120", "energy_covers": "node"})
    assert [Outcome(run, prediction, quantity).measured for quantity in ("time", "energy")] == [100.0, 120.0]
    unmetered = Outcome(replace(run, extra={}), prediction, "energy")
    assert math.isnan(unmetered.measured)
    assert not unmetered.held
